//! The pages.

pub(super) mod action_progress;
pub(super) mod actions;
mod by_name;
mod curl;
pub(super) mod deliveries;
pub(super) mod delivery;
pub(super) mod endpoint;
mod failing;
mod filters;
mod groups;
mod handled;
mod ignored;
pub(super) mod lookup;
pub(super) mod overview;
mod processed;
mod reconciliation;
pub(super) mod rejected;
mod settings;
pub(super) mod status;
pub(super) mod why;
