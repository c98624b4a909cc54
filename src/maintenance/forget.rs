//! Forgetting a processed delivery, so that it is processed again.

use super::endpoint::Endpoint;
use crate::delivery::{DeliveryId, DeliveryKey};
use crate::in_flight;
use crate::transaction::BEGIN_APART;

const FORGET: &str = "
    with forgotten as (
        delete from idempotent_webhook.deliveries
        where endpoint = $1 and tenant = $2 and delivery_id = $3
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
    -- Postgres runs the last of these first: a row before its request, as in a discard.
    request as (
        delete from idempotent_webhook.kept_requests
        using forgotten
        where kept_requests.endpoint = forgotten.endpoint
            and kept_requests.tenant = forgotten.tenant
            and kept_requests.delivery_id = forgotten.delivery_id
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
    /// It also removes the delivery from the caches
    /// ([`cache_processed`](crate::IdempotentWebhook::cache_processed)) of this process. Other
    /// processes answer its duplicates from their caches until the entry expires or they are
    /// restarted.
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
        // Dropped in any case, also if the answer to the commit is lost or not waited for.
        let cached = RemoveFromCaches {
            endpoint: &self.name,
            key: DeliveryKey {
                tenant: self.tenant.clone(),
                id: DeliveryId::new(delivery_id.to_owned()),
            },
        };
        tx.commit().await?;
        drop(cached);
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

/// Removes a delivery from the caches of this process when it is dropped.
struct RemoveFromCaches<'a> {
    endpoint: &'a str,
    key: DeliveryKey,
}

impl Drop for RemoveFromCaches<'_> {
    fn drop(&mut self) {
        in_flight::forget(self.endpoint, &self.key);
    }
}
