//! How is a provider set up?
//!
//! A [`Provider`] says how a sender signs, where its delivery id is, and how it retries. The module
//! [`presets`](crate::presets) has a function for each of 150, and the
//! [table of presets](super::provider_table) compares them. The documentation of a preset has its facts, their
//! source, and what is not confirmed.
//!
//! ```
//! use idempotent_webhook::{Secret, presets};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let stripe = presets::stripe(Secret::new("whsec_…")?);
//! // By a name that is only known at run time.
//! let github = presets::by_name("github")?.provider(Secret::new("…")?);
//! # Ok(())
//! # }
//! ```
//!
//! Every setting of a preset can be adjusted, such as [`tolerance`](crate::Provider::tolerance),
//! [`body_limit`](crate::Provider::body_limit), [`response_deadline`](crate::Provider::response_deadline) and
//! [`redelivery_window`](crate::Provider::redelivery_window).
//!
//! # Features
//!
//! Most providers sign with HMAC-SHA256, which needs no feature. Others need that of their algorithm, which is
//! beside the name in [the list](crate::presets#functions). [`presets::by_name`](crate::presets::by_name) names it
//! where it is off. `all-presets` has all algorithms:
//!
//! | feature | such as |
//! |---|---|
//! | `ed25519` | Discord |
//! | `p256` | SendGrid, Plaid and, with `sha1`, eBay |
//! | `rsa` | Google Pub/Sub, Wise |
//! | `sha1` | Twilio, Trello, WebSub of YouTube |
//! | `md5` | Patreon |
//! | `x509` | AWS SNS, Apple, PayPal by its certificates |
//! | `reqwest` | a client for [keys that are fetched](#keys-that-are-fetched) |
//!
//! # Behind a proxy: the public URL
//!
//! Some providers sign the URL that they call: Twilio, Square, Trello. The server often sees another one. Set the
//! scheme and host that the provider calls. Without it, such a preset refuses every request:

//!
//! ```
//! # use idempotent_webhook::{Secret, presets};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let signature_key = Secret::new("a key")?;
//! let square = presets::square(signature_key).public_url("https://hooks.example.com".parse()?);
//! # Ok(())
//! # }
//! ```
//!
//! # Handshakes
//!
//! Most handshakes are answered by the preset alone, such as Slack's `url_verification`. These need a setting:
//!
//! - Meta and others check a token of yours: [`Provider::verify_token`].
//! - Asana and Notion send the secret in the handshake: [`Provider::secret_exchange`] stores it.
//! - AWS SNS sends an address to visit. The client of [`Provider::keys`] does it, or a function of yours:
//!   [`Provider::confirm_subscription`].
//! - eBay's has the URL in its answer: [`public_url`](#behind-a-proxy-the-public-url).
//!
//! # Ids that are not signed, or not stable
//!
//! Many providers sign the body but not the delivery id: GitHub, Shopify, Linear, Zendesk. Whoever has captured a
//! request can replay it under a fresh id ([`Provider::signs_delivery_id`](crate::Provider::signs_delivery_id)).
//! [`replay_guard`](crate::IdempotentWebhook::replay_guard) takes an identical body for a duplicate. It helps if the
//! body is signed, and it drops what the provider sends twice on purpose.
//!
//! Some providers send a new id with each retry, or none. Then the preset rather runs a retry again than take a
//! delivery for another one. The column *retry* of the [table](super::provider_table) says which these are. Their
//! handlers may run twice for one delivery.
//!
//! # Rotating a secret
//!
//! While a secret is rotated, both are accepted: `Secrets::new(new).and(old)` in place of a `Secret`.
//!
//! # Keys that are fetched
//!
//! Google Pub/Sub, AWS SNS, Plaid, PayPal and others sign with private keys that they rotate, and publish the
//! public ones. A [`KeySource`] fetches them:
//!
//! ```toml
//! idempotent-webhook = { version = "0.1", features = ["reqwest", "rsa"] }
//! ```
//!
//! ```
//! use idempotent_webhook::Provider;
//! use idempotent_webhook::presets::{self, PubSub};
//! use idempotent_webhook::provider::keys::KeySource;
//!
//! fn pubsub() -> Result<Provider, Box<dyn std::error::Error>> {
//!     // What the token must be for: the service account of the subscription, and its audience.
//!     let account = "push@my-project.iam.gserviceaccount.com";
//!     let subscription = PubSub::new(account, "https://hooks.example.com/pubsub")?;
//!     Ok(presets::google_pubsub(subscription).keys(KeySource::https()?))
//! }
//! # assert!(pubsub().is_ok());
//! ```
//!
//! Keys are fetched with the first request that needs them. They are fetched again when they are an hour old, when
//! a request names a key that is unknown, or when it is not signed with the one that it names: at most once a minute.
//! While that fails, the old keys stay in use, for at most a day.
//! The module [`keys`](crate::provider::keys) has the bounds, the addresses that are asked, and how to use a
//! client of your own.
//!
//! # Google Pub/Sub
//!
//! A push wraps the message, whose data is in base64:
//!
//! ```
//! use axum::{Json, http::StatusCode};
//! use base64::{Engine, engine::general_purpose::STANDARD};
//! use idempotent_webhook::{DedupeTx, HandlerError};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize)]
//! struct Push {
//!     message: Message,
//! }
//!
//! #[derive(Deserialize)]
//! struct Message {
//!     /// Missing if the message has attributes only.
//!     #[serde(default)]
//!     data: String,
//! }
//!
//! #[derive(Deserialize)]
//! struct Order {
//!     id: i64,
//! }
//!
//! async fn ordered(mut tx: DedupeTx, Json(push): Json<Push>) -> Result<StatusCode, HandlerError> {
//!     let data = STANDARD.decode(&push.message.data)?;
//!     let order: Order = serde_json::from_slice(&data)?;
//!     sqlx::query("insert into orders (id) values ($1)").bind(order.id).execute(&mut *tx).await?;
//!     Ok(StatusCode::OK)
//! }
//! # type _Handler = axum::routing::MethodRouter;
//! # fn _route() -> _Handler { axum::routing::post(ordered) }
//! ```
//!
//! The subscription needs authentication switched on: its service account, and an audience or the URL of the
//! endpoint. [`presets::google_pubsub`](crate::presets::google_pubsub) has the details.
//!
//! # AWS SNS
//!
//! The content type is `text/plain`, which axum's `Json` refuses. Take the body as a `String`:
//!
//! ```toml
//! idempotent-webhook = { version = "0.1", features = ["reqwest", "x509"] }
//! ```
//!
//! ```
//! use axum::http::StatusCode;
//! use idempotent_webhook::{DedupeTx, HandlerError};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize)]
//! struct Notification {
//!     #[serde(rename = "Message")]
//!     message: String,
//! }
//!
//! async fn notified(mut tx: DedupeTx, body: String) -> Result<StatusCode, HandlerError> {
//!     let notification: Notification = serde_json::from_str(&body)?;
//!     sqlx::query("insert into messages (text) values ($1)")
//!         .bind(notification.message)
//!         .execute(&mut *tx)
//!         .await?;
//!     Ok(StatusCode::OK)
//! }
//! # type _Handler = axum::routing::MethodRouter;
//! # fn _route() -> _Handler { axum::routing::post(notified) }
//! ```
//!
//! An [`SnsTopic`](crate::presets::SnsTopic), which is made of the ARN, takes the place of a secret. With a
//! [`KeySource`] that has a client, the layer confirms the subscription by itself. [`presets::aws_sns`](crate::presets::aws_sns) has the details.
//!
//! # A provider of your own
//!
//! Any provider that signs with an HMAC takes a few lines. This one signs `<timestamp>.<body>`, with the time in a
//! header:
//!
//! ```
//! use axum::http::HeaderName;
//! use idempotent_webhook::provider::JsonPathError;
//! use idempotent_webhook::signature::Hmac;
//! use idempotent_webhook::{Provider, Secret, Source};
//!
//! fn acme(secret: Secret) -> Result<Provider, JsonPathError> {
//!     let signature = Hmac::hex(HeaderName::from_static("x-acme-signature"))
//!         .prefix("sha256=")
//!         .timestamp_header(HeaderName::from_static("x-acme-timestamp"));
//!     Ok(Provider::custom("acme")
//!         .signature(signature, secret)
//!         .delivery_id(Source::json("$.event.id".parse()?)))
//! }
//! # assert!(acme(Secret::new("a secret").unwrap()).is_ok());
//! ```
//!
//! - Without `timestamp_header`, the body alone is signed. [`SignedContent`](crate::signature::SignedContent)
//!   describes anything else.
//! - [`Hmac`](crate::signature::Hmac) has a table of header formats. Digits are lower-case hexadecimal or base64,
//!   and the hash is SHA-256, unless you say otherwise. Times are in Unix seconds.
//! - [`Token`](crate::signature::Token) and [`BasicAuth`](crate::signature::BasicAuth) are for providers that send a
//!   secret and sign nothing. [`Jwt`](crate::signature::Jwt) is for JSON Web Tokens, and
//!   [`PublicKeySignature`](crate::signature::PublicKeySignature) for signatures with a private key. For any other
//!   scheme, implement [`SignatureScheme`](crate::signature::SignatureScheme).
//! - **The delivery id** must be the same on every retry and different for every delivery. It is in a header
//!   ([`Source::header`]), in JSON ([`Source::json`]), in several places ([`or`](crate::Source::or),
//!   [`and`](crate::Source::and)), or a digest of the body ([`Source::body_digest`]). Some providers send two events
//!   for one change: choose an id that both share. A claim of a `Jwt` cannot be the delivery id.
//! - **The defaults** are a tolerance of 5 minutes, a body limit of 2 MiB, a response deadline of 10 seconds and a
//!   redelivery window of 30 days.
//!
//! Check it against a captured request: with [`Provider::verify`], which needs no database, or
//! [`verify_fetching`](crate::Provider::verify_fetching) where keys are fetched, or with the
//! [example `replay`](super::testing#against-a-running-server).
//!
//! # Many tenants
//!
//! Tenants behind one route have their secrets looked up:
//!
//! ```
//! use axum::http::request::Parts;
//! use idempotent_webhook::{IdempotentWebhook, Secret, TenantSecrets, presets};
//! use sqlx::PgPool;
//!
//! fn webhook(pool: PgPool) -> IdempotentWebhook {
//!     // /webhooks/{tenant}
//!     let tenant = |head: &Parts| head.uri.path().rsplit('/').next().map(str::to_owned);
//!     let secrets = TenantSecrets::new(tenant, {
//!         let pool = pool.clone();
//!         move |tenant| {
//!             let pool = pool.clone();
//!             async move {
//!                 let secret: Option<String> =
//!                     sqlx::query_scalar("select secret from tenants where name = $1")
//!                         .bind(tenant)
//!                         .fetch_optional(&pool)
//!                         .await?;
//!                 Ok(secret.map(Secret::new).transpose()?)
//!             }
//!         }
//!     });
//!     // The same id from two tenants is two deliveries.
//!     IdempotentWebhook::new(pool, "pushes", presets::github(secrets.separate_ids()))
//! }
//! ```
//!
//! - Lookups are cached for a minute. An unknown tenant costs a lookup each time.
//! - An unknown tenant gets a 401, as a wrong signature does. Where keys are fetched, both get a 503. A failed lookup
//!   is a 503.
//! - If `Acme` and `acme` are the same tenant, return a [`ResolvedTenant`](crate::provider::ResolvedTenant) with one
//!   canonical name. Otherwise a captured request can be replayed under the other spelling.
//! - For a preset with a type of its own in place of `Secret`, look up values of that type. Each has a text form for
//!   the database: `Ok(text.map(|text| text.parse::<LiveKitKey>()).transpose()?)`.
//! - Operations on deliveries name the tenant: `Endpoint::new(pool, "pushes").tenant("acme")`.
//!
//! [`KeySource`]: crate::provider::keys::KeySource
//! [`Provider`]: crate::Provider
//! [`Provider::confirm_subscription`]: crate::Provider::confirm_subscription
//! [`Provider::keys`]: crate::Provider::keys
//! [`Provider::secret_exchange`]: crate::Provider::secret_exchange
//! [`Provider::verify`]: crate::Provider::verify
//! [`Provider::verify_token`]: crate::Provider::verify_token
//! [`Source::body_digest`]: crate::Source::body_digest
//! [`Source::header`]: crate::Source::header
//! [`Source::json`]: crate::Source::json
