//! The claim of a canary (an operator's test request). The canary is claimed like a delivery, and the claim is rolled
//! back.

use tokio::time::Instant;

use crate::layer::settings::Settings;
use crate::layer::verification::Canary;
use crate::provider::delivery::{Delivery, DeliveryId, Tenant, VerifiedDelivery};
use crate::tasks_and_errors::random::random;
use crate::transaction::{ClaimRequest, NotClaimed};

impl Settings {
    /// Claims an id that no delivery has, and rolls back.
    pub(super) async fn try_claim(&self, tenant: Option<Tenant>) -> Canary {
        let request = self.claim_of_canary(tenant);
        let deadline = Instant::now() + self.in_flight_timeout;
        match self.store.claim(&request, deadline).await {
            Ok(tx) => {
                tx.roll_back().await;
                Canary::Claimed
            }
            Err(NotClaimed::Failed(error)) => Canary::NotClaimed(error.to_string()),
            // Not expected, because no other request has the canary's id.
            Err(other) => Canary::NotClaimed(format!("{other:?}")),
        }
    }

    /// The claim request of a canary. It has a new id and no fingerprint, so it waits for no other claim, and no other
    /// claim waits for it.
    fn claim_of_canary(&self, tenant: Option<Tenant>) -> ClaimRequest {
        let verification = &self.verification;
        let canary = VerifiedDelivery {
            id: DeliveryId::new(format!("idempotent-webhook-canary-{:016x}", random())),
            event_type: None,
            signed_at: None,
            secret: None,
            other_version: None,
        };
        let (endpoint, provider) = (&verification.endpoint, verification.provider.shared_name());
        ClaimRequest {
            delivery: Delivery::new(endpoint.clone(), provider, tenant, canary),
            fingerprint: None,
            object: None,
            object_wait: None,
            longest_idle: self.longest_attempt(),
            take: None,
            rehearsed: None,
            version: self.version.clone(),
        }
    }
}
