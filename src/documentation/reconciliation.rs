//! What if a webhook never arrives?
//!
//! No request arrives while DNS is wrong, the provider has switched the endpoint off, or each signature is
//! refused after a rotation of secrets. There is nothing to keep then, so [recovery](super::recovery) has
//! nothing to run, and the provider gives up after some days, or at once. Its API still lists the events:
//! [`Reconcile`] compares that list with what was processed, and has the rest run.
//!
//! ```no_run
//! use axum::{Router, routing::post};
//! use idempotent_webhook::reconcile::StripeEvents;
//! use idempotent_webhook::{DedupeTx, IdempotentWebhook, Keep, Reconcile, Recovery, Secret, presets};
//!
//! async fn payment(_: DedupeTx) {}
//!
//! # fn main_(pool: sqlx::PgPool, secret: Secret, api_key: Secret) -> Result<(), Box<dyn std::error::Error>> {
//! let recovery = Recovery::new(pool.clone());
//! let stripe = IdempotentWebhook::new(pool, "billing", presets::stripe(secret))
//!     .keep(Keep::all(&recovery));
//!
//! let events = StripeEvents::new(api_key, ["invoice.paid"]).api_version("2024-06-20");
//! let reconcile = Reconcile::new(&stripe, events, "/webhooks/stripe")?;
//!
//! let app: Router = Router::new().route("/webhooks/stripe", post(payment).layer(stripe));
//! // In each process that serves the routes. Both return a handle with `stop`.
//! let recovery = recovery.spawn(app.clone());
//! let reconcile = reconcile.spawn();
//! # Ok(())
//! # }
//! ```
//!
//! `StripeEvents` and the other lists need the feature `reqwest`. [A list of your own](#lists-of-your-own)
//! needs no feature. The example `reconcile` runs all of this against a provider that loses a third of its
//! webhooks.
//!
//! # What is missing
//!
//! An event is missing if the endpoint has neither processed nor kept its delivery, and nobody has discarded or
//! forgotten it. What counts is the delivery id, by which a webhook is deduplicated, too.
//!
//! | what has happened | is it run? |
//! |---|---|
//! | no request arrived: DNS, a firewall, an endpoint that the provider had switched off | yes |
//! | each request was rejected: a wrong secret, a proxy that changes bodies | yes |
//! | each request got a 503, and the provider has given up | yes |
//! | the process was killed in the handler, with [`Keep::failed`] | yes |
//! | the handler failed, and the [quota](crate::Keep::quota) left no room to keep it | yes, once there is room |
//! | it was processed | no |
//! | it is kept: due, dead, or recorded without its request | no: recovery or an operator runs it, or the provider sends it again |
//! | the handler has discarded it ([`HandlerError::discard`]), or an operator has | no |
//! | an operator has [forgotten](crate::Endpoint::forget) it | no: it runs when the provider sends it again |
//! | it is younger than the [grace time](#from-when-on) | not yet |
//! | its body is larger than [`Keep::body_limit`], or the list has no usable id for it | no: it is left out, and [reported](#when-it-fails) |
//!
//! What is discarded or forgotten is in the table `idempotent_webhook.discarded`, for as long as
//! [`Retention`](crate::Retention) leaves deliveries. A request of the provider is processed all the same.
//!
//! # From when on
//!
//! A round looks at the events from the *latest* of these times on, so an earlier `since` needs a longer
//! `look_back`, too:
//!
//! - **The endpoint's first recorded delivery**, as it was when the list was reconciled for the first time. If
//!   none was recorded, it is the moment of that first round, so a first round on a new endpoint finds nothing.
//!   The same holds for a further list of an endpoint, and for the list of a tenant: the deliveries of others say
//!   nothing about it. [`since`](crate::Reconcile::since) sets another time. After a deploy in which the old
//!   system went on for a while, set the end of that.
//! - **The end of the round before**, less the grace time, and less a minute at least.
//! - **[`look_back`](crate::Reconcile::look_back)** before now, by default 7 days.
//! - **[How far the list goes back](crate::reconcile::EventSource::goes_back)**, such as 3 days with GitHub.
//! - **What [`Retention`](crate::Retention) or [`prune`](crate::prune) has left** of the endpoint's deliveries. An
//!   older event may have been processed and deleted. What is deleted while a round goes on is left out, and
//!   reported.
//!
//! If one of the last three is later than the end of the round before, there is a [gap](#gaps).
//!
//! It looks at events up to the **[`grace`](crate::Reconcile::grace)** time before now, by default 10 minutes. The
//! webhook of a younger one may still be under way. Make it longer than a handler takes, and longer
//! than the list lags behind. **An event is missed** if the list shows it only after the round that covers its time.
//! The grace time also covers the difference of the clocks.
//!
//! **With `since` before the adoption of this crate, what another system has processed runs again.** This crate
//! has no record of it. With `since`, the same is true after a change of the endpoint's name, which is part of
//! each record. Look at [`dry_run`](#a-look-before) first.
//!
//! # Event types
//!
//! The lists of Stripe, WorkOS and Chargebee are those of the account, whichever webhook an event was for. Give
//! the source the types to which *this* endpoint is subscribed. With others, the handler gets events that it was
//! never sent: one that takes every event for a payment books a refund as a payment. A handler that looks at
//! the type, and answers 2xx for those that it does not know, is safe with `*`.
//!
//! After a change of the subscription, change the types as well. With two webhooks of one account, each endpoint
//! has a `Reconcile` of its own.
//!
//! # How it runs
//!
//! What is missing is *kept* as a request to the path that [`Reconcile::new`] got, and [`Recovery`] runs it
//! through your router. The path is the full one, as the provider calls it. From then on it is a delivery like
//! any other that is kept ([recovery](super::recovery)):
//!
//! - It takes the same claim. A webhook that arrives after all is a duplicate, and of two at once one commits.
//! - It has the schedule of [`Keep::retry_delays`], is dead after the last attempt, and waits while the
//!   endpoint is paused or its breaker is open. So an endpoint can be paused while an outage is looked into.
//! - It counts against [`Keep::quota`]. If there is no room, the round fails, and goes on with that page
//!   within 5 minutes.
//! - After a long outage, many are due at once. [`Recovery::concurrency`] bounds how many run at a time.
//! - **Order is not kept.** Stripe lists the newest first, and new webhooks overtake what is missing.
//!   [`DedupeTx::advance`] detects stale events.
//!
//! [`Delivery::is_reconciled`] tells the handler. The request has the body of the list and the headers that the
//! list gives, by default only `content-type: application/json`. There is no signature, and
//! [`Delivery::signed_at`](crate::Delivery::signed_at) is `None`: the list is authentic by the TLS of its API and
//! your key. [`Delivery::first_received_at`](crate::Delivery::first_received_at) is when it was found.
//!
//! GitHub lists no bodies, so **GitHub is asked to deliver again**. What it sends is an ordinary webhook, for
//! which `is_reconciled` is `false`. If it fails again, the next round asks again, unless the delivery is kept by
//! then. It is counted as missed once. One that is rejected each time is asked for over a week. After that it is left
//! out and reported, since each request makes an attempt that the next round would find. The table
//! `idempotent_webhook.redelivery_requests` says since when each was asked for.
//!
//! # A look before
//!
//! [`Reconcile::dry_run`] returns what is missing, and touches neither tables nor, by asking for a delivery, the
//! provider:
//!
//! ```no_run
//! # use idempotent_webhook::Reconcile;
//! # use idempotent_webhook::reconcile::{EventSource, ReconcileError};
//! # async fn main_(reconcile: Reconcile<impl EventSource>) -> Result<(), ReconcileError> {
//! for missing in reconcile.dry_run().await? {
//!     let event_type = missing.event_type.as_deref().unwrap_or("-");
//!     println!("{} {event_type} {:?}", missing.id, missing.unusable);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`Reconcile::run_once`] makes a round now, for a command of an operator or a job of a scheduler. Both look at
//! all that is not older than `look_back`, whatever rounds before have looked at, so they also find what was
//! left out then, and what was deleted from the tables since. If a task's round was
//! broken off, `run_once` begins anew, and the task goes on with its own round afterwards. If `run_once` is broken off,
//! nobody goes on with it. Gaps are noticed by the task only: a job that calls `run_once` needs a `look_back` that is
//! longer than it may be down.
//!
//! # Several processes
//!
//! Spawn it in each process. A list is reconciled by one process at a time, every 15 minutes over all of them
//! ([`every`](crate::Reconcile::every)). The row of the list in `idempotent_webhook.reconciliations` says whose
//! turn it is, and at which page. It is written after each page, once what is missing of that page is kept.
//!
//! - If the process is killed, another one goes on with the page within about 4 minutes.
//! - If it is stopped ([`ReconcileTask::stop`](crate::reconcile::ReconcileTask::stop)), another one goes on
//!   within about a minute.
//! - A page that is looked at twice changes nothing: what is kept is not missing.
//!
//! The row belongs to the endpoint, the path and the [name of the list](crate::reconcile::EventSource::name).
//!
//! - **Two lists of one endpoint need different names**, such as those of two Stripe accounts that send to one
//!   route: `StripeEvents::named`. With one name, each would take the other one's position for its own, and leave out
//!   what the other one has looked at. With one [`Recovery`], [`Reconcile::new`] refuses the second one. Over several
//!   of them, or several processes, nobody notices. A key is no part of the name, so that a list goes on where it was after its key
//!   is rotated.
//! - **A list at a new path goes on where it was** under the same name. With [tenants](#tenants), whose lists
//!   differ by the path, a new path begins with its first round, and so does a new name everywhere: set
//!   [`since`](crate::Reconcile::since) to the end of the last one.
//! - The row of the old path is late from then on. Delete the row of a list that you do not reconcile any more,
//!   once the new one has had a round, and not while it has a [gap](#gaps); `Retention` does so after a year.
//!
//! # When it fails
//!
//! | what | then |
//! |---|---|
//! | the list asks to wait: 429 and rate limits, 5xx with `Retry-After` | the same page is asked for again after that time, for up to an hour at a time and ten times, with a WARN each |
//! | any other answer or error of the list; no room to keep; Postgres is away | a WARN; the round goes on after 5 minutes, or after `every` if that is shorter |
//! | the page to go on with is refused, since the provider does not know it any more: 400, 404 | the next try begins anew, with the first page |
//! | the list has more and gives no cursor for the next page, or its pages go round in a circle | a WARN; the next try begins anew, with the first page |
//! | an answer comes by a redirect to another origin | it is an error of the list: nothing of it is run |
//! | GitHub refuses a redelivery for good: 404, 422 | it is left out; the round goes on |
//! | an item of the list cannot be read | it is left out; the round goes on behind the last one that can be |
//! | an event is missing and cannot be run | the round goes on without it; at its end, one WARN with the number and the first reason |
//!
//! The round that finds the last one reports it. With the defaults, the next round may report it again, and later ones
//! do not. [`dry_run`](#a-look-before) still lists it, with the reason. The metric of failures counts such a round,
//! too.
//!
//! What was missing is a WARN as well, with the number, and INFO with each delivery id. It is rare, and it means
//! that something in front of the endpoint is wrong.
//!
//! With the feature `metrics`, [two alerts](super::operating#metrics-and-alerts) are for this: `WebhooksNeverCame` and
//! `WebhooksNotReconciled`.
//!
//! The dashboard shows each list on the page of its endpoint, and counts what was missing by the hour. The same
//! in SQL, where `is_late` is a list of which no round has ended for an hour after it was due:
//!
//! ```sql
//! select endpoint, path, source, reconciled_until, missed, last_missed_at, failure, failed_at,
//!        now() - next_round_at > interval '1 hour' as is_late
//! from idempotent_webhook.reconciliations
//! order by endpoint, path, source;
//! ```
//!
//! `failure` is that of the last round, and null again after one that has left nothing out, unless there is a gap.
//!
//! # Gaps
//!
//! No round was made for longer than `look_back`, or than the list goes back, or for so long that retention has deleted
//! what tells which events were processed. The next round cannot look at all of the time between. **Events of that
//! time may be lost.** A WARN says so. `gap_since` and `gap_until` of the row say which time it is. Until it is
//! dealt with, `failure` says so after each round, the endpoint is not reconciled on the dashboard, and each round
//! counts as a failure in the metric.
//!
//! [`Reconcile::run_once`] with a longer `look_back` looks at it, and the gap is gone once it has looked at all of it.
//! What retention has deleted, or the list does not have any more, it cannot look at. Compare that time by hand, and
//! say that it is done:
//!
//! ```sql
//! update idempotent_webhook.reconciliations
//! set gap_since = null, gap_until = null
//! where endpoint = 'billing' and source = 'stripe';
//! ```
//!
//! # Tenants
//!
//! With [`TenantSecrets`](crate::TenantSecrets), the path says whose events a list has: make a `Reconcile` for
//! each tenant, with the tenant's path, such as `/webhooks/acme`, and the tenant's API key. The tenant is looked
//! up as for a request to that path, and a path without a tenant is a failure of the round. Without
//! [`separate_ids`](crate::TenantSecrets::separate_ids), an id that one tenant has processed is not missing for
//! another one.
//!
//! # The lists that are built in
//!
//! | source | lists | for how long | body | order | rights |
//! |---|---|---|---|---|---|
//! | `StripeEvents` | all events of the account, or of a connected one | 30 days | as the webhook has it, in the API version of the account | newest first | a restricted key that may read events |
//! | `GitHubDeliveries` | the attempts to deliver of one webhook of a repository, an organization or an app | 3 days | none: GitHub delivers again | newest first | to read and write webhooks |
//! | `PaddleNotifications` | what was to be sent to one destination | 90 days | that of the webhook | oldest first | `notification.read` |
//! | `WorkOsEvents` | all events of the environment, of the types asked for | 90 days, 30 in a round | the event, with more members than some webhooks have | oldest first | the API key of the environment |
//! | `ChargebeeEvents` | all events of the site | not documented | the event, in version 2 of the API | oldest first | an API key of the site |
//!
//! The documentation of each has its limits, and where its body differs. All take `Http`, with the address of a
//! sandbox or a server of your own, a client for a proxy, and a timeout. Give Stripe's `api_version`, so that an
//! event in another version than the endpoint's is left out, not run.
//!
//! # Lists of your own
//!
//! The trait [`EventSource`](crate::reconcile::EventSource), with an example, is for any other API: it gives
//! pages of events with their times and bodies, or asks for a delivery to be sent again. What a round needs of
//! it:
//!
//! - the event of a webhook has the same delivery id in the list, and the time in the list does not change;
//! - the same page can be asked for twice, by another process, too, and no other page has its cursor;
//! - a limit of its rate is an error with [`retry_after`](crate::reconcile::SourceError::retry_after).
//!
//! # Which presets cannot be reconciled
//!
//! [`Reconcile::new`] refuses a provider whose delivery id the list does not give, since a webhook that arrives
//! after all would be another delivery, and run again. The [table of presets](super::provider_table) has each one's
//! delivery id. It depends on what that is:
//!
//! | delivery id | such as | can it be reconciled? |
//! |---|---|---|
//! | a member of the body | Stripe, Paddle, Square, PayPal | yes, if the list has the same member |
//! | a header | GitHub, Shopify, Linear, Svix | only with a list that [gives the header](crate::reconcile::EventSource::headers); that of an API for events seldom does |
//! | a digest of the body | Zoom, Calendly, Lemon Squeezy, Meta | no: a list has the same JSON, but not the same bytes |
//! | the signed time, or another signed value | Webflow, Plaid, Adyen | no: a list has no signature |
//! | a receipt | Dropbox, Patreon | no: each request has a new id |
//!
//! If the id is made of several parts, or is the first of several that is there, the list has to give each.
//! Which one a webhook would have had is not known.
//!
//! # What is not covered
//!
//! What the provider does not list is not found: events older than its list goes back, what it has not generated,
//! what happened before there was a webhook where the list is that of the webhook (GitHub, Paddle), and GitHub's
//! events while its webhook was inactive. A list of your own that does not say how far it
//! [goes back](crate::reconcile::EventSource::goes_back) leaves gaps that are not reported.
//!
//! [`DedupeTx::advance`]: crate::DedupeTx::advance
//! [`Delivery::is_reconciled`]: crate::Delivery::is_reconciled
//! [`HandlerError::discard`]: crate::HandlerError::discard
//! [`Keep::body_limit`]: crate::Keep::body_limit
//! [`Keep::failed`]: crate::Keep::failed
//! [`Keep::quota`]: crate::Keep::quota
//! [`Keep::retry_delays`]: crate::Keep::retry_delays
//! [`Reconcile`]: crate::Reconcile
//! [`Reconcile::dry_run`]: crate::Reconcile::dry_run
//! [`Reconcile::new`]: crate::Reconcile::new
//! [`Reconcile::run_once`]: crate::Reconcile::run_once
//! [`Recovery`]: crate::Recovery
//! [`Recovery::concurrency`]: crate::Recovery::concurrency
