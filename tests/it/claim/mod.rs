//! Which deliveries are one: by their ids and bodies, and at the same moment.

pub mod function;
mod identity;
mod in_flight;
mod repeats;
