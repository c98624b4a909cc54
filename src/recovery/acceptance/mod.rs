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

    async fn write(connection: &mut PgConnection, group: &[&Self]) -> sqlx::Result<Vec<Accepted>> {
        // Each delivery once, the first request of it: one statement cannot insert a row twice. In
        // the order of their keys, so that two processes do not wait for each other.
        let deliveries: BTreeMap<_, &Self> =
            group.iter().rev().map(|one| (one.key(), *one)).collect();
        let all: Vec<&Self> = deliveries.values().copied().collect();
        let rows = match *all {
            [] => return Ok(Vec::new()),
            [one] => one.run(ACCEPT, connection).await?,
            [first, ..] => first.run_for(&all, connection).await?,
        };
        let (mut results, mut waiting) = (BTreeMap::new(), Vec::new());
        for (one, row) in all.iter().zip(&rows) {
            let written = match Written::read(row)? {
                // Its row has to be changed, or was not there yet when the statement began.
                Written::Undecided => one.reopen(connection).await?,
                written => written,
            };
            if written == Written::Waiting {
                waiting.push(one.key());
            }
            results.insert(one.key(), written.into());
        }
        for same_tenant in waiting.chunk_by(|(a, _), (b, _)| a == b) {
            let ids: Vec<&str> = same_tenant.iter().map(|(_, id)| *id).collect();
            let statement = sqlx::query(BRING_FORWARD)
                .bind(all.first().map(|one| one.delivery.endpoint()))
                .bind(same_tenant.first().map(|(tenant, _)| *tenant))
                .bind(ids);
            statement.execute(&mut *connection).await?;
        }
        let mut of_each = Vec::with_capacity(group.len());
        for one in group {
            let result = results
                .get_mut(&one.key())
                .ok_or(sqlx::Error::RowNotFound)?;
            of_each.push(*result);
            if let Accepted::New { .. } = result {
                // Only for its first request.
                *result = Accepted::Known;
            }
        }
        Ok(of_each)
    }
}

impl Acceptance {
    /// Runs `ACCEPT` or `REOPEN`. All of the answer is read, since the statement may be a transaction
    /// of its own.
    async fn run(
        &self,
        statement: &'static str,
        connection: &mut PgConnection,
    ) -> sqlx::Result<Vec<PgRow>> {
        let (delivery, request) = (&self.delivery, &self.request);
        sqlx::query(statement)
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
            .await
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

    async fn reopen(&self, connection: &mut PgConnection) -> sqlx::Result<Written> {
        let rows = self.run(REOPEN, connection).await?;
        Written::read(rows.first().ok_or(sqlx::Error::RowNotFound)?)
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
    Undecided,
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
            Some("waiting") => Self::Waiting,
            Some(_) | None => Self::Undecided,
        })
    }
}

impl From<Written> for Accepted {
    fn from(written: Written) -> Self {
        match written {
            Written::New { begun } => Self::New { begun },
            Written::Processed => Self::Processed,
            // Undecided: another process has accepted it since the statement began.
            Written::Known | Written::Waiting | Written::Undecided => Self::Known,
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
