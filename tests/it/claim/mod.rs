//! Which requests are the same delivery: by id, by body, and at the same moment.

pub mod function;
mod held_rows;
mod identity;
mod in_flight;
mod repeats;
