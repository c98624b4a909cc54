//! Operator actions: they are parsed, confirmed, run and recorded.

pub(super) mod act;
mod action;
pub(super) mod recorded_actions;
pub(super) mod bulk;
pub(super) mod confirm;
pub(super) mod parse_action;
