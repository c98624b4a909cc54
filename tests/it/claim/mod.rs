//! Which deliveries are one: by their ids and bodies, and at the same moment.

mod identity;
mod in_flight;
mod repeats;
