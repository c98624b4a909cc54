//! Reconciliation: deliveries that never came.
