//! What operators do: asked for, confirmed, done, and written down.

pub(super) mod act;
pub(super) mod audit;
pub(super) mod bulk;
pub(super) mod confirm;
pub(super) mod order;
