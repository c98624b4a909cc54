//! Keeps deliveries before their handlers run, makes kept deliveries due when they are sent again, and checks
//! whether there is room.

use std::collections::HashSet;

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use crate::provider::delivery::Delivery;
use crate::recovery::kept_request::KeptRequest;
use crate::recovery::liveness::Taker;
use crate::recovery::taken::Take;
use crate::transaction::pg_time::{interval, unix_time};
use crate::transaction::{DatabaseError, RowKeys, Store, keyed};

/// Waits for the transactions that set deliveries aside, so that provider lists leave them alone (`set_aside.sql`).
/// Until the end of this transaction, no other transaction can set deliveries aside, because its insert needs a lock
/// that this lock excludes. Without this lock, a delivery could run twice. Suppose that a provider list makes its last
/// check, and the delivery is then processed and forgotten. After that, the list would commit the delivery.
const HOLD_DISCARDED: &str = "lock table idempotent_webhook.discarded in share mode";

/// A request to keep before its handler runs.
#[derive(Clone, Debug)]
pub(crate) struct Acceptance {
    pub(crate) delivery: Delivery,
    pub(crate) request: KeptRequest,
    /// The number under which it is taken, if its first attempt starts now, in this process.
    pub(crate) taker: Option<Taker>,
}

/// The result of keeping a request before its handler runs.
#[derive(Clone, Debug)]
pub(crate) enum Accepted {
    /// It is kept now. If there is a `Take`, its first attempt starts at once.
    New(Option<Take>),
    /// It was kept before.
    Known,
    /// It was processed before.
    Processed,
    /// It is not kept: the database belongs to another environment, where no process would run it.
    Elsewhere,
}

impl Accepted {
    fn read(row: &PgRow, taker: &Option<Taker>) -> sqlx::Result<Self> {
        if row.try_get("processed")? {
            return Ok(Self::Processed);
        }
        if !row.try_get("is_home")? {
            return Ok(Self::Elsewhere);
        }
        let Some(takes) = row.try_get::<Option<i64>, _>("takes")? else {
            return Ok(Self::Known);
        };
        let is_taken: bool = row.try_get("is_taken")?;
        let taker = taker.as_ref().filter(|_| is_taken);
        Ok(Self::New(taker.map(|taker| Take {
            takes,
            retries: 0,
            _taker: taker.clone(),
        })))
    }
}

/// Keeps requests of one endpoint, with one statement. If two requests have the same key, the result is `New` for the
/// first one, and `Known` for the second one.
pub(crate) async fn accept(
    connection: &mut PgConnection,
    group: &[&Acceptance],
    waits_while_paused: bool,
    environment: Option<&str>,
) -> sqlx::Result<Vec<Accepted>> {
    let Some(first) = group.first() else {
        return Ok(Vec::new());
    };
    let (endpoint, is_reconciled) = (first.delivery.endpoint(), first.delivery.is_reconciled());
    let rows = sqlx::query(include_str!("accept.sql"))
        .bind(endpoint)
        .bind(column(group, |one| one.delivery.key_tenant()))
        .bind(column(group, |one| one.delivery.id().as_str()))
        .bind(column(group, |one| one.delivery.tenant()))
        .bind(column(group, |one| one.delivery.event_type()))
        .bind(column(group, |one| {
            unix_time(one.delivery.first_received_at())
        }))
        .bind(column(group, |one| one.taker.as_ref().map(Taker::number)))
        .bind(column(group, |one| one.request.body_bytes()))
        .bind(column(group, |one| one.request.method.as_str()))
        .bind(column(group, |one| &*one.request.uri))
        .bind(column(group, |one| &*one.request.headers))
        .bind(column(group, |one| &*one.request.body))
        .bind(column(group, |one| one.delivery.signed_at().map(unix_time)))
        .bind(waits_while_paused)
        .bind(is_reconciled)
        .bind(first.request.archived_for.map(interval))
        .bind(environment)
        .fetch_all(&mut *connection)
        .await?;
    let mut seen = HashSet::new();
    let mut accepted = Vec::with_capacity(group.len());
    for (one, row) in group.iter().zip(&rows) {
        let is_first = seen.insert((one.delivery.key_tenant(), one.delivery.id()));
        accepted.push(match Accepted::read(row, &one.taker)? {
            Accepted::New(_) if !is_first => Accepted::Known,
            accepted => accepted,
        });
    }
    let is_any_new = accepted
        .iter()
        .any(|accepted| matches!(accepted, Accepted::New(_)));
    if is_reconciled && is_any_new {
        let new: RowKeys = group
            .iter()
            .zip(&accepted)
            .filter(|(_, accepted)| matches!(accepted, Accepted::New(_)))
            .map(|(one, _)| key(&one.delivery))
            .collect();
        // A later `forget` waits for this transaction, and deletes what this transaction has kept.
        sqlx::query(HOLD_DISCARDED)
            .execute(&mut *connection)
            .await?;
        let leave = new.bind(sqlx::query(include_str!("leave_known.sql")), endpoint);
        let known = RowKeys::read(&leave.fetch_all(connection).await?)?;
        for (one, accepted) in group.iter().zip(&mut accepted) {
            if known.contains(&key(&one.delivery)) {
                *accepted = Accepted::Known;
            }
        }
    }
    Ok(accepted)
}

fn key(delivery: &Delivery) -> (String, String) {
    (
        delivery.key_tenant().to_owned(),
        delivery.id().as_str().to_owned(),
    )
}

fn column<'a, T>(group: &[&'a Acceptance], value: impl Fn(&'a Acceptance) -> T) -> Vec<T> {
    group.iter().map(|one| value(one)).collect()
}

impl Store {
    /// Makes a kept delivery due because it was sent again. Returns `Known`, `Processed` or `Elsewhere`.
    pub(crate) async fn resend(&self, acceptance: &Acceptance) -> Result<Accepted, DatabaseError> {
        let (delivery, request) = (&acceptance.delivery, &acceptance.request);
        let environment = self.environment().name();
        let statement = || {
            keyed(include_str!("resend.sql"), delivery)
                .bind(delivery.tenant())
                .bind(delivery.event_type())
                .bind(unix_time(delivery.first_received_at()))
                .bind(request.body_bytes())
                .bind(request.method.as_str())
                .bind(&*request.uri)
                .bind(&*request.headers)
                .bind(&*request.body)
                .bind(delivery.signed_at().map(unix_time))
                .bind(request.archived_for.map(interval))
                .bind(environment.as_deref())
        };
        let note = || keyed(include_str!("note_resent.sql"), delivery);
        // The note has a transaction of its own, because `resend.sql` may wait for a row. An operator's operation waits
        // for the transaction of the note, and must not wait for that row as well.
        self.run(note).await?;
        Ok(match self.read_one(statement).await? {
            (true, _) => Accepted::Processed,
            (false, true) => Accepted::Known,
            (false, false) => Accepted::Elsewhere,
        })
    }

    /// Whether a delivery was processed, or has a row.
    pub(crate) async fn is_known(&self, delivery: &Delivery) -> Result<bool, DatabaseError> {
        let statement = || keyed(include_str!("is_known.sql"), delivery);
        let (is_known,) = self.read_one(statement).await?;
        Ok(is_known)
    }

    /// Whether an endpoint keeps at least this many deliveries, or at least this many bytes.
    pub(crate) async fn is_full(
        &self,
        endpoint: &str,
        deliveries: i64,
        bytes: i64,
    ) -> Result<bool, DatabaseError> {
        let statement = || {
            sqlx::query(include_str!("is_full.sql"))
                .bind(endpoint)
                .bind(deliveries)
                .bind(bytes)
        };
        let (is_full,) = self.read_one(statement).await?;
        Ok(is_full)
    }
}
