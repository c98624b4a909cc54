//! Turns a request into an authentic delivery, without Postgres. [`VerifiedWebhook`] does nothing else, and
//! [`IdempotentWebhook`](crate::IdempotentWebhook) does this first.

mod authenticate;
mod body;
mod body_shape;
mod canary;
mod future;
mod layer;
mod notices;
mod rejection;
mod response;
mod service;
mod settings;
mod telemetry;
mod unhandled;

pub(crate) use authenticate::{Authentic, authenticate};
pub(crate) use body::buffer;
#[cfg(feature = "postgres")]
pub(crate) use canary::Canary;
pub use future::ResponseFuture;
pub use layer::VerifiedWebhook;
pub(crate) use rejection::Rejection;
pub(crate) use response::{LATER, acknowledge, fail, finish, plain, succeed, unavailable};
pub use service::VerifiedWebhookService;
pub(crate) use settings::{MAX_TIMEOUT, Verification};
pub(crate) use telemetry::{identified, span};
pub(crate) use unhandled::Unhandled;
