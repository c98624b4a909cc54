//! Longer texts: what is guaranteed, how recovery and reconciliation work, a checklist, engines and scale, other crates.

pub mod checklist;
pub mod guarantees;
pub mod reconciliation;
pub mod recovery;
pub mod scale;
pub mod works_with;
