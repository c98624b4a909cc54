//! An endpoint, as an operator's tool has it.

use std::sync::Arc;

use sqlx::PgPool;

/// The deliveries of an endpoint, for an operator's tool.
///
/// ```no_run
/// use idempotent_webhook::Endpoint;
///
/// # async fn main_(pool: sqlx::PgPool) -> sqlx::Result<()> {
/// if !Endpoint::new(pool, "billing").forget("evt_1Qx").await? {
///     eprintln!("it was never processed, or has been pruned");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(super) pool: PgPool,
    pub(super) name: Arc<str>,
    pub(super) tenant: Option<Arc<str>>,
}

impl Endpoint {
    /// The endpoint with the name that was given to
    /// [`IdempotentWebhook::new`](crate::IdempotentWebhook::new).
    pub fn new(pool: PgPool, name: impl Into<Arc<str>>) -> Self {
        Self {
            pool,
            name: name.into(),
            tenant: None,
        }
    }

    /// Only the deliveries of this tenant, where
    /// [`separate_ids`](crate::TenantSecrets::separate_ids) is on.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<Arc<str>>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }
}
