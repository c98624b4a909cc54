//! Deletes deliveries that their provider can no longer redeliver. `task.rs` and `prune.rs` start a pass over the
//! tables, `pass.rs` runs its steps in order, and `delete.rs` contains the statements.

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
    /// Deliveries that were received longer ago than the given age.
    pub deliveries: u64,
    /// Subjects that were last advanced longer ago than the given age, see
    /// [`DedupeTx::advance`](crate::DedupeTx::advance).
    pub subjects: u64,
    /// Dead deliveries, and records of failures without a request (see [`Keep::body_limit`](crate::Keep::body_limit)),
    /// whose last failure is older than the given age. If a delivery was processed after its failure, its record is
    /// also deleted, but not counted.
    pub failures: u64,
}

impl AddAssign for Pruned {
    fn add_assign(&mut self, other: Self) {
        self.deliveries += other.deliveries;
        self.subjects += other.subjects;
        self.failures += other.failures;
    }
}
