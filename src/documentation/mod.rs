//! Longer texts: what is guaranteed, how recovery works, a checklist, and other crates.

pub mod checklist;
pub mod guarantees;
pub mod recovery;
pub mod works_with;
