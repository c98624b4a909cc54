//! Deliveries that are kept before their first attempt.

mod statements;

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use self::statements::{ACCEPT, ACCEPT_ALL, BRING_FORWARD, REOPEN};
use super::group_commit::GroupWrite;
use super::keep::{Keep, interval, unix_time};
use super::request::KeptRequest;
use super::served;
use crate::delivery::Delivery;
use crate::transaction::{DatabaseError, Store};

/// An authentic delivery that is to be kept before its first attempt.
#[derive(Debug)]
pub(crate) struct Acceptance {
    pub(crate) delivery: Delivery,
    pub(crate) request: KeptRequest,
    /// Whether its first attempt begins now, in this process. Otherwise it is left to recovery.
    pub(crate) begins: bool,
    /// How long an attempt takes at most.
    pub(crate) lease: Duration,
}

/// The result of keeping a delivery before its first attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// It is kept now, and its attempt has begun if that was wanted and is not paused.
    New { begun: bool },
    /// It was kept before.
    Known,
    /// It was processed before.
    Processed,
}

impl Keep {
    /// Keeps a delivery before its first attempt.
    pub(crate) async fn accept(
        &self,
        store: &Store,
        acceptance: Acceptance,
    ) -> Result<Accepted, DatabaseError> {
        let accepted = self.acceptances.write(store, acceptance).await?;
        match accepted {
            Accepted::New { begun: true } | Accepted::Processed => {}
            // For recovery to run it.
            Accepted::New { begun: false } | Accepted::Known => served::notify(),
        }
        Ok(accepted)
    }
}

impl Acceptance {
    fn key(&self) -> (&str, &str) {
        (self.delivery.key_tenant(), self.delivery.id().as_str())
    }
}

impl GroupWrite for Acceptance {
    type Result = Accepted;

    const AUTOCOMMIT: bool = true;

    fn size(&self) -> usize {
        self.request.body.len()
    }

    async fn write(
        connection: &mut PgConnection,
        group: &[&Self],
    ) -> sqlx::Result<Vec<Option<Accepted>>> {
        if let [one] = group {
            return Ok(vec![one.write_without_waiting(connection).await?]);
        }
        // Each delivery once, the first request of it: one statement cannot insert a row twice. In
        // the order of their keys, so that two processes do not wait for each other.
        let deliveries: BTreeMap<_, &Self> =
            group.iter().rev().map(|one| (one.key(), *one)).collect();
        let all: Vec<&Self> = deliveries.values().copied().collect();
        let Some(first) = all.first() else {
            return Ok(Vec::new());
        };
        let rows = first.run_for(&all, connection).await?;
        let mut results = BTreeMap::new();
        for (one, row) in all.iter().zip(&rows) {
            results.insert(one.key(), Written::read(row)?.decided());
        }
        let mut of_each = Vec::with_capacity(group.len());
        for one in group {
            let result = results
                .get_mut(&one.key())
                .ok_or(sqlx::Error::RowNotFound)?;
            of_each.push(*result);
            if let Some(Accepted::New { .. }) = result {
                // Only for its first request.
                *result = Some(Accepted::Known);
            }
        }
        Ok(of_each)
    }

    async fn write_alone(connection: &mut PgConnection, one: &Self) -> sqlx::Result<Accepted> {
        // The second one waits for whoever changes the row. The last one is for what another process
        // has done since the second one began.
        for statement in [ACCEPT, REOPEN, ACCEPT] {
            let written = one.run_one(statement, connection).await?;
            if let Some(accepted) = one.accepted(written, connection).await? {
                return Ok(accepted);
            }
        }
        Err(sqlx::Error::RowNotFound)
    }
}

impl Acceptance {
    /// Runs `ACCEPT` or `REOPEN`. All of the answer is read, since the statement may be a transaction
    /// of its own.
    async fn run_one(
        &self,
        statement: &'static str,
        connection: &mut PgConnection,
    ) -> sqlx::Result<Written> {
        let (delivery, request) = (&self.delivery, &self.request);
        let rows = sqlx::query(statement)
            .bind(delivery.endpoint())
            .bind(interval(self.lease))
            .bind(delivery.key_tenant())
            .bind(delivery.id().as_str())
            .bind(delivery.tenant())
            .bind(delivery.event_type())
            .bind(unix_time(delivery.first_received_at()))
            .bind(self.begins)
            .bind(self.body_bytes())
            .bind(request.method.as_str())
            .bind(&*request.uri)
            .bind(&*request.headers)
            .bind(&*request.body)
            .bind(delivery.signed_at().map(unix_time))
            .fetch_all(connection)
            .await?;
        Written::read(rows.first().ok_or(sqlx::Error::RowNotFound)?)
    }

    /// Runs `ACCEPT_ALL` for deliveries of this endpoint.
    async fn run_for(
        &self,
        all: &[&Self],
        connection: &mut PgConnection,
    ) -> sqlx::Result<Vec<PgRow>> {
        let all = Columns(all);
        sqlx::query(ACCEPT_ALL)
            .bind(self.delivery.endpoint())
            .bind(interval(self.lease))
            .bind(all.of(|one| one.delivery.key_tenant()))
            .bind(all.of(|one| one.delivery.id().as_str()))
            .bind(all.of(|one| one.delivery.tenant()))
            .bind(all.of(|one| one.delivery.event_type()))
            .bind(all.of(|one| unix_time(one.delivery.first_received_at())))
            .bind(all.of(|one| one.begins))
            .bind(all.of(Self::body_bytes))
            .bind(all.of(|one| one.request.method.as_str()))
            .bind(all.of(|one| &*one.request.uri))
            .bind(all.of(|one| &*one.request.headers))
            .bind(all.of(|one| &*one.request.body))
            .bind(all.of(|one| one.delivery.signed_at().map(unix_time)))
            .fetch_all(connection)
            .await
    }

    /// `None` if it has to wait for whoever changes its row.
    async fn write_without_waiting(
        &self,
        connection: &mut PgConnection,
    ) -> sqlx::Result<Option<Accepted>> {
        let written = self.run_one(ACCEPT, connection).await?;
        self.accepted(written, connection).await
    }

    /// The result, unless another statement is needed that may wait.
    async fn accepted(
        &self,
        written: Written,
        connection: &mut PgConnection,
    ) -> sqlx::Result<Option<Accepted>> {
        if written == Written::Waiting {
            sqlx::query(BRING_FORWARD)
                .bind(self.delivery.endpoint())
                .bind(self.delivery.key_tenant())
                .bind(self.delivery.id().as_str())
                .execute(connection)
                .await?;
            return Ok(Some(Accepted::Known));
        }
        Ok(written.decided())
    }

    fn body_bytes(&self) -> i32 {
        i32::try_from(self.request.body.len()).unwrap_or(i32::MAX)
    }
}

/// What a statement has done with a delivery, or why nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    New {
        begun: bool,
    },
    Processed,
    Known,
    /// It is known, and waits for its next attempt.
    Waiting,
    /// Its row is not due any more.
    Ended,
    /// Its row was not there yet when the statement began.
    Unseen,
}

impl Written {
    fn read(row: &PgRow) -> sqlx::Result<Self> {
        if row.try_get("accepted")? {
            let begun = row.try_get("begun")?;
            return Ok(Self::New { begun });
        }
        if row.try_get::<Option<bool>, _>("processed")?.is_some() {
            return Ok(Self::Processed);
        }
        Ok(match row.try_get("known")? {
            Some("due") => Self::Known,
            Some("begun") => Self::New { begun: true },
            Some("waiting") => Self::Waiting,
            Some(_) => Self::Ended,
            None => Self::Unseen,
        })
    }

    /// `None` if more than this statement is needed.
    fn decided(self) -> Option<Accepted> {
        match self {
            Self::New { begun } => Some(Accepted::New { begun }),
            Self::Processed => Some(Accepted::Processed),
            Self::Known => Some(Accepted::Known),
            Self::Waiting | Self::Ended | Self::Unseen => None,
        }
    }
}

/// Deliveries, column by column.
struct Columns<'a>(&'a [&'a Acceptance]);

impl<'a> Columns<'a> {
    fn of<T>(&self, value: impl Fn(&'a Acceptance) -> T) -> Vec<T> {
        self.0.iter().map(|one| value(one)).collect()
    }
}
