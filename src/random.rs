//! Random numbers that are good enough to tell things apart, without a library for it.

use std::hash::{BuildHasher, Hasher, RandomState};

pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// From 0 to 1.
pub(crate) fn random_fraction() -> f64 {
    random() as f64 / u64::MAX as f64
}
