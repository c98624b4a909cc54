//! Longer texts: what is guaranteed, a checklist, and other crates.

pub mod checklist;
pub mod guarantees;
pub mod works_with;
