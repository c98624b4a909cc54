//! Recovery: deliveries that failed are kept, and run again until they are processed or dead.

mod acceptance;
mod attempts;
pub(crate) mod control;
mod dead;
mod end;
mod give_back;
mod group_commit;
mod keep;
pub(crate) mod presence;
mod quota;
pub(crate) mod received;
mod replay;
mod request;
mod runner;
mod schedule;
mod served;
mod slots;

pub(crate) use acceptance::{Acceptance, Accepted};
pub use control::{Filter, KeptDelivery, KeptState, Retried};
pub(crate) use dead::{DeadReport, OnDead};
pub(crate) use keep::{FailedAttempt, Keep, KeptAs, Next};
pub(crate) use quota::Quota;
pub(crate) use replay::Replay;
pub(crate) use request::KeptRequest;
pub use runner::{Recovery, RecoveryTask};
pub(crate) use schedule::{Schedule, UNHANDLED_WAIT};
pub(crate) use served::Served;
