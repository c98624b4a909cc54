//! Random numbers for nonces and jitter, not for secrets.

use std::hash::{BuildHasher, Hasher, RandomState};

pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Between 0 and 1.
pub(crate) fn random_fraction() -> f64 {
    random() as f64 / u64::MAX as f64
}
