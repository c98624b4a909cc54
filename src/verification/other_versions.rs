//! Which versions of the payload have come beside those that are expected.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tracing::warn;

use crate::provider::Provider;

/// The most versions that are logged. Where nobody signs them, whoever has captured a request can make them up.
const MAX_VERSIONS: usize = 10;

/// How much of a version is logged, in characters.
const MAX_VERSION: usize = 100;

/// Those that were logged, over a layer and its clones.
#[derive(Debug, Default)]
pub(super) struct OtherVersions(Mutex<BTreeSet<String>>);

impl OtherVersions {
    pub(super) fn note(&self, version: &str, provider: &Provider) {
        let version: String = version.chars().take(MAX_VERSION).collect();
        // Nothing panics while it holds the lock.
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = logged.len() < MAX_VERSIONS && logged.insert(version.clone());
        drop(logged);
        if is_new {
            warn!(
                version,
                expected = provider.expected_versions().join(", "),
                is_signed = provider.signs_payload_version(),
                "webhook of another version than is expected, or of another mode, and handled all the same (logged once)"
            );
        }
    }
}
