//! What pages are made of.

mod code;
mod layout;
mod parts;
mod plot;
mod text;
mod time;

pub(super) use code::{code, hidden_code};
pub(super) use layout::{HeldBack, Layout};
pub(super) use parts::{button, count, empty, facts, hidden, pages, select, short, state, status};
pub(super) use plot::{legend, plot, sparkline};
pub(super) use text::visible;
pub(super) use time::{Timestamp, duration};
