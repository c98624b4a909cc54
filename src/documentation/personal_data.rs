//! What is stored of a delivery, for how long, and how is it erased?
//!
//! # What is stored
//!
//! All tables are in the schema `idempotent_webhook`. *Retention* is the age that [`Retention`](crate::Retention) or
//! [`prune`](crate::prune) is given. Without either, rows stay.
//!
//! | what | table | until |
//! |---|---|---|
//! | id, endpoint, event type and time of each processed delivery, and its tenant if ids are separate | `deliveries` | retention |
//! | the SHA-256 of event type and body, with `compare_bodies` or `replay_guard` | `deliveries`, `bodies` | retention |
//! | the name of what an event is about, and its version, with `advance` | `subjects` | retention, since the last event |
//! | **the request**: body, path and query without tokens, content type, `traceparent`, and the headers that the preset or [`Keep::headers`](crate::Keep::headers) names | `kept_requests` | the delivery is processed or discarded; [`processed_for`](crate::Keep::processed_for) that time after it was processed; retention if it is dead |
//! | id, tenant, event type, times, and **the reasons of failures** as the handler gives them: the last in up to 1000 characters, those of the last 20 attempts in up to 200 | `kept_deliveries` | the same |
//! | the id of a delivery that was discarded or forgotten | `discarded` | retention |
//! | the id of a delivery that its provider was asked to send again | `redelivery_requests` | a year, or retention if that is longer |
//! | the names of operators, what they did, the filters that they have chosen, and the ids of the deliveries | `operator_actions`, `operator_action_deliveries` | a year, and 30 days for the ids, or retention if that is longer |
//! | numbers by hour: outcomes, event types that are ignored | `activity` | retention |
//! | why requests were rejected, without anything that a sender can choose | `rejections` | retention |
//! | the ids of deliveries that have failed since the last success of their endpoint | `kept_endpoints` | the next success |
//! | settings, without secrets; times of lists and processes | the others | as long as they are used |
//!
//! **Requests and reasons are what may hold personal data.** They are stored only with a [`Keep`](crate::Keep), and reasons
//! with [`record_failures`](crate::IdempotentWebhook::record_failures), too. Signatures, tokens, cookies and
//! `Authorization` are never stored.
//!
//! The log of the application has the same reasons, beside ids, tenants and event types. The [dashboard](crate::dashboard)
//! shows requests, and reasons unmasked, only with [`with_payloads`](crate::dashboard::Access::with_payloads).
//!
//! # Erasing
//!
//! [`Endpoint::erase`](crate::Endpoint::erase) deletes the request of a delivery and the reasons of its failures.
//! [`Endpoint::erase_all`](crate::Endpoint::erase_all) does so for all of a filter:
//!
//! ```no_run
//! use idempotent_webhook::Endpoint;
//! use idempotent_webhook::recovery::Filter;
//!
//! # async fn main_(pool: sqlx::PgPool) -> sqlx::Result<()> {
//! let billing = Endpoint::new(pool, "billing");
//! billing.erase("evt_1Qx").await?;
//! let erased = billing.erase_all(&Filter::new().tenant("acme")).await?;
//! # Ok(())
//! # }
//! ```
//!
//! What is known of the delivery stays: that it was processed, so that it is not processed again, or how often it failed. It
//! cannot run again. [`Retention::erase_dead_after`](crate::Retention::erase_dead_after) does the same a time after a
//! delivery has died. In the dashboard it is an action for those who have
//! [`with_erasure`](crate::dashboard::Access::with_erasure).
//!
//! A person whose data is in many deliveries is found by your own tables, which know the ids of the events, or by a search
//! of the bodies before they are erased:
//!
//! ```sql
//! select endpoint, tenant, delivery_id
//! from idempotent_webhook.kept_requests
//! where position('ada@example.com' in encode(body, 'escape')) > 0;
//! ```
//!
//! # What it does not reach
//!
//! - What your handler has written, and the log.
//! - Backups, and the write-ahead log of Postgres. In the files of a table, deleted rows stay until `vacuum` has run.
//! - The provider, who may send the delivery again. [`Reconcile`](crate::Reconcile) does not bring it back.
//! - Ids, tenants, event types and subjects. A subject that names a person, such as an address, is one to avoid.
