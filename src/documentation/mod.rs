//! The guide: one page for each question.
//!
//! | question | page |
//! |---|---|
//! | How does a handler process a delivery? | [`handling`] |
//! | How does a handler fetch an object first? Two events of one object | [`thin_events`] |
//! | What happens to a delivery that fails? | [`recovery`] |
//! | What if a webhook never arrives? | [`reconciliation`] |
//! | How is it operated? Log, metrics, alerts, SQL, retention, shutdown, upgrade | [`operating`] |
//! | Why is it 401? What does each answer mean, and what is the cure? | [`answers`] |
//! | How are handlers tested? | [`testing`] |
//! | What does the layer need from the database? | [`database`] |
//! | How is a provider set up? | [`providers`], [`provider_table`] |
//! | What is guaranteed? | [`guarantees`] |
//! | What is stored, for how long, and how is it erased? | [`personal_data`] |
//! | What does it work with? | [`works_with`] |
//! | Diesel, tokio-postgres, sqlx 0.8, actix-web, AWS Lambda, other languages | [`drivers`] |
//! | How does an application move in that has a table of its own? | [`moving_in`] |
//!
//! # The usual advice
//!
//! What guides to webhooks advise, and who follows it here:
//!
//! | advice | followed by |
//! |---|---|
//! | Expect every delivery more than once. | the layer |
//! | Identify a delivery by the provider's stable id, and not by one of your own. | the preset ([`provider_table`]) |
//! | Verify the signature over the raw body. | the layer |
//! | Dedupe on receipt, in one step with the work. | the layer, and you through [`DedupeTx`](crate::DedupeTx) |
//! | Let ids expire, but not before the provider's last retry. | [`Retention`](crate::Retention) |
//! | Make effects conditional: expect any order. | you ([stale events](handling#stale-events)) |
//! | Pass idempotency keys on. | you ([a call to another API](handling#a-call-to-another-api)) |
//! | Put slow work into an outbox. | you ([slow work](handling#slow-work)) |
//! | Answer with the right status. | the layer ([what is answered](handling#what-is-answered)) |
//! | Test with duplicates. | you ([`testing`]) |
//! | Retry what failed. | [`Recovery`](crate::Recovery) ([`recovery`]) |
//! | Compare with the provider's list. | [`Reconcile`](crate::Reconcile) ([`reconciliation`]) |
//! | Watch it. | you ([alerts](operating#metrics-and-alerts)) |
//!
//! # Examples
//!
//! In a checkout of the source, `cargo run --example NAME` runs one on a Postgres of its own. Each prints what happens,
//! and checks it:
//!
//! | example | shows |
//! |---|---|
//! | `quickstart` | a tour of the layer and of recovery; then it serves until Ctrl-C, or ends with `-- --exit` |
//! | `handlers` | stale events, idempotency keys, savepoints, jobs, work after the commit |
//! | `recovery`, `reconcile` | a delivery that fails, and one that never came |
//! | `tenants` | secrets that are looked up |
//! | `metrics` | what Prometheus scrapes |
//! | `graceful_shutdown` | a shutdown that waits for a handler whose sender has gone |
//! | `dashboard` | the dashboard of a busy application, in a browser |
//! | `examples/traces` | a crate of its own: a failure and its recovery as one trace of OpenTelemetry |
//! | `examples/typed_events` | a crate of its own: handlers that take the events of async-stripe and of octocrab |
//! | `examples/drivers` | crates of their own: SeaORM, Diesel, tokio-postgres, sqlx 0.8, actix-web and AWS Lambda, and a race with kills |
//! | `examples/outbox` | a crate of its own: slow work in jobs of graphile_worker |

#![cfg_attr(
    not(all(
        feature = "p256",
        feature = "reqwest",
        feature = "sea-orm",
        feature = "testing",
        feature = "x509"
    )),
    allow(
        rustdoc::broken_intra_doc_links,
        reason = "the guide is for all features, and links to what they add"
    )
)]

pub mod answers;
pub mod database;
pub mod drivers;
pub mod guarantees;
pub mod handling;
pub mod moving_in;
pub mod operating;
pub mod personal_data;
pub mod provider_table;
pub mod providers;
pub mod reconciliation;
pub mod recovery;
pub mod testing;
pub mod thin_events;
pub mod works_with;
