//! Recovery: deliveries that failed, or that were kept before their handler ran, are run again until they
//! are processed or dead. [`documentation::recovery`](crate::documentation::recovery) says how.

mod acceptance;
mod attempt;
pub(crate) mod control;
mod dead;
mod failed_attempt;
mod handle;
pub(crate) mod heartbeat;
mod keep;
pub(crate) mod kept;
mod quota;
mod request;
mod router;
mod run;
mod schedule;
mod served;

pub(crate) use attempt::{RecoveryAttempt, Take};
pub use control::{Filter, KeptDelivery, Retried};
pub(crate) use dead::DeadReport;
pub(crate) use failed_attempt::{FailedAttempt, Next};
pub use handle::{Recovery, RecoveryTask};
pub use keep::Keep;
pub(crate) use keep::What;
pub use kept::KeptState;
pub(crate) use kept::{Acceptance, Accepted};
pub(crate) use quota::Quota;
pub(crate) use request::KeptRequest;
pub use run::AttemptResult;
pub(crate) use served::{Served, ServedLayer, ServedSettings};
