//! The pages, a file each: what it reads, and how it looks.

pub(super) mod actions;
pub(super) mod deliveries;
pub(super) mod delivery;
pub(super) mod lookup;
pub(super) mod overview;
