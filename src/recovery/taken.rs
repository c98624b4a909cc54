//! A kept delivery that an attempt has taken, and the mark by which `layer/request/service.rs` recognizes its
//! request. The statement that takes deliveries is `kept/take.sql`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{Method, Request, Uri};
use http_body_util::Full;
use sqlx::Row;
use sqlx::postgres::PgRow;
use tokio::sync::OwnedSemaphorePermit;

use super::kept_request::{FORMAT, decode};
use super::liveness::Taker;
use super::served_endpoints::{Running, Served};
use crate::metrics::outcome::Outcome;
use crate::provider::delivery::{Delivery, DeliveryId, Past, Tenant, VerifiedDelivery};
use crate::transaction::pg_time::from_unix_time;
use crate::transaction::{DatabaseError, Explained, RowKeys, Store};

/// Identifies the attempt that has taken a kept delivery. The writes of this attempt have no effect once another
/// attempt has taken the delivery.
#[derive(Clone, Debug)]
pub(crate) struct Take {
    /// The take number: the value of the column `takes` after this take. It is more than a count of takes: its first
    /// value is the time when the row was created, and everything that ends an attempt increases it.
    pub(crate) takes: i64,
    /// How many attempts of the schedule there have been, this one included.
    pub(crate) retries: u32,
    /// The number of this process under which the delivery was taken (`liveness/mod.rs`). It is held until the result
    /// is recorded. If it is dropped before that, the delivery becomes free for another attempt.
    pub(super) _taker: Taker,
}

/// The mark of a recovery attempt, in the extensions of a request that was verified when it was kept. No request
/// from outside can have the mark: extensions do not come over the wire, and the type is private.
#[derive(Clone, Debug)]
pub(crate) struct RecoveryAttempt(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    stored: StoredDelivery,
    take: Take,
    /// Whether the layer of the endpoint was reached, and has taken over the attempt.
    reached: AtomicBool,
    /// The layer's answer.
    outcome: OnceLock<Outcome>,
    /// Held until the end of the layer's work, even if a middleware answers before that.
    place: OnceLock<Place>,
}

/// What a running attempt occupies: a slot, and a place among the endpoint's running attempts.
#[derive(Debug)]
pub(super) struct Place {
    /// Dropped before the slot, since the runner counts the running attempts when it gets the slot.
    pub(super) _running: Running,
    pub(super) _slot: OwnedSemaphorePermit,
}

/// The delivery of a kept row. The name of the provider is not in the row: the layer knows it.
#[derive(Debug)]
pub(super) struct StoredDelivery {
    endpoint: Arc<str>,
    tenant: Option<Tenant>,
    verified: VerifiedDelivery,
    past: Past,
}

impl StoredDelivery {
    pub(super) fn read(row: &PgRow, endpoint: Arc<str>) -> sqlx::Result<Self> {
        Ok(Self {
            endpoint,
            tenant: tenant_of(row)?,
            verified: verified_of(row)?,
            past: Past {
                attempt: count(row, "attempts")?,
                first_received_at: from_unix_time(row.try_get("first_received_at")?),
                reprocessed: row.try_get("reprocessed")?,
                reconciled: row.try_get("reconciled")?,
                rehearsed: false,
            },
        })
    }

    pub(super) fn delivery(&self, provider: Arc<str>) -> Delivery {
        Delivery::new(
            self.endpoint.clone(),
            provider,
            self.tenant.clone(),
            self.verified.clone(),
        )
        .with_past(self.past.clone())
    }
}

fn count(row: &PgRow, column: &str) -> sqlx::Result<u32> {
    Ok(row.try_get::<i32, _>(column)?.max(0).cast_unsigned())
}

/// A taken delivery, and its request.
pub(super) struct Taken {
    pub(super) attempt: RecoveryAttempt,
    /// How many attempts in a row before this one did not end.
    unfinished_in_a_row: i32,
    /// Whether this is the first take since an attempt that did not end.
    found_unfinished: bool,
    pub(super) request: Result<Request<Full<Bytes>>, Unreadable>,
}

/// Why the request of a kept delivery cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The request is damaged, or was not read.
    Damaged,
    /// The request is kept in a format of another version of this crate.
    OtherFormat,
}

impl Taken {
    /// Reads the deliveries that `take.sql` has taken, and their requests, once the take is committed.
    pub(super) async fn read_all(
        rows: &[PgRow],
        served: &Arc<Served>,
        taker: &Taker,
        store: &Store,
    ) -> Result<Vec<Self>, DatabaseError> {
        let mut taken = Vec::new();
        for row in rows {
            match Self::read(row, served, taker) {
                Ok(one) => taken.push(one),
                Err(error) => cannot_read(served, &error),
            }
        }
        let to_run = taken.iter().filter(|taken| !taken.has_failed_unfinished());
        let keys: RowKeys = to_run
            .map(|taken| taken.attempt.key())
            .map(|(tenant, id)| (tenant.to_owned(), id.to_owned()))
            .collect();
        if keys.is_empty() {
            return Ok(taken);
        }
        let requests = store.requests(&served.endpoint, &keys).await?;
        taken.retain_mut(|one| {
            let key = one.attempt.key();
            let is_its = |row: &&PgRow| {
                let read = |column| row.try_get::<&str, _>(column).unwrap_or_default();
                (read("tenant"), read("delivery_id")) == key
            };
            let Some(row) = requests.iter().find(is_its) else {
                return true;
            };
            let request = request_of(row, one.attempt.clone());
            let request = request.inspect_err(|error| cannot_read(served, error));
            request.map(|request| one.request = request).is_ok()
        });
        Ok(taken)
    }

    fn read(row: &PgRow, served: &Arc<Served>, taker: &Taker) -> sqlx::Result<Self> {
        let attempt = RecoveryAttempt(Arc::new(Inner {
            stored: StoredDelivery::read(row, served.endpoint.clone())?,
            take: Take {
                takes: row.try_get("takes")?,
                retries: count(row, "retries")?,
                _taker: taker.clone(),
            },
            reached: AtomicBool::new(false),
            outcome: OnceLock::new(),
            place: OnceLock::new(),
        }));
        Ok(Self {
            unfinished_in_a_row: row.try_get("unfinished_in_a_row")?,
            found_unfinished: row.try_get("found_unfinished")?,
            request: Err(Unreadable::Damaged),
            attempt,
        })
    }

    /// Whether this take has found that a second attempt in a row did not end. If so, a failure is recorded, and this
    /// take starts no attempt. A single attempt that did not end is no failure, because another delivery may have
    /// killed the process.
    pub(super) fn has_failed_unfinished(&self) -> bool {
        self.found_unfinished && self.unfinished_in_a_row > 1
    }

    /// Whether this is an attempt after a [failure](Self::has_failed_unfinished) because attempts did not end. The
    /// attempt may kill its process, and other attempts with it.
    pub(super) fn runs_alone(&self) -> bool {
        !self.found_unfinished && self.unfinished_in_a_row > 1
    }
}

/// Logs a row that cannot be read, because the schema belongs to another version of this crate. The delivery is
/// taken again and again.
fn cannot_read(served: &Served, error: &sqlx::Error) {
    tracing::error!(
        endpoint = &*served.endpoint,
        error = %Explained(error),
        "webhook recovery cannot read a kept delivery"
    );
}

/// The tenant of a row of `kept_deliveries`.
pub(super) fn tenant_of(row: &PgRow) -> sqlx::Result<Option<Tenant>> {
    let key_tenant: String = row.try_get("tenant")?;
    let separate_ids = !key_tenant.is_empty();
    let name: Option<String> = row.try_get("tenant_name")?;
    let name = name.or(separate_ids.then_some(key_tenant));
    Ok(name.map(|name| Tenant {
        name: name.into(),
        separate_ids,
    }))
}

/// The verified delivery of a row of `kept_deliveries`: what was read from its request.
pub(super) fn verified_of(row: &PgRow) -> sqlx::Result<VerifiedDelivery> {
    let signed_at: Option<f64> = row.try_get("signed_at")?;
    Ok(VerifiedDelivery {
        id: DeliveryId::new(row.try_get("delivery_id")?),
        event_type: row.try_get("event_type")?,
        signed_at: signed_at.map(from_unix_time),
        secret: None,
        other_version: None,
    })
}

/// Reads a row of `kept_requests`, and gives the request the mark of the attempt.
pub(super) fn request_of(
    row: &PgRow,
    mark: impl Clone + Send + Sync + 'static,
) -> sqlx::Result<Result<Request<Full<Bytes>>, Unreadable>> {
    let request = kept_request_of(row)?.map(|request| {
        let mut request = request.map(Full::from);
        request.extensions_mut().insert(mark);
        request
    });
    Ok(request)
}

/// Reads a row of `kept_requests`, without a mark.
pub(crate) fn kept_request_of(row: &PgRow) -> sqlx::Result<Result<Request<Bytes>, Unreadable>> {
    if row.try_get::<i16, _>("format")? != FORMAT {
        return Ok(Err(Unreadable::OtherFormat));
    }
    let method: String = row.try_get("method")?;
    let uri: String = row.try_get("uri")?;
    let headers: Vec<u8> = row.try_get("headers")?;
    let body: Vec<u8> = row.try_get("body")?;
    let (Ok(method), Ok(uri), Some(headers)) = (
        method.parse::<Method>(),
        uri.parse::<Uri>(),
        decode(&headers),
    ) else {
        return Ok(Err(Unreadable::Damaged));
    };
    let mut request = Request::new(Bytes::from(body));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    Ok(Ok(request))
}

impl RecoveryAttempt {
    /// The delivery, if it is for this endpoint.
    pub(crate) fn delivery_for(&self, endpoint: &Arc<str>, provider: Arc<str>) -> Option<Delivery> {
        (self.0.stored.endpoint == *endpoint).then(|| self.delivery(provider))
    }

    pub(super) fn delivery(&self, provider: Arc<str>) -> Delivery {
        self.0.stored.delivery(provider)
    }

    /// The tenant and the id of its row.
    pub(super) fn key(&self) -> (&str, &str) {
        let stored = &self.0.stored;
        let tenant = stored.tenant.as_ref();
        let tenant = tenant.filter(|tenant| tenant.separate_ids);
        (
            tenant.map_or("", |tenant| &tenant.name),
            stored.verified.id.as_str(),
        )
    }

    pub(crate) fn take(&self) -> &Take {
        &self.0.take
    }

    /// Holds the place until the end of the attempt.
    pub(super) fn hold(&self, place: Place) {
        // An attempt gets only one place.
        let _ = self.0.place.set(place);
    }

    /// Notes that the layer has taken over the attempt, and will record its result.
    pub(crate) fn reach(&self) {
        self.0.reached.store(true, Ordering::Relaxed);
    }

    pub(super) fn was_reached(&self) -> bool {
        self.0.reached.load(Ordering::Relaxed)
    }

    /// Notes that the result is recorded.
    pub(crate) fn end(&self, outcome: Outcome) {
        // An attempt has only one result.
        let _ = self.0.outcome.set(outcome);
    }

    pub(super) fn outcome(&self) -> Option<Outcome> {
        self.0.outcome.get().copied()
    }
}
