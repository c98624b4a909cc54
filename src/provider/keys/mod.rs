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
//! - Again when they are older than an hour ([`KeySource::max_age`]), so a key that the provider has withdrawn ends.
//!   While that fails, the old keys are used, for at most a day. If an address has a single key
//!   ([`KeyRequest::one_key`]), as with AWS SNS, PayPal, eBay and Circle, 404 and 410 end it at once.
//! - Again when a request names a key that is not among them, or names none and is signed with none of them: the
//!   provider has rotated its keys. That, and any other fetch of one address, happens at most once a minute
//!   ([`KeySource::pause`]).
//! - Again when a request is not signed with the key that it names, as the provider may have replaced it under its
//!   id. That happens if no address of the host, or of the account there, was asked for a minute.
//! - After a failure with no keys at all, after 10 seconds.
//!
//! So no request costs a fetch of its own, and a flood of forged requests with made-up key ids causes one fetch a
//! minute if one address has all keys. Requests that come during a fetch wait for it, and share it.
//! They wait for at most 3 seconds ([`KeySource::timeout`]), or for half of the provider's
//! [response deadline](crate::Provider::response_deadline) if that is less, however many addresses they need. The
//! fetch goes on without them.
//!
//! A request whose key is not among those that were fetched for it is answered with 401, and so is one that is not
//! signed with the key that it names. If its key could not be fetched, or may not be fetched now, it is answered with
//! 503 and `Retry-After`, so that it comes again.
//! Both are counted as rejected. A flood of forged ids gets 503 as well: a key that the provider began to use a moment
//! ago looks the same, and its requests must not be lost. If a proxy takes hosts out of service for their 5xx, as
//! Envoy's outlier detection does, exclude the route from that.
//!
//! With [`TenantSecrets`](crate::TenantSecrets), each of these is answered with 503, and a request of an unknown tenant
//! as well: two answers would reveal which tenants exist.
//!
//! Each process fetches for itself. Clones of a [`KeySource`] share the fetched keys. A client that adds an
//! `Authorization` to its requests, as eBay and Circle need it, is for one provider: give other providers another
//! source.
//!
//! # Which addresses are asked
//!
//! The preset decides. If a request names the address, as with AWS SNS and PayPal, the preset checks it first: `https`,
//! a host of the provider's own, no port, no user, the path that the provider uses.
//!
//! Anyone can send a request that names a new address, as AWS SNS, PayPal, Plaid, eBay and Circle let requests do.
//! So these are bounded, for each host, or each account there:
//!
//! - **At most 10 addresses that have no keys yet are asked at a time.** One that has failed keeps its place for 10
//!   seconds. If other addresses have failed before it, it keeps the place until 10 seconds after theirs are free. So
//!   fetches that find nothing are **10 at once, and then 6 in a minute**. A fetch that finds keys does not count.
//! - **At most 120 are asked in a minute,** and as many wait for a place. They are asked in the order in which they
//!   came.
//! - **If failed addresses hold all places, an address must be named twice** before it waits for one, and at most 50
//!   wait. An address has at most 256 bytes.
//! - **The keys of at most 100 addresses are remembered.** The least recently used one makes room.
//!
//! A flood of forged requests that each name a new address takes the free places. These requests do not wait for one,
//! but an authentic request does when it comes again: 10 seconds later its key is fetched. The layer remembers 65,536
//! named addresses. So **300 forged requests a second** leave AWS SNS, which sends again after 20 seconds, 9 of 10
//! chances at each retry. If forged requests name the same addresses over and over, these have their turns as well:
//! with 20 of them an authentic key is fetched within about two minutes, with 50 within nine.
//! **A flood that names more than 60 addresses over and over,** or each of its addresses twice, has as many chances of
//! a turn as it has requests, and can keep a key from being fetched for as long as it lasts. Keys that are known are
//! used meanwhile, and asked for again. Limit the rate of requests in front of the application if that matters.
//!
//! Until a key is fetched, its requests are answered with 503. If the provider has a key for each webhook, as Circle
//! may, **more than 120 new keys in a minute, or more than 100 in use,** cost retries and fetches.
//!
//! An account without usable keys is forgotten.
//!
//! An answer counts if its status is 200, it has at most 256 KiB, and there are keys in it.
//!
//! # In tests
//!
//! [`KeySource::given`] takes keys as they are, also private ones, with which `TestDelivery` of the feature `testing`
//! signs. `openssl genpkey -algorithm RSA -out key.pem` makes one for Google Pub/Sub. One with a certificate for AWS
//! SNS is made by `openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=sns.amazonaws.com -days 3650 -keyout - -out - >
//! key.pem`.

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
