//! The parts of pages, as HTML.

mod escape;
mod layout;
mod parts;
mod payload;
mod plot;
mod time;

pub(super) use escape::visible;
pub(super) use layout::{HeldBack, Layout};
pub(super) use parts::{button, count, empty, facts, hidden, pages, select, short, state, status};
pub(super) use payload::{code, hidden_code};
pub(super) use plot::{legend, plot, sparkline};
pub(super) use time::{Timestamp, duration};
