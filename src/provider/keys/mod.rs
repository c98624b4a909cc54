//! Keys that rotate and are published at an address: which client fetches them, and when.
//!
//! Some providers sign with private keys that they replace from time to time, and publish the public keys: Google,
//! AWS, Apple, Plaid, PayPal. A [`KeySource`] provides these keys, and [`Provider::keys`](crate::Provider::keys)
//! takes it:
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
//! - With the first request that needs them, and never at startup. An application without network access starts,
//!   answers 503 until the keys can be fetched, and recovers by itself.
//! - Again when they are older than an hour ([`KeySource::max_age`]), so that a key that the provider has withdrawn
//!   is no longer accepted. While fetching fails, the old keys are used, for at most a day. If an address has a
//!   single key ([`KeyRequest::one_key`]), as with AWS SNS, PayPal, eBay and Circle, a 404 or 410 withdraws the key
//!   at once.
//! - Again when a request names a key that is not among the fetched keys, or names no key and is signed with none of
//!   them: the provider may have rotated its keys. Such a fetch, like any other fetch of one address, happens at most
//!   once a minute ([`KeySource::pause`]).
//! - Again when a request is not signed with the key that it names, because the provider may have replaced the key
//!   under the same id. This happens only if no address of the host, or of the account at that host, was asked during
//!   the last minute.
//! - Again 10 seconds after a failure, if no keys are known at all.
//!
//! So no request costs a fetch of its own. If one address has all keys, a flood of forged requests with made-up key ids
//! causes one fetch a minute. Requests that arrive during a fetch wait for it and share it. They wait for at most 3
//! seconds ([`KeySource::timeout`]), or for half of the provider's [response
//! deadline](crate::Provider::response_deadline) if that is less, regardless of how many addresses they need. If they
//! stop waiting, the fetch continues.
//!
//! A request is answered with 401 if its key is not among the keys that were fetched for it, or if it is not signed
//! with the key that it names. If its key could not be fetched, or may not be fetched now, the request is answered with
//! 503 and `Retry-After`, so that the provider sends it again. In either case, the request is counted as rejected.
//! Requests with forged key ids are answered with 503 as well, because they look like authentic requests signed with a
//! new key, and an authentic request must not be lost. If a proxy takes hosts out of service because of their 5xx
//! answers, as Envoy's outlier detection does, exclude the route from this detection.
//!
//! With [`TenantSecrets`](crate::TenantSecrets), the requests that would get a 401 are answered with 503 as well, and
//! so is a request for an unknown tenant: different answers would reveal which tenants exist.
//!
//! Each process fetches keys for itself. Clones of a [`KeySource`] share the fetched keys. A client that adds an
//! `Authorization` header to its requests, as eBay and Circle require, must be used for one provider only: give
//! other providers another source.
//!
//! # Which addresses are asked
//!
//! The preset decides. If a request names the address, as with AWS SNS and PayPal, the preset first checks the address:
//! it must have `https`, a host of the provider's own, no port, no user, and the path that the provider uses.
//!
//! With AWS SNS, PayPal, Plaid, eBay and Circle, a request names the address, so anyone can send a request that
//! names a new one. These limits apply to each host, or to each account at a host:
//!
//! - **At most 10 addresses that have no keys yet are asked at a time.** Each of them holds one of 10 places. An
//!   address that has failed keeps its place for 10 seconds. If other addresses failed before it, it keeps the
//!   place until 10 seconds after their places have become free. So fetches that find nothing are limited to **10
//!   at once, and then 6 in a minute**. A fetch that finds keys does not count.
//! - **At most 120 addresses are asked in a minute,** and as many can wait for a place. They are asked in the order
//!   in which they arrived.
//! - **If failed addresses hold all places, an address must be named twice** before it waits for a place, and at most
//!   50 addresses can wait. An address may have at most 256 bytes.
//! - **The keys of at most 100 addresses are remembered.** If there are more, the least recently used
//!   address is forgotten.
//!
//! A flood of forged requests that each name a new address takes the free places. Each of these addresses is named only
//! once, so it does not wait for a place. An authentic request names its address again when the provider sends it
//! again. The address then waits, and its key is fetched 10 seconds later. The layer remembers 65,536 named addresses.
//! AWS SNS sends a request again after 20 seconds. Even with **300 forged requests a second**, the layer still
//! remembers the address of that request in 9 of 10 cases. If forged requests name the same addresses again and again,
//! these addresses wait and are asked as well. With 20 such addresses, an authentic key is fetched within about two
//! minutes; with 50, within nine. **If a flood names more than 60 addresses again and again,** or names each of its
//! addresses twice, each of its requests has a chance of a place. Such a flood can keep a new key from being fetched
//! for as long as it continues. Meanwhile, known keys stay in use, and are still fetched again. If this matters to you,
//! limit the rate of requests in front of the application.
//!
//! Until a key is fetched, requests signed with it are answered with 503. If the provider has a key for each
//! webhook, as Circle may, **more than 120 new keys in a minute, or more than 100 keys in use,** cost retries and
//! fetches.
//!
//! The state of an account is dropped when none of its keys is usable any longer.
//!
//! An answer counts if its status is 200, if it has at most 256 KiB, and if it contains keys.
//!
//! # In tests
//!
//! [`KeySource::given`] takes keys as they are. They may be private keys, with which `TestDelivery` of the feature
//! `testing` signs. For Google Pub/Sub, `openssl genpkey -algorithm RSA -out key.pem` creates a key. For AWS SNS,
//! this command creates one with a certificate: `openssl req -x509 -newkey rsa:2048 -nodes -subj
//! /CN=sns.amazonaws.com -days 3650 -keyout - -out - > key.pem`.

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
