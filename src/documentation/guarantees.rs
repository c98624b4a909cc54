//! Guarantees.
