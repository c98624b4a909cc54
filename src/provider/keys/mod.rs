//! Keys that rotate and are found at an address: which client fetches them, and when.
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
//!   minute ([`KeySource::pause`]).
//! - Again when a request is not signed with the key that it names, as the provider may have replaced it under its
//!   id. That happens if no address of the host, or of the account there, was asked for a minute.
//! - After a failure with no keys at all, after 10 seconds.
//!
//! So no request costs a fetch of its own, and a flood of forged requests with made-up key ids causes
//! one fetch a minute where one address has all keys. Requests that come during a fetch wait for it, and share it.
//! They wait for at most 3 seconds ([`KeySource::timeout`]), or for half of the provider's
//! [response deadline](crate::Provider::response_deadline) if that is less, however many addresses they need. The
//! fetch goes on without them.
//!
//! A request whose key is not among those that were fetched for it is answered with 401, and so is one that is not
//! signed with the key that it names. If its key could not be fetched, or may not be fetched now, it is answered with
//! 503 and `Retry-After`, so that it comes again.
//! Both are counted as rejected. A flood of forged ids gets 503 as well: a key that the provider began to use a moment
//! ago looks the same, and its requests must not be lost. Where a proxy takes hosts out of service for their 5xx, as
//! Envoy's outlier detection does, leave the route out of that.
//!
//! With [`TenantSecrets`](crate::TenantSecrets), each of these is answered with 503, and a request of an unknown tenant
//! as well: two answers would tell which tenants exist.
//!
//! Each process fetches for itself. Clones of a [`KeySource`] share what is fetched. A client that adds an
//! `Authorization` to its requests, as eBay and Circle need it, is for one provider: give another source to the
//! other providers.
//!
//! # Which addresses are asked
//!
//! The preset says it. Where a request names the address, as with AWS SNS and PayPal, the preset checks
//! it first: `https`, a host of the provider's own, no port, no user, the path that the provider uses.
//!
//! Anyone can send a request that names a new address, as AWS SNS, PayPal, Plaid, eBay and Circle let requests do.
//! So these are bounded, for each host, or each account there:
//!
//! - **At most 10 addresses that have no keys yet are asked at a time.** One that has failed keeps its place for 10
//!   seconds. If other addresses have failed before it, it keeps the place until 10 seconds after theirs are free. So
//!   fetches that find nothing are **10 at once, and then 6 in a minute**. One that finds keys uses up nothing of that.
//! - **At most 120 are asked in a minute,** and as many wait for a place. They are asked in the order in which they
//!   came.
//! - **Where those that have failed hold places, and none is left, an address has to be named twice** before it
//!   waits for one, and at most 50 wait. An address has at most 256 bytes.
//! - **The keys of at most 100 addresses are remembered.** The one that was not used for the longest time makes
//!   room.
//!
//! A flood of forged requests, each of which names a new address, takes the places that are free. It does not wait for
//! one, and an authentic request does when it comes again: 10 seconds later its key is fetched. What was named is
//! remembered for 65,536 addresses, so that **300 forged requests a second** leave AWS SNS, which sends again after 20
//! seconds, 9 of 10 chances at each retry. Where forged requests name the same addresses over and over, these have
//! their turns as well: with 20 of them an authentic key is fetched within about two minutes, with 50 within nine.
//! **A flood that names more than 60 addresses over and over,** or each of its addresses twice, has as many chances of
//! a turn as it has requests, and can keep a key from being fetched for as long as it lasts. Keys that are known are
//! used meanwhile, and asked for again. Limit the rate of requests in front of the application where that matters.
//!
//! Until a key is fetched, its requests are answered with 503. Where the provider has a key for each webhook, as Circle
//! may, **more than 120 new keys in a minute, or more than 100 in use,** cost requests that come again, and
//! fetches.
//!
//! An account none of whose keys can be used any more is forgotten.
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
mod wanted_key;

pub use address::KeyRequest;
pub use client::KeyClient;
pub use key_source::KeySource;
pub use set::{KeySet, KeySetError};
pub(crate) use wanted_key::Wanted;

#[cfg(feature = "rsa")]
pub(crate) use address::is_https_at;
