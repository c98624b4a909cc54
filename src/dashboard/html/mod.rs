//! The parts of pages, as HTML. Maud's `html!` escapes all text that is inserted.

mod invisible;
mod layout;
mod parts;
mod payload_block;
mod plot;
mod table;
mod time;

pub(super) use invisible::visible;
pub(super) use layout::{HeldBack, Layout};
pub(super) use parts::{button, count, empty, facts, hidden, pages, select, short, state, status};
pub(super) use payload_block::{code, hidden_code};
pub(super) use plot::{legend, plot, sparkline};
pub(super) use table::Table;
pub(super) use time::{Timestamp, duration};
