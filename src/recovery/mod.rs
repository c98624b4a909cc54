//! Recovery: deliveries that failed, or that were kept before their handler ran, are run again until they
//! are processed or dead. [`documentation::recovery`](crate::documentation::recovery) says how.

mod acceptance_writer;
mod ahead;
mod background_task;
mod breaker;
mod dead;
mod failed_attempt;
mod hook;
pub(crate) mod keep_settings;
mod joined_layers;
mod keeper;
pub(crate) mod kept;
mod kept_request;
mod liveness;
mod mask;
pub(crate) mod operator;
mod probe;
mod problems;
mod quota;
mod reconciled_lists;
mod rehearsal;
mod taken;
pub(crate) mod traceparent;
mod router;
mod runner;
mod schedule;
mod served_endpoints;
mod process_watch;
mod shared;
mod stopping;
pub(crate) mod task;

pub use background_task::BackgroundTask;
pub(crate) use background_task::{Begin, Place};
pub(crate) use dead::DeadReport;
pub(crate) use failed_attempt::FailedAttempt;
pub(crate) use joined_layers::JoinedLayer;
pub(crate) use keep_settings::{Keep, What};
pub(crate) use keeper::Keeper;
pub use kept::KeptState;
pub(crate) use kept::{Acceptance, Accepted, AttemptBy, DroppedAs, GivenBack};
pub(crate) use kept_request::KeptRequest;
pub(crate) use mask::masked;
pub use operator::{Changes, Discarded, Filter, KeptDelivery, Reprocessed, Retried, adopt};
pub(crate) use probe::Probe;
pub use problems::EndpointChange;
#[cfg(test)]
pub(crate) use quota::QuotaLimits;
pub(crate) use reconciled_lists::ReconciledList;
#[cfg(feature = "testing")]
pub(crate) use rehearsal::TO_REHEARSE;
pub use rehearsal::{
    ComparedType, EffectsChange, RefusedEndpoint, Rehearsal, RehearsalComparison, RehearsalReport,
    RehearsedDelivery, RehearsedEffects, RehearsedType,
};
pub(crate) use rehearsal::{NOT_REHEARSABLE, Refused, RehearsalAttempt, RehearsalResult};
pub use runner::AttemptResult;
pub(crate) use served_endpoints::{ServedLayer, ServedSettings};
pub use stopping::{RecoveryTask, Unfinished};
#[cfg(feature = "testing")]
pub(crate) use taken::kept_request_of;
pub(crate) use taken::{RecoveryAttempt, Take};

pub use crate::activity::problem::Problem;
pub use crate::transaction::RowsWritten;
