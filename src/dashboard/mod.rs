//! A dashboard for operators, as a router to nest: see what arrives, what fails, and mend it. It is the feature `dashboard`.
//!
//! To try it on your own machine, with a server on 127.0.0.1:
//! `Dashboard::new(pool).authenticated_in_front().hosts(["localhost", "127.0.0.1"])`.
//!
//! ```
//! use axum::Router;
//! use axum::extract::Request;
//! use axum::middleware::{Next, from_fn};
//! use axum::response::{IntoResponse, Redirect, Response};
//! use idempotent_webhook::dashboard::{Access, Dashboard};
//! use sqlx::PgPool;
//!
//! #[derive(Clone)]
//! struct User {
//!     name: String,
//!     is_operator: bool,
//! }
//!
//! fn with_dashboard(app: Router, pool: PgPool) -> Router {
//!     let dashboard = Dashboard::new(pool).authorize(|head| match head.extensions.get::<User>() {
//!         Some(user) if user.is_operator => Access::operate().with_payloads().named(&*user.name),
//!         Some(user) => Access::read().named(&*user.name),
//!         None => Access::none(),
//!     });
//!     // `app.layer(..)` covers only routes that were added before it, so the login goes here.
//!     let dashboard = dashboard.into_router().layer(from_fn(login));
//!     // `nest` would not answer the prefix with a slash at its end.
//!     app.nest_service("/admin/webhooks", dashboard)
//! }
//!
//! /// The application's own middleware.
//! async fn login(mut request: Request, next: Next) -> Response {
//!     match user_of(&request) {
//!         Some(user) => {
//!             request.extensions_mut().insert(user);
//!             next.run(request).await
//!         }
//!         None => Redirect::to("/login").into_response(),
//!     }
//! }
//! # fn user_of(_: &Request) -> Option<User> { None }
//! ```
//!
// Only in the documentation, so that no build of an application has it.
#![cfg_attr(
    doc,
    doc = concat!(
        "![The overview: each endpoint with its state, a plot of the last day and what is due or dead; ",
        "below, the failures, grouped by reason](data:image/png;base64,",
        include_str!("../../pictures/dashboard.png.base64"),
        ")",
    )
)]
//!
//! # What it shows
//!
//! - **Overview**: each endpoint with its state, the worst first; its deliveries of the last 24 hours by outcome; how
//!   many deliveries are due, dead or recorded; how long the oldest has been due; and the last success. *In all* counts
//!   the processed, duplicate, rejected and failed ones; an accepted delivery counts once it is processed or failed.
//!   Below (above, on a phone) are the failures: each reason once, over all endpoints. Reasons that differ only in
//!   words with digits, such as ids, are one.
//! - **An endpoint**: the same by hour, for a day or a week; by version of the application
//!   ([`version`](crate::IdempotentWebhook::version)), with the time that handlers took; failures and rejections; how
//!   far each list of its provider is reconciled ([`Reconcile`](crate::Reconcile)); its settings, as a process reported
//!   them.
//! - **Deliveries**: failing, due and processed deliveries, by endpoint, state, event type, tenant, time and reason.
//!   The address has the filters.
//! - **A delivery**: its state, its failed attempts, its request, also as a command for a
//!   POSIX shell or for fish.
//! - **Rejected**: requests that were refused, by cause and hour, with the last reason.
//! - **Look up**: the state of the deliveries with these ids: processed, due, dead, in flight, discarded, or
//!   not known.
//! - **Actions**: the actions of each operator on these pages, and the results of the deliveries that an action made
//!   due. An action on a delivery that is repeated within a minute, and changes nothing, is recorded once. For an
//!   action on all deliveries of a reason, the group of the reason is recorded: its text is shown for as long as a
//!   delivery has a reason of the group.
//!
//! Operators retry and discard deliveries: one by one, selected ones, all of a filter, or all of a reason. They have
//! processed deliveries processed again: from the request if it is kept
//! ([`Keep::processed_for`](crate::Keep::processed_for)), and otherwise once it comes again. They pause and resume the
//! recovery of an endpoint. With [`Access::with_erasure`], they erase the content of deliveries. With
//! [`Access::with_adoption`], they give the database another [environment](crate::Recovery::environment). An action on many
//! deliveries first shows what it will do, and to how many. It runs in the background, leaves running deliveries alone
//! and counts them, counts each batch in the transaction of the batch, and can be cancelled.
//!
//! # States of an endpoint
//!
//! | state | meaning |
//! |---|---|
//! | `unserved` | deliveries are due, and no process runs [`Recovery`](crate::Recovery) for it |
//! | `failing` | deliveries have failed and wait, or none was processed since the last failure |
//! | `stalled` | a background task has stopped, although its process lives |
//! | `rejecting` | no request was authentic since the last one that was rejected |
//! | `silent` | no authentic request has come for longer than [`expect_every`](crate::IdempotentWebhook::expect_every) allows |
//! | `probing` | many failed in a row, so one delivery is tried at a time |
//! | `behind` | deliveries wait for their first attempt for more than a minute, or reach no layer |
//! | `paused` | an operator has paused its recovery |
//! | `not reconciled` | [`Reconcile`](crate::Reconcile) has failed, has left something out, or is late by more than an hour |
//! | `event type stopped` | a type that has a handler [no longer comes](crate::documentation::operating#event-types) |
//! | `new event type` | ignored events have a type that never came before |
//! | `other version` | payloads had another version than the [expected](crate::Provider::expect_version) one, or another [mode](crate::Provider::expect_livemode) |
//! | `subscription differs` | the provider's subscription is not as [`Subscriptions`](crate::subscriptions::Subscriptions) expects it |
//! | `not compared` | for a day, the provider could not be asked for its subscription |
//! | `mixed` | in this hour or the one before, some failed or were rejected, and some succeeded |
//! | `quiet` | nothing was counted over the last 24 hours |
//! | `fine` | none of these |
//!
//! A process that is killed loses the numbers of its last 5 seconds. Numbers whose commit Postgres has not confirmed
//! are written again, and may be counted twice. Until the next delivery, a state can be out of date.
//!
//! A list that the application no longer reconciles is late, until its row in the table `reconciliations` is deleted.
//!
//! The numbers of the last hours come from the tables `activity` and `rejections`,
//! which layers write every 5 seconds unless it is [switched off](crate::IdempotentWebhook::without_activity).
//!
//! # Who may see it
//!
//! Nobody, until you set one of two: [`authorize`](Dashboard::authorize), which decides for each request, or
//! [`authenticated_in_front`](Dashboard::authenticated_in_front), if something else decides. [`Access`] may
//! be limited to some endpoints or tenants. Payloads and kept headers are a right of their own
//! ([`Access::with_payloads`]). Without it, quoted texts, mail addresses and digits are masked in reasons, because
//! errors of parsers quote payloads. Other words of a reason are shown: keep personal data out of error messages, which
//! are also logged.
//!
//! Actions are accepted only from pages of the same site. To somebody who comes from another site, a page
//! shows its actions only after a click, since the second click of a double click there would land on it. If
//! only a network keeps strangers out, set [`hosts`](Dashboard::hosts).
//!
//! All text is escaped. A Content Security Policy allows only the dashboard's own script and style. The pages
//! work without scripts, too.
//!
//! # For programs
//!
//! `api/status` says which endpoints are unwell, and why. `api/why` says what happened to a delivery, from receipt to effect.
//! Their form [is promised](crate::documentation::stability), and the command `webhook` reads them:
//! [For programs](crate::documentation::operating#for-programs).
//!
//! Besides, each page exists as JSON under `api/`, with the same parameters, the same rights and the same limits, and
//! each action takes JSON:
//!
//! ```sh
//! curl -H "$AUTH" https://ops.example.com/admin/webhooks/api/overview
//! curl -H "$AUTH" 'https://ops.example.com/admin/webhooks/api/deliveries?endpoint=billing&state=dead'
//! curl -H "$AUTH" --json '{"action": "retry", "endpoint": "billing", "id": "evt_1Qx"}' \
//!     https://ops.example.com/admin/webhooks/api/act
//! ```
//!
//! | address | parameters |
//! |---|---|
//! | `api/overview` | |
//! | `api/endpoint` | `endpoint`; `days`: 1 or 7 |
//! | `api/rejected` | `endpoint` |
//! | `api/deliveries` | `endpoint`; `state`: `failing`, `dead`, `due`, `recorded` or `processed`; `event_type`; `tenant`; `from`, `until`; `reason`: a `reason_group` |
//! | `api/delivery`, `api/payload`, and `api/capture` with the feature `testing` | `endpoint`, `tenant` if it is part of the key, `id` |
//! | `api/lookup` | `ids`, also posted, as a list |
//! | `api/actions`, `api/action` | `id` of one |
//! | `api/confirm`, and POST `api/act` | `action`: `retry`, `discard`, `reprocess`, `forget`, `erase`, `pause`, `resume` or `adopt`; the key of a delivery, or `keys`: a list of keys, or the filters of `api/deliveries` with `state` and `before`; to adopt, `environment` |
//! | POST `api/cancel` | `id` of an action |
//! | `api/status` | `endpoint` for one |
//! | `api/why` | `id`; `endpoint`, `tenant` for one delivery |
//!
//! `api/confirm` returns how many deliveries an action would change, and does nothing. `api/act` answers with the `id`
//! of the action. `api/action` has its result, for readers who see all tenants. `before` is the time when somebody saw
//! the deliveries, such as the `now` of a list: deliveries that came since are left out. `from` is inclusive, and
//! `until` is exclusive. Times are in UTC, as in `2026-11-23T05:00:00Z`. A list has the address of its `next` page.
//! `environment` has the `name` of the database's [environment](crate::Recovery::environment), and the `others` that processes
//! use, an empty text for none.
//! `missed` is the number of deliveries that reconciliation has received. `not_reconciled` is true even if a worse
//! state hides it, and so are `new_event_type`, `event_type_stopped` and `other_version`. `subscription_differs` is the
//! difference, or null. `not_compared` is the reason why the provider could not be asked for a day, or null. `handled`
//! of `api/endpoint` has the types with a handler, and `ignored` the types without one, each with `new`, `named` (in
//! the table) and `verified`. `reconciliation` of `api/endpoint` has each list of the provider, with the `failure` of
//! its last round, and `late_since` if no process has begun one. `is_reconciled` of `api/delivery` is true if the
//! delivery comes from such a list. `ids` of `api/lookup` are separated by spaces or new lines. Its `cut` has the ids
//! with more than 100 deliveries. Its `discarded` has discarded or forgotten deliveries, with their time. Its
//! `has_request` is true if the archive has the request of a processed delivery. A number that was not counted to its
//! end has `or_more`. Errors are `{"error": ".."}` with a status.
//!
//! Give programs a token, which `authorize` finds in the head of the request. A posted body must be `application/json`,
//! which no form and, without the server's consent (CORS), no script of another site can send.
//!
//! # What it costs
//!
//! The work of a page is bounded, however many rows there are. Numbers are counted up to 10,000, or less if
//! there are many, and up to 100,000 before an action. Lists are read from an index, 50 at a time. Where no
//! index has the filters, a page searches for a tenth of a second, and the next one goes on. No statement of
//! a page takes longer than 5 seconds, and the dashboard uses two connections at most, even if the operator gives up
//! waiting. `benches/README.md` has figures with millions of rows.
//!
//! # Where to put it
//!
//! Under any prefix with [`Router::nest_service`](axum::Router::nest_service), or as the whole router of a server of its
//! own. The prefix redirects to `overview`, with a slash at its end or without; with `nest`, axum answers the slash with
//! 404. All links are relative, so a proxy may strip a prefix or add one. A proxy that strips it without a slash at its
//! end must send `X-Forwarded-Prefix`, or redirect to the address with the slash.
//!
//! Over HTTPS, browsers say from which site a form comes (`Sec-Fetch-Site`), and a proxy may change the
//! `Host`. Over plain HTTP they say it only for the same machine. Then the `Origin` is compared with the
//! `Host`, and [`trusted_origin`](Dashboard::trusted_origin) names the origin that browsers see. If the login is at
//! another origin, name it with [`login_origin`](Dashboard::login_origin).
//!
//! It needs the tables of [`migrate`](crate::migrate), and only the database, so it can run in another process
//! than the webhooks. The role needs the rights that `migrate` lists. Pages with live numbers load their content
//! again, while they are visible.

mod access;
mod activity;
mod assets;
mod claim_lock;
mod csrf;
mod cursor;
mod database;
mod endpoint_state;
mod endpoints;
mod environments;
mod error;
mod format;
mod guard;
mod html;
mod origins;
mod operate;
mod page_list;
mod pages;
mod params;
mod routes;
mod rows;
mod selection;
mod view;

use std::sync::Arc;

use axum::Router;
use http::request::Parts;
use sqlx::PgPool;

pub use access::Access;
use access::Authorizer;
use database::Database;
use origins::Site;

/// A dashboard, as a router to nest. See the [module](self).
#[derive(Clone, Debug)]
#[must_use = "a dashboard is served by `into_router`"]
pub struct Dashboard {
    pool: PgPool,
    authorizer: Option<Authorizer>,
    site: Site,
}

/// What all requests share.
#[derive(Debug)]
struct Shared {
    database: Database,
    authorizer: Option<Authorizer>,
    site: Site,
}

impl Dashboard {
    /// A dashboard on the database of the webhooks. Nobody may see it until
    /// [`authorize`](Self::authorize) or [`authenticated_in_front`](Self::authenticated_in_front) is
    /// set.
    pub fn new(pool: PgPool) -> Self {
        Self {
            pool,
            authorizer: None,
            site: Site::default(),
        }
    }

    /// Decides for each request what it may do, from its head: a cookie, a header, or what a
    /// middleware of the application has put into its extensions.
    pub fn authorize(self, authorize: impl Fn(&Parts) -> Access + Send + Sync + 'static) -> Self {
        self.authorize_async(move |head| std::future::ready(authorize(head)))
    }

    /// The same, if the decision needs a database. After ten seconds without a decision, the answer is a 503.
    ///
    /// ```no_run
    /// use idempotent_webhook::dashboard::{Access, Dashboard};
    ///
    /// # async fn is_operator(_: &sqlx::PgPool, _: Option<String>) -> bool { false }
    /// # fn main_(pool: sqlx::PgPool) {
    /// let sessions = pool.clone();
    /// let dashboard = Dashboard::new(pool).authorize_async(move |head| {
    ///     let cookie = head.headers.get("cookie").and_then(|cookie| cookie.to_str().ok());
    ///     let (cookie, sessions) = (cookie.map(str::to_owned), sessions.clone());
    ///     async move {
    ///         match is_operator(&sessions, cookie).await {
    ///             true => Access::operate(),
    ///             false => Access::none(),
    ///         }
    ///     }
    /// });
    /// # }
    /// ```
    pub fn authorize_async<F>(
        mut self,
        authorize: impl Fn(&Parts) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Access> + Send + 'static,
    {
        self.authorizer = Some(Authorizer::new(authorize));
        self
    }

    /// Lets everybody see everything, payloads included, and do everything except [erasure](Access::with_erasure)
    /// and [adoption](Access::with_adoption), because something in front of the dashboard has authenticated them: a middleware around it, a proxy, or a
    /// network that only operators reach. Actions are recorded without a name.
    pub fn authenticated_in_front(self) -> Self {
        self.authorize(|_| Access::operate().with_payloads())
    }

    /// The only hosts under which browsers reach the dashboard, with a port or for any port. Requests for
    /// another host are answered with 403.
    ///
    /// Set them if only a network, a VPN or the machine itself keeps strangers out: another site can make its own name
    /// resolve to an address of that network (DNS rebinding). Then it reads and acts with the
    /// reader's browser. Default: any host.
    ///
    /// ```no_run
    /// # use idempotent_webhook::dashboard::Dashboard;
    /// # fn main_(pool: sqlx::PgPool) -> Dashboard {
    /// Dashboard::new(pool).authenticated_in_front().hosts(["ops.internal", "localhost"])
    /// # }
    /// ```
    pub fn hosts(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.site.hosts = Some(hosts.into_iter().map(Into::into).collect());
        self
    }

    /// An origin at which browsers see the dashboard, such as `http://ops.example.com:8080`, if a proxy
    /// changes the `Host`. It is needed over plain HTTP only: with HTTPS, browsers say themselves that a
    /// form comes from the same origin.
    ///
    /// # Panics
    ///
    /// If it is not an origin: a scheme, a host and perhaps a port, without a path.
    pub fn trusted_origin(mut self, origin: &str) -> Self {
        self.site.origins.push(checked(origin));
        self
    }

    /// The origin of the login, such as `https://login.example.com`, if it is another one. Once a session
    /// has ended, the next form is redirected there, and browsers follow only if the page has allowed it.
    ///
    /// # Panics
    ///
    /// If it is not an origin: a scheme, a host and perhaps a port, without a path.
    pub fn login_origin(mut self, origin: &str) -> Self {
        self.site.login_origins.push(checked(origin));
        self
    }

    /// The router, for [`Router::nest_service`](axum::Router::nest_service), or to be served as it is.
    pub fn into_router<S: Clone + Send + Sync + 'static>(self) -> Router<S> {
        routes::router(Arc::new(Shared {
            database: Database::new(self.pool),
            authorizer: self.authorizer,
            site: self.site,
        }))
    }
}

#[expect(clippy::panic, reason = "documented, and only at start")]
fn checked(text: &str) -> String {
    match origins::origin(text) {
        Some(origin) => origin,
        None => panic!("not an origin: {text:?}; one is like https://ops.example.com"),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::page_list::PAGES;

    #[test]
    fn the_documentation_has_the_address_of_each_page() {
        let documentation = include_str!("mod.rs");
        for entry in &PAGES {
            let address = format!("`api/{}`", entry.name);
            assert!(documentation.contains(&address), "{address}");
        }
    }

    #[test]
    fn the_documentation_has_the_picture_of_the_readme() {
        let picture = STANDARD.encode(include_bytes!("../../pictures/dashboard.png"));
        let embedded = include_str!("../../pictures/dashboard.png.base64");
        let command = "base64 -w0 pictures/dashboard.png > pictures/dashboard.png.base64";
        assert!(embedded == picture, "run: {command}");
    }
}
