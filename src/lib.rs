//! Work in progress.
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

pub use layer::IdempotentWebhook;
pub use service::{IdempotentWebhookService, ResponseFuture};
pub use provider::{CustomProvider, Provider, SignedProvider, VerifyError};
pub use signature::{HmacSha256, SignatureError, SignatureScheme, TemplateError, Tolerance};
pub use secret::{BlankSecret, Secret, Secrets};
pub use source::{IdentityError, Source};
pub use json_path::{JsonPath, JsonPathError};
pub use delivery::{Delivery, DeliveryId, Verified};
pub use tx::{DedupeTx, ExtractError};
pub use migrate::migrate;
pub use retention::{PruneError, prune};
