//! Which deliveries are still signed with an older secret, so that the end of a rotation can be seen.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::info;

/// How often it is told of each tenant, or of an endpoint without tenants.
const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// The most tenants that are told in this time.
const MAX_TENANTS: usize = 100;

/// Of which tenants it was told, over a layer and its clones.
#[derive(Debug, Default)]
pub(super) struct OlderSecrets(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    since: Option<Instant>,
    /// `None` if there are none.
    tenants: BTreeSet<Option<Arc<str>>>,
}

impl OlderSecrets {
    /// A delivery was verified by the secret at this place.
    pub(super) fn note(&self, place: usize, tenant: Option<&Arc<str>>) {
        if place > 0 && self.is_to_tell(tenant) {
            info!(
                secret = place,
                tenant = tenant.map(|tenant| &**tenant),
                "webhook verified by an older secret, which is still in use (logged once a day)"
            );
        }
    }

    fn is_to_tell(&self, tenant: Option<&Arc<str>>) -> bool {
        // Nothing panics while it holds the lock.
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.since.is_none_or(|since| since.elapsed() >= INTERVAL) {
            told.since = Some(Instant::now());
            told.tenants.clear();
        }
        told.tenants.len() < MAX_TENANTS && told.tenants.insert(tenant.cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn y5_each_tenant_is_told_once_a_day_and_a_hundred_at_most() {
        let older = OlderSecrets::default();
        let is_to_tell = |tenant: &str| older.is_to_tell(Some(&tenant.into()));
        assert!(is_to_tell("acme"));
        assert!(!is_to_tell("acme"));
        let told = (0..1000).filter(|number| is_to_tell(&number.to_string()));
        assert_eq!(told.count(), MAX_TENANTS - 1);
        tokio::time::advance(INTERVAL - Duration::from_secs(1)).await;
        assert!(!is_to_tell("acme"));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(is_to_tell("acme"));
        assert!(is_to_tell("999"));
        assert!(!is_to_tell("acme"));
        assert!(older.is_to_tell(None));
        assert!(!older.is_to_tell(None));
    }
}
