//! Which deliveries are one: by their ids and bodies, and at the same moment.

pub mod function;
mod held_rows;
mod identity;
mod in_flight;
mod repeats;
