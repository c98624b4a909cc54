//! The stored rows of a delivery.

use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::super::super::Access;
use super::super::super::claim_lock::{claim_lock, held_locks};
use super::super::super::html::Timestamp;
use super::super::super::rows::Key;

const PROCESSED: &str = "
    select extract(epoch from received_at)::float8 as processed_at, event_type
    from idempotent_webhook.deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
";

/// The rows of a kept delivery. A delivery is in flight if a session holds the lock of its claim.
const DELIVERY: &str = concat!(
    "
    select
        kept.state,
        kept.tenant_name,
        kept.event_type,
        kept.attempts,
        kept.status,
        kept.reason,
        (
            select number from idempotent_webhook.processes where number = kept.taken_by
        ) as process,
        kept.reconciled,
        extract(epoch from kept.first_received_at)::float8 as first_received_at,
        extract(epoch from kept.first_failed_at)::float8 as first_failed_at,
        extract(epoch from kept.last_failed_at)::float8 as last_failed_at,
        extract(epoch from kept.next_attempt_at)::float8 as next_attempt_at,
        extract(epoch from kept.unreached_at)::float8 as unreached_at,
        kept.unreached_status,
        state.paused_at is not null as paused,
        request.method,
        request.uri,
        request.headers,
        octet_length(request.body) as body_bytes,
        ",
    claim_lock!("$1", "$2", "$3"),
    " in (",
    held_locks!(),
    ") as in_flight
    from (select) as one
    left join idempotent_webhook.kept_deliveries as kept
        on kept.endpoint = $1 and kept.tenant = $2 and kept.delivery_id = $3
    left join idempotent_webhook.kept_requests as request
        on request.endpoint = $1 and request.tenant = $2 and request.delivery_id = $3
    left join idempotent_webhook.kept_endpoints as state
        on state.endpoint = $1
"
);

/// The failed attempts, latest first.
const HISTORY: &str = "
    select attempt.at, attempt.by, attempt.status, attempt.reason
    from idempotent_webhook.kept_deliveries as kept
    cross join lateral rows from (
        jsonb_to_recordset(kept.history) as (at float8, by text, status int2, reason text)
    ) with ordinality as attempt (at, by, status, reason, number)
    where kept.endpoint = $1 and kept.tenant = $2 and kept.delivery_id = $3
    order by attempt.number desc
";

const BODY: &str = "
    select case when $4::int4 is null then body else substring(body from 1 for $4) end
    from idempotent_webhook.kept_requests
    where endpoint = $1 and tenant = $2 and delivery_id = $3
";

/// Everything that is stored about a delivery.
#[derive(Serialize)]
pub(in crate::dashboard::pages) struct Delivery {
    pub(in crate::dashboard::pages) processed: Option<Timestamp>,
    pub(in crate::dashboard::pages) event_type: Option<String>,
    pub(in crate::dashboard::pages) is_paused: bool,
    pub(in crate::dashboard::pages) is_in_flight: bool,
    pub(in crate::dashboard::pages) kept: Option<Kept>,
    pub(in crate::dashboard::pages) request: Option<Request>,
}

/// A row of `kept_deliveries`.
#[derive(Serialize)]
pub(in crate::dashboard::pages) struct Kept {
    pub(in crate::dashboard::pages) state: String,
    pub(in crate::dashboard::pages) tenant_name: Option<String>,
    pub(in crate::dashboard::pages) attempts: i32,
    pub(in crate::dashboard::pages) status: Option<i16>,
    pub(in crate::dashboard::pages) reason: Option<String>,
    /// The number, in the table `processes`, of the process that runs an attempt.
    pub(in crate::dashboard::pages) process: Option<i64>,
    pub(in crate::dashboard::pages) is_running: bool,
    /// Whether reconciliation has received the delivery from the provider's list of events.
    pub(in crate::dashboard::pages) is_reconciled: bool,
    pub(in crate::dashboard::pages) first_received: Timestamp,
    pub(in crate::dashboard::pages) first_failed: Option<Timestamp>,
    pub(in crate::dashboard::pages) last_failed: Option<Timestamp>,
    pub(in crate::dashboard::pages) next_attempt: Option<Timestamp>,
    /// When the last recovery attempt reached no layer of the endpoint. `unreached_status` is the status of the
    /// response that the attempt received.
    pub(in crate::dashboard::pages) unreached: Option<Timestamp>,
    pub(in crate::dashboard::pages) unreached_status: Option<i16>,
    pub(in crate::dashboard::pages) failed_attempts: Vec<Attempt>,
}

#[derive(Serialize)]
pub(in crate::dashboard::pages) struct Attempt {
    pub(in crate::dashboard::pages) at: Timestamp,
    pub(in crate::dashboard::pages) by: String,
    pub(in crate::dashboard::pages) status: Option<i16>,
    pub(in crate::dashboard::pages) reason: Option<String>,
}

/// A row of `kept_requests`, without its body.
#[derive(Serialize)]
pub(in crate::dashboard::pages) struct Request {
    pub(in crate::dashboard::pages) method: String,
    pub(in crate::dashboard::pages) body_bytes: i32,
    /// The URI and the headers are only for readers who may see payloads.
    pub(in crate::dashboard::pages) uri: Option<String>,
    pub(in crate::dashboard::pages) headers: Option<Vec<(String, String)>>,
}

impl Delivery {
    pub(in crate::dashboard::pages) async fn read(
        connection: &mut PgConnection,
        key: &Key,
        access: &Access,
    ) -> sqlx::Result<Self> {
        let processed = of_key(PROCESSED, key);
        let processed = processed.fetch_optional(&mut *connection).await?;
        let row = of_key(DELIVERY, key).fetch_one(&mut *connection).await?;
        let history = of_key(HISTORY, key).fetch_all(&mut *connection).await?;
        let history = history
            .iter()
            .map(|row| Attempt::read(row, access))
            .collect::<sqlx::Result<_>>()?;
        let mut event_type: Option<String> = row.try_get("event_type")?;
        let mut processed_at = None;
        if let Some(processed) = processed {
            processed_at = Some(Timestamp(processed.try_get("processed_at")?));
            event_type = event_type.or(processed.try_get("event_type")?);
        }
        Ok(Self {
            processed: processed_at,
            event_type,
            kept: Kept::read(&row, history, access)?,
            request: Request::read(&row, access)?,
            is_paused: row.try_get("paused")?,
            is_in_flight: row.try_get("in_flight")?,
        })
    }

    pub(in crate::dashboard::pages) fn is_known(&self) -> bool {
        self.processed.is_some() || self.kept.is_some() || self.is_in_flight
    }

    /// The state as a word. A processed delivery counts as `processed`, even if a kept row of it still exists.
    pub(in crate::dashboard::pages) fn state(&self) -> &str {
        match &self.kept {
            _ if self.processed.is_some() => "processed",
            _ if self.is_in_flight => "in flight",
            Some(kept) if kept.is_running => "running",
            Some(kept) => &kept.state,
            None => "unknown",
        }
    }

    /// Whether the delivery is kept and has not failed yet, such as a delivery that the layer accepted to process it
    /// later.
    fn has_not_failed(&self) -> bool {
        let kept = self.kept.as_ref();
        kept.is_some_and(|kept| kept.last_failed.is_none())
    }

    /// The kept row, and the time when the last attempt reached no layer, if the delivery is due.
    pub(super) fn unreached(&self) -> Option<(&Kept, Timestamp)> {
        let kept = self.kept.as_ref().filter(|_| self.state() == "due")?;
        Some((kept, kept.unreached?))
    }

    pub(in crate::dashboard::pages) fn is_reconciled(&self) -> bool {
        let kept = self.kept.as_ref();
        kept.is_some_and(|kept| kept.is_reconciled)
    }

    pub(in crate::dashboard::pages) fn meaning(&self) -> &'static str {
        match self.state() {
            "processed" => "Its handler has succeeded, and what it wrote is committed.",
            "in flight" => "An attempt at it is running right now.",
            "running" => {
                "An attempt at it has started. If its process was killed, the next attempt starts within seconds."
            }
            "due" if self.is_paused => {
                "Its endpoint is paused: it runs again once the endpoint is resumed."
            }
            "due" if self.unreached().is_some() => {
                "It runs again and again, but its attempts reach no layer of its endpoint."
            }
            "due" if self.has_not_failed() => "It is accepted, and waits for its first attempt.",
            "due" => {
                "It has failed, and runs again within seconds of the time of the next attempt. While recovery probes \
                 its endpoint, it may have to wait longer."
            }
            "dead" => "It runs again only if somebody retries it, or the provider sends it again.",
            "recorded" if self.has_not_failed() => {
                "Its content was erased before it had failed. It is processed if the provider \
                 sends it again."
            }
            "recorded" => {
                "It has failed, and its request is not kept. It is processed if the provider \
                 sends it again."
            }
            _ => "",
        }
    }
}

impl Kept {
    fn read(row: &PgRow, history: Vec<Attempt>, access: &Access) -> sqlx::Result<Option<Self>> {
        let time = |column| -> sqlx::Result<Option<Timestamp>> {
            Ok(row.try_get::<Option<f64>, _>(column)?.map(Timestamp))
        };
        let Some(state) = row.try_get("state")? else {
            return Ok(None);
        };
        let process: Option<i64> = row.try_get("process")?;
        Ok(Some(Self {
            state,
            tenant_name: row.try_get("tenant_name")?,
            attempts: row.try_get("attempts")?,
            status: row.try_get("status")?,
            reason: seen(row, access)?,
            process,
            is_running: process.is_some(),
            is_reconciled: row.try_get("reconciled")?,
            first_received: Timestamp(row.try_get("first_received_at")?),
            first_failed: time("first_failed_at")?,
            last_failed: time("last_failed_at")?,
            next_attempt: time("next_attempt_at")?,
            unreached: time("unreached_at")?,
            unreached_status: row.try_get("unreached_status")?,
            failed_attempts: history,
        }))
    }
}

impl Attempt {
    fn read(row: &PgRow, access: &Access) -> sqlx::Result<Self> {
        Ok(Self {
            at: Timestamp(row.try_get("at")?),
            by: row.try_get("by")?,
            status: row.try_get("status")?,
            reason: seen(row, access)?,
        })
    }
}

/// The reason of a row, masked unless the reader may see payloads.
fn seen(row: &PgRow, access: &Access) -> sqlx::Result<Option<String>> {
    let reason: Option<String> = row.try_get("reason")?;
    Ok(reason.map(|reason| access.reason(reason)))
}

impl Request {
    fn read(row: &PgRow, access: &Access) -> sqlx::Result<Option<Self>> {
        let Some(method) = row.try_get("method")? else {
            return Ok(None);
        };
        let mut request = Self {
            method,
            body_bytes: row.try_get("body_bytes")?,
            uri: None,
            headers: None,
        };
        // Like a body, a query and a header may contain secrets.
        if access.may_see_payloads() {
            let headers: Vec<u8> = row.try_get("headers")?;
            let headers = String::from_utf8_lossy(&headers);
            let headers = headers.lines().map(|line| {
                let (name, value) = line.split_once(": ").unwrap_or((line, ""));
                (name.to_owned(), value.to_owned())
            });
            request.headers = Some(headers.collect());
            request.uri = row.try_get("uri")?;
        }
        Ok(Some(request))
    }
}

type KeyQuery<'q> = sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments>;

/// A statement whose first values are the delivery's key.
fn of_key<'q>(sql: &'static str, key: &'q Key) -> KeyQuery<'q> {
    sqlx::query(sql)
        .bind(&key.endpoint)
        .bind(&key.tenant)
        .bind(&key.id)
}

pub(super) async fn body(
    connection: &mut PgConnection,
    key: &Key,
    limit: Option<i32>,
) -> sqlx::Result<Option<Vec<u8>>> {
    let row = of_key(BODY, key)
        .bind(limit)
        .fetch_optional(connection)
        .await?;
    row.map(|row| row.try_get(0)).transpose()
}
