//! Deletion of deliveries that can no longer be redelivered: `task.rs` and `prune.rs` start it, `pass.rs` orders the steps, and
//! `delete.rs` has the statements.

mod delete;
mod pass;
mod prune;
mod redelivery_window;
mod task;

use std::ops::AddAssign;

pub use prune::{PruneError, prune};
pub use task::{Retention, RetentionTask};

/// How many rows were deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// Deliveries that were received longer ago than the age.
    pub deliveries: u64,
    /// Subjects that were last advanced longer ago than the age, see
    /// [`DedupeTx::advance`](crate::DedupeTx::advance).
    pub subjects: u64,
    /// Records of failures without a request that are older than the age, see
    /// [`Keep::body_limit`](crate::Keep::body_limit). Records of deliveries that were processed since are deleted as well and
    /// not counted.
    pub failures: u64,
}

impl AddAssign for Pruned {
    fn add_assign(&mut self, other: Self) {
        self.deliveries += other.deliveries;
        self.subjects += other.subjects;
        self.failures += other.failures;
    }
}
