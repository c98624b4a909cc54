//! Recovery: deliveries that failed, or that were kept before their handler ran, are run again until they
//! are processed or dead. [`documentation::recovery`](crate::documentation::recovery) says how.

mod acceptance_writer;
mod breaker;
mod dead;
mod failed_attempt;
mod keep_settings;
mod keeper;
pub(crate) mod kept;
mod kept_request;
mod liveness;
pub(crate) mod operator;
mod problems;
mod quota;
mod reconciled_lists;
mod recovery_attempt;
mod router;
mod run_due;
mod schedule;
mod served_endpoints;
pub(crate) mod serving;
mod task;

pub(crate) use dead::DeadReport;
pub(crate) use failed_attempt::FailedAttempt;
pub use keep_settings::Keep;
pub(crate) use keep_settings::What;
pub(crate) use keeper::Keeper;
pub use kept::KeptState;
pub(crate) use kept::{Acceptance, Accepted, AttemptBy};
pub(crate) use kept_request::KeptRequest;
pub use operator::{Filter, KeptDelivery, Retried};
pub use problems::{EndpointChange, Problem};
pub(crate) use quota::{Quota, QuotaLimits};
pub(crate) use reconciled_lists::ReconciledList;
pub(crate) use recovery_attempt::{RecoveryAttempt, Take};
pub use run_due::AttemptResult;
pub(crate) use served_endpoints::{ServedLayer, ServedSettings};
pub use task::{Recovery, RecoveryTask};
