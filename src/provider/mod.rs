//! Providers: how each one signs, identifies and redelivers its webhooks. Nothing here uses a database.

mod answers;
mod canary;
pub(crate) mod calendar;
mod custom;
pub(crate) mod definition;
pub(crate) mod delivery;
mod description;
pub(crate) mod digest;
pub(crate) mod event_types;
mod expiring_map;
pub(crate) mod handshake;
mod identity;
pub(crate) mod json_path;
pub mod keys;
mod public_url;
pub(crate) mod secret;
mod secret_source;
pub mod signature;
pub(crate) mod source;
pub(crate) mod tenant;
mod verify;

use std::time::Duration;

#[cfg(feature = "testing")]
pub(crate) use canary::BODY as CANARY;
pub use custom::{CustomProvider, SignedProvider};
pub(crate) use definition::Provider;
pub use delivery::VerifiedDelivery;
pub use description::Description;
pub use handshake::{Handshake, HandshakeRequest};
pub use identity::IdentityError;
#[cfg(feature = "testing")]
pub(crate) use identity::{Identified, Identity};
pub(crate) use json_path::JsonPath;
pub use json_path::JsonPathError;
pub(crate) use public_url::received_uri;
#[cfg(feature = "reqwest")]
pub(crate) use public_url::redacted;
pub use public_url::{PublicUrl, PublicUrlError};
pub use secret::SecretError;
pub(crate) use secret::{Secret, Secrets};
pub use secret_source::SecretSource;
#[cfg(feature = "testing")]
pub(crate) use source::Kind;
pub(crate) use source::{Source, Unreadable};
pub use tenant::ResolvedTenant;
pub use verify::{Verified, VerifyError};

pub(crate) const MIB: usize = 1024 * 1024;
pub(crate) const HOUR: Duration = Duration::from_secs(60 * 60);
pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The deadline that is assumed for a provider that publishes none.
pub(crate) const ASSUMED_DEADLINE: Duration = Duration::from_secs(5);

/// The longest tolerance that still implies a new signature for each attempt. With a longer
/// tolerance, a retry may carry the time of the first attempt.
const LONGEST_TOLERANCE_OF_ATTEMPTS: Duration = Duration::from_secs(15 * 60);
