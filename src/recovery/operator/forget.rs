//! Forgetting a processed delivery, so that it is processed again.

use super::endpoint::Endpoint;
use crate::recovery::operator;
use crate::transaction::RowKeys;

impl Endpoint {
    /// Forgets a processed delivery, so that it is processed again when the provider resends it.
    /// Returns whether it was there.
    ///
    /// This is for repairs: the handler had a bug, is fixed, and a delivery that it has
    /// acknowledged must be processed again. Undo its effects, forget the delivery, and have the
    /// provider resend it. The handler's
    /// [idempotency keys](crate::Delivery::idempotency_key) are the same as the first time.
    ///
    /// Its kept row goes as well. If its request stays ([`Keep::processed_for`](crate::Keep::processed_for)),
    /// [`reprocess`](Self::reprocess) needs no provider.
    ///
    /// It is logged at INFO, with the endpoint and the delivery id.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn forget(&self, delivery_id: &str) -> sqlx::Result<bool> {
        let claim = RowKeys::one(self.scope().tenant.unwrap_or_default(), delivery_id);
        let forget = async |tx: &mut _| operator::forget(&claim, &self.name, tx).await;
        let found = !operator::in_transaction(&self.pool, forget)
            .await?
            .is_empty();
        tracing::info!(
            endpoint = &*self.name,
            tenant = self.tenant.as_deref().unwrap_or_default(),
            delivery_id,
            found,
            "webhook delivery forgotten"
        );
        Ok(found)
    }
}
