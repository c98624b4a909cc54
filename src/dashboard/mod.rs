//! A dashboard for operators, as a router that one nests: see what arrives, what fails, and mend it.
//!
//! ```no_run
//! use axum::Router;
//! use idempotent_webhook::dashboard::{Access, Dashboard};
//!
//! # fn session_of(_: &axum::http::request::Parts) -> Option<String> { None }
//! # fn main_(app: Router, pool: sqlx::PgPool) -> Router {
//! let dashboard = Dashboard::new(pool).authorize(|request| match session_of(request) {
//!     Some(user) => Access::operate().with_payloads().named(user),
//!     None => Access::none(),
//! });
//! app.nest("/admin/webhooks", dashboard.into_router())
//! # }
//! ```
//!
//! # What it shows
//!
//! - **Overview**: each endpoint with its state, what came in over the last 24 hours and with which
//!   outcome, how many deliveries are due, dead or recorded, since when the oldest is due, and the last
//!   success. The state is `fine`; `failing` if deliveries have failed and wait; `paused` by an operator;
//!   `probing` while failures in a row hold it back; `unhandled` if no process runs
//!   [`Recovery`](crate::Recovery) for it. Below, what is failing, grouped by reason. Reasons that
//!   differ only in words with digits, such as ids, are one.
//! - **Deliveries**: those that are not processed yet, by endpoint, state, event type and reason. The
//!   address has the filters.
//! - **A delivery**: its state, its failed attempts, its request.
//! - **Look up**: the state of the deliveries with these ids: processed, due, dead, in flight, or not
//!   known.
//! - **Actions**: what operators did on these pages, and who.
//!
//! Operators retry and discard deliveries, one by one, selected, or all of a filter; pause and resume
//! the recovery of an endpoint; and have processed deliveries processed again
//! ([`Endpoint::forget`](crate::Endpoint::forget)). An action on many deliveries first says what it
//! will do, to how many. It runs in the background, counts each batch in the transaction of the batch,
//! and can be cancelled.
//!
//! # Who may see it
//!
//! Nobody, until [`authorize`](Dashboard::authorize) decides for each request, or
//! [`authenticated_in_front`](Dashboard::authenticated_in_front) says that something else does. Payloads
//! and kept headers are a right of their own ([`Access::with_payloads`]). Actions are accepted only from
//! pages of the same site (`Sec-Fetch-Site`, or `Origin` where a browser is too old for that).
//!
//! All text is escaped, and a Content Security Policy forbids anything else than the dashboard's own
//! script and style. The pages work without scripts, too.
//!
//! # What it costs
//!
//! The work of a page is bounded, however many rows there are. Numbers above 10,000 are shown as
//! `10,000+`. Before an action, deliveries are counted up to 100,000. Lists are read from an index, 50 at
//! a time. No statement of a page takes longer than 5 seconds, and two pages at most read at the same
//! time. The numbers of the last day come from the table `activity`
//! ([`count_activity`](crate::IdempotentWebhook::count_activity)).
//! `benches/README.md` has figures with millions of rows.
//!
//! # Where to put it
//!
//! Under any prefix with [`Router::nest`](axum::Router::nest), or as the whole router of a server of its
//! own. `nest` does not answer the prefix with a slash at its end; `nest_service` does. All links are
//! relative, so a proxy may strip a prefix or add one. Behind a proxy that changes the `Host`, browsers
//! that do not send `Sec-Fetch-Site` (before 2023) cannot act.
//!
//! It needs the tables of [`migrate`](crate::migrate), and only the database, so it can run in another
//! process than the webhooks. The role needs the rights that `migrate` lists. Only the overview and the
//! pages of a running action load themselves again, while somebody looks at them.

mod access;
mod assets;
mod database;
mod error;
mod guard;
mod html;
mod operate;
mod pages;
mod params;
mod rows;
mod selection;
mod server;

use std::sync::Arc;

use axum::Router;
use http::request::Parts;
use sqlx::PgPool;

pub use access::Access;
use access::Authorizer;
use database::Database;

/// A dashboard, as a router that one nests. See the [module](self).
#[derive(Clone, Debug)]
#[must_use = "a dashboard is served by `into_router`"]
pub struct Dashboard {
    pool: PgPool,
    authorizer: Option<Authorizer>,
}

/// What all requests share.
#[derive(Debug)]
struct Shared {
    database: Database,
    authorizer: Option<Authorizer>,
}

impl Dashboard {
    /// A dashboard on the database of the webhooks. Nobody may see it until
    /// [`authorize`](Self::authorize) or [`authenticated_in_front`](Self::authenticated_in_front) is
    /// set.
    pub fn new(pool: PgPool) -> Self {
        Self {
            pool,
            authorizer: None,
        }
    }

    /// Decides for each request what it may do, from its head: a cookie, a header, or what a
    /// middleware of the application has put into its extensions.
    pub fn authorize(self, authorize: impl Fn(&Parts) -> Access + Send + Sync + 'static) -> Self {
        self.authorize_async(move |head| std::future::ready(authorize(head)))
    }

    /// The same, where the decision takes a look into a database.
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

    /// Lets everybody see and do everything, payloads included, because something in front of the
    /// dashboard has authenticated them: a middleware around it, a proxy, or a network that only
    /// operators reach. What operators do is recorded without a name.
    pub fn authenticated_in_front(self) -> Self {
        self.authorize(|_| Access::operate().with_payloads())
    }

    /// The router, for [`Router::nest`](axum::Router::nest), or to be served as it is.
    pub fn into_router<S: Clone + Send + Sync + 'static>(self) -> Router<S> {
        server::router(Arc::new(Shared {
            database: Database::new(self.pool),
            authorizer: self.authorizer,
        }))
    }
}
