//! How does each preset's provider sign, identify and retry?
//!
#![doc = include_str!("../../PROVIDERS.md")]
