//! Forgetting a processed delivery, so that it is processed again.

use super::endpoint::Endpoint;
use crate::transaction::BEGIN_APART;

const FORGET: &str = "
    -- First, as a reprocess does. Nobody else's attempt holds it for long if the delivery is processed.
    with kept as materialized (
        select 1
        from idempotent_webhook.kept_deliveries
        where endpoint = $1 and tenant = $2 and delivery_id = $3
            and exists (
                select
                from idempotent_webhook.deliveries
                where endpoint = $1 and tenant = $2 and delivery_id = $3
            )
        for update
    ),
    forgotten as (
        delete from idempotent_webhook.deliveries
        where endpoint = $1 and tenant = $2 and delivery_id = $3
            and (select count(*) from kept) >= 0
        returning endpoint, tenant, delivery_id, digest
    ),
    body as (
        delete from idempotent_webhook.bodies
        using forgotten
        where bodies.endpoint = forgotten.endpoint
            and bodies.tenant = forgotten.tenant
            -- Redundant, but the digest is in the index.
            and bodies.digest = forgotten.digest
            and bodies.delivery_id = forgotten.delivery_id
    ),
    -- Obsolete: it was kept before it was processed. It must not run again by itself.
    failure as (
        delete from idempotent_webhook.kept_deliveries
        using forgotten
        where kept_deliveries.endpoint = forgotten.endpoint
            and kept_deliveries.tenant = forgotten.tenant
            and kept_deliveries.delivery_id = forgotten.delivery_id
    )
    select from forgotten
";

impl Endpoint {
    /// Forgets a processed delivery, so that it is processed again when the provider resends it.
    /// Returns whether it was there.
    ///
    /// This is for repairs: the handler had a bug, is fixed, and a delivery that it has
    /// acknowledged must be processed again. Undo its effects, forget the delivery, and have the
    /// provider resend it. The handler's
    /// [idempotency keys](crate::Delivery::idempotency_key) are the same as the first time.
    ///
    /// What is kept of the delivery goes as well. If its request stays
    /// ([`Keep::processed_for`](crate::Keep::processed_for)), [`reprocess`](Self::reprocess) needs no
    /// provider.
    ///
    /// It is logged at INFO, with the endpoint and the delivery id.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn forget(&self, delivery_id: &str) -> sqlx::Result<bool> {
        let tenant = self.tenant.as_deref().unwrap_or_default();
        // In a transaction, so that PgBouncer keeps the statement on one connection from its
        // preparation to its end.
        let mut tx = self.pool.begin_with(BEGIN_APART).await?;
        let forgotten = sqlx::query(FORGET)
            .bind(&*self.name)
            .bind(tenant)
            .bind(delivery_id)
            .fetch_optional(&mut *tx)
            .await?;
        tx.commit().await?;
        let found = forgotten.is_some();
        tracing::info!(
            endpoint = &*self.name,
            tenant,
            delivery_id,
            found,
            "webhook delivery forgotten"
        );
        Ok(found)
    }
}
