//! A dashboard where operators see what arrives and what fails, and repair it. It is a router to nest, behind the
//! feature `dashboard`.
//!
//! To try it on your own machine, with a server on 127.0.0.1, add it to the router before `Recovery::spawn`:
//!
//! ```
//! # use axum::Router;
//! # use idempotent_webhook::dashboard::Dashboard;
//! # fn try_it(router: Router, pool: sqlx::PgPool) -> Router {
//! let dashboard = Dashboard::new(pool).authenticated_in_front().hosts(["localhost", "127.0.0.1"]);
//! let router = router.nest_service("/admin/webhooks", dashboard.into_router::<()>());
//! # router
//! # }
//! ```
//!
//! In production, your own login decides who may see it:
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
//!     // `app.layer(..)` covers only routes that were added before it, so the login is added here.
//!     let dashboard = dashboard.into_router().layer(from_fn(login));
//!     // `nest` would not answer the prefix with a trailing slash.
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
// The picture is included only when rustdoc runs, so that no application contains it.
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
//! - **Overview**: each endpoint with its state, worst first; its deliveries of the last 24 hours by outcome; how many
//!   deliveries are *due* (waiting for another attempt), *dead* (their last attempt has failed) or *recorded* (only
//!   their failure is stored, without the request); how long the oldest due delivery has been due; and the last
//!   success. *In all* counts processed deliveries, duplicates, rejected requests and failed attempts; an accepted
//!   delivery counts once it is processed or has failed. The failures are listed below the endpoints, or above them on
//!   a phone. Each reason appears once for all endpoints. Reasons that differ only in words with digits, such as ids,
//!   count as the same reason.
//! - **An endpoint**: the same numbers by hour, for a day or a week, and by application version
//!   ([`version`](crate::IdempotentWebhook::version)), with handler durations; failures and rejections; how far each of
//!   the provider's event lists is reconciled ([`Reconcile`](crate::Reconcile)); and the settings that a process last
//!   reported.
//! - **Deliveries**: failing, due and processed deliveries, filtered by endpoint, state, event type, tenant, time and
//!   reason. The filters are part of the address.
//! - **A delivery**: its state, its failed attempts and its request, which is also shown as a command for a POSIX shell
//!   or fish.
//! - **Rejected**: refused requests by cause and hour, with the last reason.
//! - **Look up**: the state of the deliveries with the ids that you enter: processed, due, dead, in flight, discarded,
//!   or not known.
//! - **Actions**: what each operator did on these pages, and what became of the deliveries that an action made due. If
//!   an action on one delivery changes nothing and is repeated within a minute, it is recorded once. If an action
//!   applies to all deliveries with the same reason, its record contains an id for the group of equal reasons, and not
//!   the text of a reason. The page shows the text as long as some delivery still has a reason of that group.
//!
//! Operators can retry and discard deliveries: a single one, a selection, all that match a filter, or all with the same
//! reason. They can have a processed delivery processed again. If its request is kept
//! ([`Keep::processed_for`](crate::Keep::processed_for)), the handler runs again with that request; otherwise, it runs
//! once the provider sends the delivery again. Operators can also pause and resume the recovery of an endpoint. With
//! [`Access::with_erasure`], they can erase the content of deliveries. With [`Access::with_adoption`], they can give
//! the database another [environment](crate::Recovery::environment).
//!
//! Before an action on many deliveries starts, a page shows what it will do, and to how many deliveries. The action
//! runs in the background and can be cancelled. Deliveries for which an attempt is running at that moment are counted,
//! but not changed. Each batch is counted in the same transaction that changes it.
//!
//! # States of an endpoint
//!
//! | state | meaning |
//! |---|---|
//! | `unserved` | deliveries are due, and no process runs [`Recovery`](crate::Recovery) for the endpoint |
//! | `failing` | failed deliveries are waiting, or nothing was processed since the last failure |
//! | `stalled` | a background task has stopped, although its process is alive |
//! | `rejecting` | no authentic request has arrived since the last rejected one |
//! | `silent` | no authentic request has arrived for longer than [`expect_every`](crate::IdempotentWebhook::expect_every) allows |
//! | `probing` | many deliveries failed in a row, so recovery tries one at a time |
//! | `behind` | deliveries have waited more than a minute for their first attempt, or recovery attempts reach no layer |
//! | `paused` | an operator has paused the endpoint's recovery |
//! | `not reconciled` | [`Reconcile`](crate::Reconcile) has failed, has left something out, or is more than an hour late |
//! | `event type stopped` | events of a type that has a handler [no longer arrive](crate::documentation::operating#event-types) |
//! | `new event type` | ignored events have a type that never arrived before |
//! | `other version` | payloads did not have the [expected version](crate::Provider::expect_version) or [mode](crate::Provider::expect_livemode) |
//! | `subscription differs` | the provider's subscription is not what [`Subscriptions`](crate::subscriptions::Subscriptions) expects |
//! | `not compared` | for a day, the provider's subscription could not be read |
//! | `mixed` | in this hour or the hour before, attempts failed or requests were rejected, and other attempts or requests succeeded |
//! | `quiet` | nothing was counted in the last 24 hours |
//! | `fine` | none of the states above applies |
//!
//! A process that is killed loses the counts of its last 5 seconds. If Postgres has not confirmed the commit of some
//! counts, they are written again, and may be counted twice. Until the next delivery, a state can be out of date.
//!
//! An event list that the application no longer reconciles counts as late until its row in the table `reconciliations`
//! is deleted.
//!
//! The numbers of the last hours come from the tables `activity` and `rejections`. Layers write to them every 5
//! seconds, unless this is [switched off](crate::IdempotentWebhook::without_activity).
//!
//! # Who may see it
//!
//! Nobody, until you set either [`authorize`](Dashboard::authorize), which decides for each request, or
//! [`authenticated_in_front`](Dashboard::authenticated_in_front), if something in front of the dashboard decides.
//! [`Access`] may be limited to some endpoints or tenants. Payloads and kept headers need a separate right
//! ([`Access::with_payloads`]). Without this right, quoted texts, mail addresses and digits are masked in reasons,
//! because parser errors quote payloads. The other words of a reason are shown. Keep personal data out of error
//! messages, which are also logged.
//!
//! Actions are accepted only from pages of the same site. If somebody arrives from another site, a page shows its
//! actions only after a click. Otherwise the second click of a double click on that site could land on an action. If
//! nothing but the network keeps strangers out, set [`hosts`](Dashboard::hosts).
//!
//! All text is escaped. A Content Security Policy allows only the dashboard's own script and style. The pages also work
//! without scripts.
//!
//! # For programs
//!
//! `api/status` reports which endpoints have a problem, and why. `api/why` reports what happened to a delivery, from
//! receipt to effect. Their format [is promised](crate::documentation::stability), and the command `webhook` reads both
//! pages: see [For programs](crate::documentation::operating#for-programs).
//!
//! In addition, each page is available as JSON under `api/`, with the same parameters, rights and limits, and each
//! action accepts JSON:
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
//! | `api/lookup` | `ids`; they can also be posted, as a list |
//! | `api/actions`, `api/action` | for one action, its `id` |
//! | `api/confirm`, and POST `api/act` | `action`: `retry`, `discard`, `reprocess`, `forget`, `erase`, `pause`, `resume` or `adopt`; the key of a delivery, or `keys`: a list of keys, or the filters of `api/deliveries` with `state` and `before`; for `adopt`, `environment` |
//! | POST `api/cancel` | `id` of an action |
//! | `api/status` | for one endpoint, `endpoint` |
//! | `api/why` | `id`; for one delivery, also `endpoint` and `tenant` |
//!
//! `api/confirm` returns how many deliveries an action would change, and changes nothing. `api/act` returns the `id` of
//! the action. With that `id`, `api/action` returns the result of the action, but only to readers who may see all
//! tenants. `before` is the time when somebody saw the deliveries: the value of `now` in the list. An action leaves out
//! deliveries that arrived, or arrived again, after this time. `from` is inclusive, and `until` is exclusive. Times are
//! in UTC, as in `2026-11-23T05:00:00Z`. A list gives the address of the `next` page. If counting stopped at a limit,
//! the number has `or_more`. An error is `{"error": ".."}` with an HTTP status.
//!
//! `environment` has two parts: `name` is the database's [environment](crate::Recovery::environment), and `others`
//! lists the environments of other processes that use the database. A process without an environment appears in
//! `others` as an empty string. `missed` counts the deliveries that never arrived, and that reconciliation has received
//! from the provider's event lists. `not_reconciled`, `new_event_type`, `event_type_stopped` and `other_version` are
//! true even if a worse state hides the problem. `subscription_differs` is the difference, or null. `not_compared` is
//! the reason why the provider's subscription could not be read for a day, or null.
//!
//! In `api/endpoint`, `handled` lists the event types with a handler, and `ignored` lists the types without a handler.
//! For an ignored type, `new` is true if the endpoint had never received the type before, `named` if the layer's table
//! of event types lists it, and `verified` if an untrusted sender cannot have chosen the name. `reconciliation` lists
//! the provider's event lists, with the `failure` of the last round, and with `late_since` if no process has started a
//! round. In `api/delivery`, `is_reconciled` is true if the delivery comes from one of these event lists.
//!
//! In `api/lookup`, `ids` are separated by spaces or new lines. `cut` lists the ids with more than 100 deliveries, and
//! `discarded` lists the discarded or forgotten deliveries, each with its time. `has_request` is true for a processed
//! delivery whose request is in the archive.
//!
//! Give programs a token that `authorize` checks in the request headers. A posted body must be `application/json`. No
//! form can send this type, and a script of another site can send it only with the server's consent (CORS).
//!
//! # What it costs
//!
//! The work for a page is bounded, however many rows there are. Each number is counted up to 10,000; if a page shows
//! many numbers, the limit is lower. Before an action, deliveries are counted up to 100,000. Lists are read from an
//! index, 50 deliveries at a time. If no index covers the filters, a page searches for a tenth of a second, and the
//! next page continues from there. No statement of a page takes longer than 5 seconds. The dashboard uses at most two
//! connections, even if operators give up waiting and load pages again. `benches/README.md` gives measurements with
//! millions of rows.
//!
//! # Where to put it
//!
//! Nest the dashboard under any prefix with [`Router::nest_service`](axum::Router::nest_service), or run it as the
//! whole router of a separate server. The prefix redirects to `overview`, with or without a trailing slash. If you used
//! `nest` instead, axum would answer 404 to the prefix with a trailing slash. All links are relative, so a proxy may
//! strip or add a prefix. A proxy that strips the prefix from an address without a trailing slash must send
//! `X-Forwarded-Prefix`, or redirect to the address with the slash.
//!
//! Over HTTPS, browsers report which site a form comes from (`Sec-Fetch-Site`), so a proxy may change the `Host`. Over
//! plain HTTP, browsers report this only to a server on the same machine. If the report is missing, the dashboard
//! compares the `Origin` with the `Host`. If a proxy changes the `Host`, call
//! [`trusted_origin`](Dashboard::trusted_origin) with the origin that browsers see. If the login page has another
//! origin, call [`login_origin`](Dashboard::login_origin) with that origin.
//!
//! The dashboard needs nothing but the database, with the tables of [`migrate`](crate::migrate), so it can run in a
//! different process from the webhooks. Its database role needs the rights that `migrate` lists. Pages with live
//! numbers reload their content while they are visible.

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

/// The state that all requests share.
#[derive(Debug)]
struct Shared {
    database: Database,
    authorizer: Option<Authorizer>,
    site: Site,
}

impl Dashboard {
    /// Creates a dashboard on the database that the webhooks use. Nobody may see it until
    /// [`authorize`](Self::authorize) or [`authenticated_in_front`](Self::authenticated_in_front) is set.
    pub fn new(pool: PgPool) -> Self {
        Self {
            pool,
            authorizer: None,
            site: Site::default(),
        }
    }

    /// Sets the function that decides what each request may do. It sees the request's head: a cookie, a header, or an
    /// extension that the application's middleware has added.
    pub fn authorize(self, authorize: impl Fn(&Parts) -> Access + Send + Sync + 'static) -> Self {
        self.authorize_async(move |head| std::future::ready(authorize(head)))
    }

    /// Like [`authorize`](Self::authorize), for a decision that needs a database. After ten seconds without a decision,
    /// the dashboard answers with 503.
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

    /// Lets everybody see everything, payloads included, and do everything except [erasure](Access::with_erasure) and
    /// [adoption](Access::with_adoption). Use it if something in front of the dashboard has already authenticated
    /// people: a middleware around the dashboard, a proxy, or a network that only operators can reach. Actions are
    /// recorded without a name.
    pub fn authenticated_in_front(self) -> Self {
        self.authorize(|_| Access::operate().with_payloads())
    }

    /// Sets the only hosts under which browsers may reach the dashboard. A host without a port allows any port. The
    /// dashboard answers requests for other hosts with 403.
    ///
    /// Set the hosts if only a network, a VPN or the machine itself keeps strangers out. Otherwise another site can
    /// make its own name resolve to an address in that network (DNS rebinding), and then read and act through the
    /// browser of somebody inside. Default: any host.
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

    /// Adds an origin under which browsers see the dashboard, such as `http://ops.example.com:8080`, if a proxy changes
    /// the `Host`. This is needed over plain HTTP only: over HTTPS, browsers themselves report that a form comes from
    /// the same origin.
    ///
    /// # Panics
    ///
    /// If the text is not an origin: a scheme, a host and optionally a port, without a path.
    pub fn trusted_origin(mut self, origin: &str) -> Self {
        self.site.origins.push(checked(origin));
        self
    }

    /// Adds the origin of the login page, such as `https://login.example.com`, if it differs from the dashboard's
    /// origin. After a session has expired, the next form is redirected to the login, and browsers follow the redirect
    /// only if the page allowed that origin.
    ///
    /// # Panics
    ///
    /// If the text is not an origin: a scheme, a host and optionally a port, without a path.
    pub fn login_origin(mut self, origin: &str) -> Self {
        self.site.login_origins.push(checked(origin));
        self
    }

    /// Returns the router, for [`Router::nest_service`](axum::Router::nest_service) or to serve on its own.
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
