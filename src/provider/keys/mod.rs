//! Keys that rotate and are found at an address: who fetches them, and when.
//!
//! Some providers sign with private keys that they replace, and publish the public ones: Google,
//! AWS, Apple, Plaid, PayPal. [`KeySource`] has these keys, and
//! [`Provider::keys`](crate::Provider::keys) takes it:
//!
//! ```no_run
//! # #[cfg(all(feature = "reqwest", feature = "rsa"))]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use idempotent_webhook::provider::keys::KeySource;
//! use idempotent_webhook::presets::{self, PubSub};
//!
//! let keys = KeySource::https()?;
//! let account = "push@my-project.iam.gserviceaccount.com";
//! let subscription = PubSub::new(account, "https://hooks.example.com/pubsub")?;
//! let pubsub = presets::google_pubsub(subscription).keys(keys.clone());
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "reqwest", feature = "rsa")))]
//! # fn main() {}
//! ```
//!
//! # When keys are fetched
//!
//! - With the first request that needs them, and never at start: an application without network
//!   starts, answers 503 until the keys can be fetched, and heals.
//! - Again when they are older than an hour ([`KeySource::max_age`]), so that a key that the provider has
//!   withdrawn ends. While that fails, the old keys are used, for at most a day. Where an address is that of one key
//!   ([`KeyRequest::one_key`]), as with AWS SNS, PayPal, eBay and Circle, 404 and 410 end it at once.
//! - Again when a request names a key that is not among them, or names none and is signed with none of them,
//!   which is how a rotation is seen. That, and any other fetch of one address, happens at most once a
//!   minute ([`KeySource::pause`]); after a failure with no keys at all, after 5 seconds.
//!
//! So no request costs a fetch of its own, and a flood of forged requests with made-up key ids causes
//! one fetch a minute. Requests that come during a fetch wait for it, and share it. They wait for at most
//! 3 seconds ([`KeySource::timeout`]), or for half of the provider's
//! [response deadline](crate::Provider::response_deadline) if that is less. The fetch goes on without them.
//!
//! A request whose key is not among those that were fetched for it is answered with 401. If its key could not
//! be fetched, or may not be fetched now, it is answered with 503 and `Retry-After`, so that it comes again.
//! Both are counted as rejected. A flood of forged ids gets 503 as well: a key that the provider began to use a moment
//! ago looks the same, and its requests must not be lost. Where a proxy takes hosts out of service for their 5xx, as
//! Envoy's outlier detection does, leave the route out of that.
//!
//! Each process fetches for itself. Clones of a [`KeySource`] share what is fetched. A client that adds an
//! `Authorization` to its requests, as eBay and Circle need it, is for one provider: give the others another
//! source.
//!
//! # Which addresses are asked
//!
//! The preset says it. Where a request names the address, as with AWS SNS and PayPal, the preset checks
//! it first: `https`, a host of the provider's own, no port, no user, the path that the provider uses.
//!
//! Anyone can send a request that names a new address, as AWS SNS, PayPal, Plaid, eBay and Circle let requests do.
//! So these are bounded, for each host, or each account there:
//!
//! - **At most 10 addresses that have no keys yet are asked at a time, and at most 120 in a minute.** One that has
//!   failed counts for 5 seconds longer.
//! - **At most 1000 more wait to be asked.** The one that most requests have named comes first. An address has at
//!   most 256 bytes.
//! - **The keys of at most 100 addresses are remembered.** The one that was not used for the longest time makes
//!   room.
//!
//! So a flood of forged requests with new addresses does not keep a key from being fetched: the address of
//! authentic ones is named again and again, and a flood would have to name each of its own more often. Until the
//! key is fetched, its requests are answered with 503. Where the provider has a key for each webhook, as Circle
//! may, **more than 120 new keys in a minute, or more than 100 in use,** cost requests that come again, and
//! fetches.
//!
//! An answer counts if its status is 200, it has at most 256 KiB, and there are keys in it.
//!
//! # In tests
//!
//! [`KeySource::given`] takes keys as they are, also private ones, which
//! `TestDelivery` of the feature `testing` signs with. One for Google Pub/Sub is made by
//! `openssl genpkey -algorithm RSA -out key.pem`, and one with a certificate for AWS SNS by
//! `openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=sns.amazonaws.com -days 3650 -keyout - -out - > key.pem`.

mod account;
mod address;
mod client;
mod fetched;
mod seen;
mod set;
mod key_source;
mod visits;

pub use address::KeyRequest;
pub use client::KeyClient;
pub use key_source::KeySource;
pub(in crate::provider) use key_source::Wanted;
pub use set::{KeySet, KeySetError};

#[cfg(feature = "rsa")]
pub(in crate::provider) use address::is_https_at;
