//! How are handlers tested?
//!
//! With the feature `testing`, a test sends what the provider would send, signed as the provider signs it. The
//! tests need a real Postgres: `#[sqlx::test]` makes an empty database for each test on the server of
//! `DATABASE_URL`, and drops it if the test passes. It applies the migrations in the application's folder `migrations`
//! first.
//!
//! ```toml
//! [dev-dependencies]
//! idempotent-webhook = { version = "0.1", features = ["testing"] }
//! sqlx = { version = "0.9", features = ["macros", "migrate"] }
//! tower = { version = "0.5", features = ["util"] }
//! ```
//!
//! # A handler is idempotent
//!
//! With `router(pool, secret)`, which builds the routes of the application:
//!
//! ```
//! # use axum::Router;
//! use idempotent_webhook::testing::{TestDelivery, assert_idempotent};
//! use idempotent_webhook::{Secret, presets};
//! use sqlx::PgPool;
//! # fn router(_: PgPool, _: Secret) -> Router { Router::new() }
//!
//! #[sqlx::test]
//! async fn a_payment_is_booked_once(pool: PgPool) {
//!     idempotent_webhook::migrate(&pool).await.unwrap();
//!     let secret = Secret::new("whsec_test").unwrap();
//!     let app = router(pool.clone(), secret.clone());
//!     let paid = TestDelivery::new(&presets::stripe(secret))
//!         .uri("/webhooks/stripe")
//!         .event_type("invoice.paid")
//!         .body(r#"{"created":1,"data":{"object":{"id":"in_1","amount_paid":4200}}}"#);
//!
//!     let payments = async || -> i64 {
//!         let count = sqlx::query_scalar("select count(*) from payments");
//!         count.fetch_one(&pool).await.unwrap()
//!     };
//!     assert_idempotent(&app, &paid, payments).await;
//! }
//! ```
//!
//! ```sh
//! DATABASE_URL=postgres://user@localhost/postgres cargo test
//! ```
//!
//! [`assert_idempotent`](crate::testing::assert_idempotent) sends the delivery
//!
//! 1. once, and has the layer roll back in place of the commit. If an effect remains, another connection wrote it;
//! 2. five times at once. One copy is processed and has effects, the others are duplicates;
//! 3. once more. It is a duplicate without effects.
//!
//! If anything else happens, it panics and says what, with the response and its reason.
//!
//! # A request is rejected
//!
//! [`TestDelivery`](crate::testing::TestDelivery) signs for every preset and for custom providers. It makes one
//! request at a time, and variants that must be rejected:
//!
//! ```
//! # use axum::Router;
//! # use axum::body::Body;
//! # use axum::http::StatusCode;
//! # use idempotent_webhook::testing::TestDelivery;
//! # use idempotent_webhook::{Secret, presets};
//! # use sqlx::PgPool;
//! # fn router(_: PgPool, _: Secret) -> Router { Router::new() }
//! use tower::ServiceExt;
//!
//! #[sqlx::test]
//! async fn a_forged_payment_is_rejected(pool: PgPool) {
//!     idempotent_webhook::migrate(&pool).await.unwrap();
//!     let secret = Secret::new("whsec_test").unwrap();
//!     let app = router(pool, secret.clone());
//!     let paid = TestDelivery::new(&presets::stripe(secret)).uri("/webhooks/stripe");
//!
//!     for forged in [paid.tampered(), paid.expired(), paid.unsigned()] {
//!         let response = app.clone().oneshot(forged.request::<Body>()).await.unwrap();
//!         assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
//!     }
//! }
//! ```
//!
//! A `tampered` request is rejected if the signature covers the body to the byte (AWS SNS signs members of it), and an
//! `expired` one if it covers a time. The [table of presets](super::provider_table) says which do.
//!
//! The kit signs with your own definition of the provider. Check a custom provider against a captured request as
//! well ([`Provider::verify`](crate::Provider::verify)).
//!
//! # A provider with keys that are fetched
//!
//! A test gives the provider a private key of its own, and the kit signs with it. `openssl genpkey -algorithm RSA
//! -out tests/pubsub.pem` makes one:
//!
//! ```no_run
//! # #[cfg(feature = "rsa")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use idempotent_webhook::Provider;
//! use idempotent_webhook::presets::{self, PubSub};
//! use idempotent_webhook::provider::keys::KeySource;
//! use idempotent_webhook::testing::TestDelivery;
//!
//! fn pubsub(audience: &str, key: &str) -> Result<Provider, Box<dyn std::error::Error>> {
//!     let subscription = PubSub::new("push@my-project.iam.gserviceaccount.com", audience)?;
//!     Ok(presets::google_pubsub(subscription).keys(KeySource::given(key)?))
//! }
//!
//! # let (key, another_key) = ("", "");
//! let audience = "https://hooks.example.com/pubsub";
//! // The provider of the application under test.
//! let provider = pubsub(audience, key)?;
//! let push = TestDelivery::new(&provider);
//! // Must be rejected: signed with another key, and for another audience.
//! let forged = TestDelivery::new(&pubsub(audience, another_key)?);
//! let misdirected = TestDelivery::new(&pubsub("https://other.example.com", key)?);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "rsa"))]
//! # fn main() {}
//! ```
//!
//! For AWS SNS the key has a certificate: `openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=sns.amazonaws.com -days
//! 3650 -keyout - -out - > tests/sns.pem`. The kit adds the members that a message lacks:
//!
//! ```no_run
//! # #[cfg(feature = "x509")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use std::sync::{Arc, Mutex};
//! # use idempotent_webhook::provider::keys::KeySource;
//! # use idempotent_webhook::testing::TestDelivery;
//! # use idempotent_webhook::presets::{self, SnsTopic};
//! # let key = "";
//! let topic = SnsTopic::new("arn:aws:sns:us-east-1:123456789012:orders")?;
//! let visited = Arc::new(Mutex::new(Vec::new()));
//! let visit = visited.clone();
//! // The provider of the application under test, with a function in place of the visit.
//! let sns = presets::aws_sns(topic).keys(KeySource::given(key)?).confirm_subscription(move |url| {
//!     visit.lock().unwrap().push(url);
//!     async { Ok(()) }
//! });
//! let subscription = TestDelivery::new(&sns).body(r#"{"Type": "SubscriptionConfirmation"}"#);
//! // It is answered with 200, and `visited` has the address.
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "x509"))]
//! # fn main() {}
//! ```
//!
//! RSA is slow without optimization. If many tests sign with it, add this to `Cargo.toml`:
//!
//! ```toml
//! [profile.dev.package.num-bigint-dig]
//! opt-level = 3
//! ```
//!
//! # A delivery that is kept
//!
//! [`Recovery::run_due`](crate::Recovery::run_due) makes the attempts that are due, one after the other, and returns
//! their outcomes. A test need not spawn anything, nor wait:
//!
//! ```no_run
//! # use axum::Router;
//! # use idempotent_webhook::{Endpoint, Recovery};
//! # async fn main_(app: Router, recovery: Recovery, pool: sqlx::PgPool) -> sqlx::Result<()> {
//! // Makes the delivery due now, whatever the schedule says. Where the id is a digest of the body, as with Meta,
//! // `retry_all(&Filter::new())` makes all of them due.
//! Endpoint::new(pool, "deployments").retry("delivery-1").await?;
//! let attempts = recovery.run_due(&app).await?;
//! assert_eq!(attempts.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! With [`Keep::accept_first`](crate::Keep::accept_first), the handler runs in the background.
//! [`IdempotentWebhook::drained`](crate::IdempotentWebhook::drained) waits for it; `run_due` is for attempts after
//! that. `assert_idempotent` waits by itself.
//!
//! # A webhook that never came
//!
//! A test gives the [reconciliation](super::reconciliation) a list of its own. Either it runs a server with the answers
//! of the provider, and passes its address to `Http::base`. Or it implements
//! [`EventSource`](crate::reconcile::EventSource) in a few lines. On an empty database nothing was ever received, so it
//! sets since when events are missing:
//!
//! ```no_run
//! # use std::time::{Duration, SystemTime};
//! # use axum::Router;
//! # use idempotent_webhook::reconcile::{Http, StripeEvents};
//! # use idempotent_webhook::{IdempotentWebhook, Reconcile, Recovery, Secret};
//! # async fn main_(
//! #     stripe: IdempotentWebhook,
//! #     app: Router,
//! #     recovery: Recovery,
//! #     address: String,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! // Stripe's path comes after the address: `GET {address}/v1/events`.
//! let events = StripeEvents::new(Secret::new("rk_test")?, ["invoice.paid"]).http(Http::new().base(address));
//! let reconcile = Reconcile::new(&stripe, events, "/webhooks/stripe")?
//!     .since(SystemTime::now() - Duration::from_secs(60 * 60))
//!     .grace(Duration::ZERO);
//! reconcile.run_once().await?;
//! let attempts = recovery.run_due(&app).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Against a running server
//!
//! The command `webhook` sends a delivery, signed as the provider signs it, for each of the presets. It judges the
//! answers, and counts them by status and outcome with their times:
//!
//! ```sh
//! cargo install idempotent-webhook --no-default-features --features command
//! export WEBHOOK_SECRET=whsec_demo    # what the quickstart prints
//! webhook send stripe --to http://127.0.0.1:3000/webhooks/stripe --event invoice.paid --times 50 --concurrency 10
//! ```
//!
//! All 50 have one id, so that one of them is processed; `--distinct` gives each its own. `--body FILE` sends a body to
//! the byte. `--tampered`, `--expired` and `--unsigned` have to be refused. `webhook replay capture.http --to ...` sends a
//! captured request again, and signs it anew with `--provider`. `webhook verify` says [why it is a
//! 401](super::answers), and `webhook providers` what each provider signs.
//!
//! Another machine needs `--anywhere`. There is no TLS: the command is for the server behind its proxy.
