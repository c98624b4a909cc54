//! Work in progress.
#![warn(unreachable_pub)]
mod layer;
mod service;
mod body;
mod provider;
mod signature;
mod secret;
mod crypto;
mod source;
mod json_path;
mod delivery;
mod in_flight;
mod claim;
mod tx;
#[cfg(feature = "axum")]
mod extract;
mod response;
mod error;
mod migrate;
mod retention;

pub use delivery::{Delivery, DeliveryId, Verified};
pub use json_path::{JsonPath, JsonPathError};
pub use layer::IdempotentWebhook;
pub use migrate::migrate;
pub use provider::{CustomProvider, Provider, SignedProvider, VerifyError};
pub use retention::{PruneError, prune};
pub use secret::{BlankSecret, Secret, Secrets};
pub use service::{IdempotentWebhookService, ResponseFuture};
pub use signature::{HmacSha256, SignatureError, SignatureScheme, TemplateError, Tolerance};
pub use source::{IdentityError, Source};
pub use tx::{DedupeTx, ExtractError};
