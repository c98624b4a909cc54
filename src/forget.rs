//! Having a delivery processed once more.

use sqlx::PgPool;

use crate::delivery::{DeliveryId, DeliveryKey};
use crate::recent;

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
            -- Redundant, but by its digest it is found in the index.
            and bodies.digest = forgotten.digest
            and bodies.delivery_id = forgotten.delivery_id
    ),
    -- Attempts that failed before it was processed.
    failure as (
        delete from idempotent_webhook.failures
        using forgotten
        where failures.endpoint = forgotten.endpoint
            and failures.tenant = forgotten.tenant
            and failures.delivery_id = forgotten.delivery_id
    )
    select from forgotten
";

/// Forgets a delivery, so that it is processed once more when the provider delivers it
/// again. Returns whether there was one.
///
/// For repairs: the handler has a fault, is mended, and a delivery that it acknowledged has
/// to be done over. Undo what it has done, forget the delivery, and have the provider
/// resend it. The handler's [idempotency keys](crate::Delivery::idempotency_key) are the
/// same as the first time.
///
/// Layers of this process that [`remember`](crate::IdempotentWebhook::remember) the delivery
/// forget it as well. Those of other processes do not learn of it: they go on answering its
/// duplicates until the time is up that was given to `remember`, or until they are
/// restarted.
///
/// It is logged at the level INFO, with the endpoint and the delivery id.
///
/// # Errors
///
/// Whatever Postgres reports.
///
/// ```no_run
/// # async fn main_(pool: sqlx::PgPool) -> sqlx::Result<()> {
/// if !idempotent_webhook::forget(&pool, "billing", "evt_1Qx").await? {
///     eprintln!("it was never processed, or pruned since");
/// }
/// # Ok(())
/// # }
/// ```
pub async fn forget(pool: &PgPool, endpoint: &str, delivery_id: &str) -> sqlx::Result<bool> {
    forget_for_tenant(pool, endpoint, "", delivery_id).await
}

/// Like [`forget`], for a delivery of a tenant where
/// [`separate_ids`](crate::TenantSecrets::separate_ids) is on.
///
/// # Errors
///
/// Whatever Postgres reports.
pub async fn forget_for_tenant(
    pool: &PgPool,
    endpoint: &str,
    tenant: &str,
    delivery_id: &str,
) -> sqlx::Result<bool> {
    // In a transaction, so that PgBouncer keeps the statement on one connection from its
    // preparation to its end.
    let mut tx = pool.begin().await?;
    let forgotten = sqlx::query(FORGET)
        .bind(endpoint)
        .bind(tenant)
        .bind(delivery_id)
        .fetch_optional(&mut *tx)
        .await?;
    // Also if the answer to the commit is lost, or not waited for.
    let in_memory = ForgetInMemory {
        endpoint,
        key: DeliveryKey {
            tenant: (!tenant.is_empty()).then(|| tenant.into()),
            id: DeliveryId::new(delivery_id.to_owned()),
        },
    };
    tx.commit().await?;
    drop(in_memory);
    let found = forgotten.is_some();
    tracing::info!(
        endpoint,
        tenant,
        delivery_id,
        found,
        "webhook delivery forgotten"
    );
    Ok(found)
}

/// Forgets a delivery in the memory of this process when it is dropped.
struct ForgetInMemory<'a> {
    endpoint: &'a str,
    key: DeliveryKey,
}

impl Drop for ForgetInMemory<'_> {
    fn drop(&mut self) {
        recent::forget(self.endpoint, &self.key);
    }
}
