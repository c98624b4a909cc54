//! Forgetting a processed delivery, so that it is processed again.

use super::claims::Keys;
use super::endpoint::Endpoint;
use crate::recovery::control;
use crate::transaction::BEGIN_APART;

/// Waits for whoever changes what is kept of the delivery, as a reprocess does.
const LOCK_KEPT: &str = "
    select
    from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
    for update
";

/// It must not run again by itself.
const DELETE_KEPT: &str = "
    delete from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
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
        let found = control::is_processed(&self.pool, self.of(), delivery_id).await?
            && self.forget_processed(tenant, delivery_id).await?;
        tracing::info!(
            endpoint = &*self.name,
            tenant,
            delivery_id,
            found,
            "webhook delivery forgotten"
        );
        Ok(found)
    }

    async fn forget_processed(&self, tenant: &str, delivery_id: &str) -> sqlx::Result<bool> {
        let endpoint = &*self.name;
        let key = |sql| {
            sqlx::query(sql)
                .bind(endpoint)
                .bind(tenant)
                .bind(delivery_id)
        };
        let mut tx = self.pool.begin_with(BEGIN_APART).await?;
        // Nobody else's attempt holds it for long, since the delivery is processed.
        key(LOCK_KEPT).execute(&mut *tx).await?;
        let claim = Keys::one(tenant, delivery_id);
        let found = claim.delete_claims(endpoint, None, &mut tx).await? > 0;
        if found {
            key(DELETE_KEPT).execute(&mut *tx).await?;
        }
        tx.commit().await?;
        Ok(found)
    }
}
