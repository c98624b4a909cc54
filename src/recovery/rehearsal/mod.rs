//! Rehearsals: kept deliveries are run through a router, and rolled back.

mod attempt;
mod choose;
mod report;
mod run;
mod settings;

pub(crate) use attempt::{Refused, RehearsalAttempt, RehearsalResult};
pub use report::{RefusedEndpoint, RehearsalReport, RehearsedDelivery, RehearsedType};
pub use settings::Rehearsal;
