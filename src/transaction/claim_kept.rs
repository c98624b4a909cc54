//! What the claim of a kept delivery checks besides.

use super::claim::{ClaimRequest, claim_lock};
use super::connection::{TransactionId, TxConnection};
use super::pg_error::{DatabaseError, with_timeout};
use super::store::Store;

/// Claims a delivery that is still kept and may run, if no other attempt holds its lock. Otherwise
/// does nothing but lock, and the two statements that may wait find out why.
///
/// It must not wait for the lock itself: what it has read before could be over then. The order of the
/// locks is that of the two statements: of the claim, then of the row.
const CLAIM_KEPT: &str = concat!(
    "
    with locked as materialized (
        select pg_try_advisory_xact_lock(",
    claim_lock!(),
    ") as is_locked
    ),
    kept as materialized (
        select exists (
            select
            from idempotent_webhook.kept_endpoints
            where endpoint = $1 and (paused_at is not null or cardinality(failed_ids) >= $6)
        ) as is_held
        from idempotent_webhook.kept_deliveries
        where endpoint = $1 and tenant = $2 and delivery_id = $3 and (select is_locked from locked)
        for key share
    )
    insert into idempotent_webhook.deliveries (endpoint, tenant, delivery_id, event_type, digest)
    select $1, $2, $3, $4, $5
    from kept
    where not is_held
    on conflict do nothing
    returning pg_current_xact_id()::text
"
);

/// Keeps a row of recovery until the end of the transaction: `discard` and `forget` wait for it.
/// Returns whether the endpoint is paused, or has failed often enough to be probed only.
const STILL_KEPT: &str = "
    select exists (
        select
        from idempotent_webhook.kept_endpoints
        where endpoint = $1 and (paused_at is not null or cardinality(failed_ids) >= $4)
    )
    from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
    for key share
";

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

impl Store {
    /// Claims a kept delivery with one statement, if nothing is in the way.
    pub(super) async fn claim_kept(
        &self,
        connection: &mut TxConnection,
        request: ClaimRequest<'_>,
        held_by: HeldBy,
    ) -> Result<Option<TransactionId>, DatabaseError> {
        let ClaimRequest {
            delivery,
            fingerprint,
            ..
        } = request;
        let claimed: Option<String> = with_timeout(
            self.timeout,
            sqlx::query_scalar(CLAIM_KEPT)
                .bind(delivery.endpoint())
                .bind(delivery.key_tenant())
                .bind(delivery.id())
                .bind(delivery.event_type())
                .bind(fingerprint.map(|fingerprint| fingerprint.digest))
                .bind(held_by.failures)
                .fetch_optional(&mut **connection),
        )
        .await?;
        Ok(claimed.map(TransactionId))
    }

    /// Whether a delivery that has been claimed is still kept, and may run.
    pub(super) async fn still_kept(
        &self,
        connection: &mut TxConnection,
        request: ClaimRequest<'_>,
        held_by: HeldBy,
    ) -> Result<StillKept, DatabaseError> {
        let is_held: Option<bool> = with_timeout(
            self.timeout,
            sqlx::query_scalar(STILL_KEPT)
                .bind(request.delivery.endpoint())
                .bind(request.delivery.key_tenant())
                .bind(request.delivery.id())
                .bind(held_by.failures)
                .fetch_optional(&mut **connection),
        )
        .await?;
        Ok(match is_held {
            Some(false) => StillKept::Yes,
            Some(true) => StillKept::Held,
            None => StillKept::No,
        })
    }
}
