//! Rehearsals: kept deliveries are run through a router and rolled back, by `rehearse_commit` in
//! `transaction/commit.rs`.

mod attempt;
mod comparison;
mod display;
mod report;
mod run;
mod settings;

pub(crate) use attempt::{NOT_REHEARSABLE, Refused, RehearsalAttempt, RehearsalResult};
pub use comparison::{ComparedType, EffectsChange, RehearsalComparison};
pub use report::{
    RefusedEndpoint, RehearsalReport, RehearsedDelivery, RehearsedEffects, RehearsedType,
};
#[cfg(feature = "testing")]
pub(crate) use run::TO_REHEARSE;
pub use settings::Rehearsal;
