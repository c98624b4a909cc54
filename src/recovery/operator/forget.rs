//! Forgetting a processed delivery, so that it is processed again.

use super::endpoint::Endpoint;
use crate::recovery::operator;
use crate::transaction::RowKeys;

impl Endpoint {
    /// Forgets a processed delivery, so that it is processed again when the provider resends it. Returns whether
    /// the delivery was known.
    ///
    /// This is for repairs: a bug in the handler was fixed, and a delivery that the handler has acknowledged must be
    /// processed again. Undo the effects of the first run, forget the delivery, and have the provider resend it. The
    /// handler's [idempotency keys](crate::Delivery::idempotency_key) are the same as in the first run.
    ///
    /// The kept row of the delivery is deleted, too. If the request is still archived
    /// ([`Keep::processed_for`](crate::Keep::processed_for)), [`reprocess`](Self::reprocess) is simpler, because it
    /// does not need the provider.
    ///
    /// The call is logged at INFO, with the endpoint and the delivery id.
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
