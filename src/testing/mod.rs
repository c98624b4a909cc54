//! Test kit for webhook handlers: requests signed as the provider signs them, captures of real deliveries, and an
//! assertion that a handler is idempotent. Requires the feature `testing`.
//!
//! A test for a handler:
//!
//! ```
//! use axum::Router;
//! use idempotent_webhook::testing::{TestDelivery, assert_idempotent};
//! use idempotent_webhook::{Secret, presets};
//! use sqlx::PgPool;
//!
//! /// `app` is the application's router, with the secret `whsec_test`. `pool` is an empty database with
//! /// the application's tables and the tables of `idempotent_webhook::migrate`.
//! async fn a_payment_is_booked_once(app: Router, pool: PgPool) {
//!     let stripe = presets::stripe(Secret::new("whsec_test").unwrap());
//!     let paid = TestDelivery::new(&stripe)
//!         .uri("/webhooks/stripe")
//!         .event_type("invoice.paid")
//!         .body(r#"{"data":{"object":{"id":"in_1","amount_paid":4200}}}"#);
//!
//!     assert_idempotent(&app, &paid, async || {
//!         let payments: i64 = sqlx::query_scalar("select count(*) from payments")
//!             .fetch_one(&pool)
//!             .await
//!             .unwrap();
//!         payments
//!     })
//!     .await;
//! }
//! ```

#[cfg(feature = "postgres")]
mod assertion;
pub(crate) mod capture;
mod delivery;
mod draft;
#[cfg(feature = "postgres")]
mod kept_captures;
mod sign;

#[cfg(feature = "postgres")]
pub use assertion::assert_idempotent;
pub use capture::{Capture, CaptureError, Pseudonyms};
pub use delivery::{TestDelivery, TestDeliveryError};
pub use sign::sign;
