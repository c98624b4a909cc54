//! What the claim of a kept delivery checks besides.

use super::claim::{ClaimRequest, claim_lock};
use super::connection::{TransactionId, TxConnection};
use super::pg_error::{DatabaseError, with_timeout};
use super::store::Store;

/// Whether the endpoint is paused, or has failed so often that it is only probed.
macro_rules! is_held {
    () => {
        "exists (
            select
            from idempotent_webhook.kept_endpoints
            where endpoint = $1 and (paused_at is not null or cardinality(failed_ids) >= $4)
        )"
    };
}

/// The claim and `STILL_KEPT` in one statement, if no other attempt holds the lock of the claim, and the
/// delivery was not claimed before. Otherwise it does nothing but lock, and the two statements follow.
///
/// It must not wait for the lock itself: what it has read before could be over then. What it locks is in
/// the order of the two statements, which is that of `forget`: the claim, then the row of recovery.
const CLAIM_KEPT: &str = concat!(
    "
    with locked as materialized (
        select pg_try_advisory_xact_lock(",
    claim_lock!(),
    ") as is_locked
    ),
    claimed as (
        insert into idempotent_webhook.deliveries
            (endpoint, tenant, delivery_id, event_type, digest)
        select $1, $2, $3, $5, $6
        from locked
        where is_locked
        on conflict do nothing
        returning pg_current_xact_id()::text as id
    ),
    kept as materialized (
        select ",
    is_held!(),
    " as is_held
        from idempotent_webhook.kept_deliveries
        where endpoint = $1 and tenant = $2 and delivery_id = $3 and exists (select from claimed)
        for key share
    )
    select claimed.id, kept.is_held
    from claimed
    left join kept on true
"
);

/// Keeps a row of recovery until the end of the transaction: `discard` and `forget` wait for it.
/// Returns whether the endpoint is paused, or has failed often enough to be probed only.
const STILL_KEPT: &str = concat!(
    "
    select ",
    is_held!(),
    "
    from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
    for key share
"
);

/// What holds a kept delivery back since its attempt was counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldBy {
    /// With as many failures of the endpoint in a row, the attempt does not begin. `None` if any
    /// number will do.
    pub(crate) failures: Option<i32>,
}

/// What has become of a kept delivery since its attempt was counted.
pub(super) enum StillKept {
    Yes,
    /// It is, but its endpoint is held back.
    Held,
    /// It was discarded or forgotten.
    No,
}

impl StillKept {
    /// `None` if there is no row.
    fn new(is_held: Option<bool>) -> Self {
        match is_held {
            Some(false) => Self::Yes,
            Some(true) => Self::Held,
            None => Self::No,
        }
    }
}

impl Store {
    /// Claims a kept delivery with one statement, if nothing is in the way.
    pub(super) async fn claim_kept(
        &self,
        connection: &mut TxConnection,
        request: ClaimRequest<'_>,
        held_by: HeldBy,
    ) -> Result<Option<(TransactionId, StillKept)>, DatabaseError> {
        let ClaimRequest {
            delivery,
            fingerprint,
            ..
        } = request;
        let claimed: Option<(String, Option<bool>)> = with_timeout(
            self.timeout,
            sqlx::query_as(CLAIM_KEPT)
                .bind(delivery.endpoint())
                .bind(delivery.key_tenant())
                .bind(delivery.id())
                .bind(held_by.failures)
                .bind(delivery.event_type())
                .bind(fingerprint.map(|fingerprint| fingerprint.digest))
                .fetch_optional(&mut **connection),
        )
        .await?;
        Ok(claimed.map(|(id, is_held)| (TransactionId(id), StillKept::new(is_held))))
    }

    /// Whether a delivery that has been claimed is still kept, and may run.
    pub(super) async fn still_kept(
        &self,
        connection: &mut TxConnection,
        request: ClaimRequest<'_>,
        held_by: HeldBy,
    ) -> Result<StillKept, DatabaseError> {
        let is_held = with_timeout(
            self.timeout,
            sqlx::query_scalar(STILL_KEPT)
                .bind(request.delivery.endpoint())
                .bind(request.delivery.key_tenant())
                .bind(request.delivery.id())
                .bind(held_by.failures)
                .fetch_optional(&mut **connection),
        );
        Ok(StillKept::new(is_held.await?))
    }
}
