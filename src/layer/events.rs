//! Handlers by event type.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::{MethodRouter, any};
use http::StatusCode;
use tower_service::Service;

#[cfg(feature = "postgres")]
use super::idempotent_webhook::IdempotentWebhook;
#[cfg(feature = "postgres")]
use super::request::IdempotentWebhookService;
#[cfg(feature = "postgres")]
use super::settings::Settings;
use super::verification::{Verification, VerifiedWebhook, VerifiedWebhookService};
use crate::provider::event_types::{EventTypes, Matched, WantedEvents, add};
use crate::tasks_and_errors::handler_error::HandlerError;

/// Handlers by event type: events without a handler are answered without touching Postgres.
///
/// A provider sends all events to which an endpoint is subscribed. Events without a handler are
/// [ignored](Self::ignore_others): they are verified, answered with the provider's success and the outcome `ignored`,
/// and cost no connection, no transaction and no row. An ignored type that the endpoint never received before is
/// [reported once](crate::documentation::operating#event-types), so that an event that the provider has renamed is not
/// dropped silently. With [`ignore`](Self::ignore), you declare the types that you ignore on purpose.
///
/// ```no_run
/// use axum::http::StatusCode;
/// use axum::routing::post;
/// use axum::{Json, Router};
/// use idempotent_webhook::{DedupeTx, Events, HandlerError, IdempotentWebhook, Secret, presets};
/// use serde::Deserialize;
///
/// # async fn main_(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// let stripe = presets::stripe(Secret::new(std::env::var("STRIPE_WEBHOOK_SECRET")?)?);
/// let events = Events::new()
///     .on("invoice.paid", paid)
///     .on("customer.subscription.*", subscription)
///     .ignore_others();
/// let app: Router = Router::new().route(
///     "/webhooks/stripe",
///     post(events.layer(IdempotentWebhook::new(pool, "billing", stripe))),
/// );
///
/// #[derive(Deserialize)]
/// struct Paid { data: Data }
/// #[derive(Deserialize)]
/// struct Data { object: Invoice }
/// #[derive(Deserialize)]
/// struct Invoice { id: String }
///
/// async fn paid(mut tx: DedupeTx, Json(event): Json<Paid>) -> Result<StatusCode, HandlerError> {
///     sqlx::query("update invoices set status = 'paid' where id = $1")
///         .bind(event.data.object.id)
///         .execute(&mut *tx)
///         .await?;
///     Ok(StatusCode::OK)
/// }
///
/// async fn subscription(tx: DedupeTx) -> StatusCode {
///     // …
///     # drop(tx);
///     StatusCode::OK
/// }
/// # Ok(())
/// # }
/// ```
///
/// With [`VerifiedWebhook`] in place of [`IdempotentWebhook`](crate::IdempotentWebhook), the handlers are called for
/// each authentic request, and claim the delivery themselves.
///
/// Each handler has its own extractors; a state comes from `Router::with_state`. The layer itself contains the table of
/// event types, so recovery, [`Reconcile`](crate::Reconcile) and
/// [`assert_idempotent`](crate::testing::assert_idempotent) also follow it.
///
/// `post` itself answers requests with other methods. If a provider checks an endpoint by GET or HEAD, as Meta, Dropbox
/// or Trello do, use `any(events.layer(webhook))`: the layer then answers the check, and refuses other methods.
///
/// # Matching
///
/// The preset knows where a request contains the type ([`Provider::event_type`](crate::Provider::event_type)). A *name*
/// is what you give to [`on`](Self::on) or [`ignore`](Self::ignore): a type, or a group such as `invoice.*`. An exact
/// type is matched before a group, and a longer group before a shorter one, regardless of the order of the calls. For
/// GitHub, a name can include the action: `pull_request.opened` is matched before `pull_request`, which matches all
/// actions.
///
/// `customer.subscription.*` matches `customer.subscription.trial.end`, but not `customer.subscription`. `issues.*`
/// matches GitHub's `issues` with any action. Any other name matches only its exact spelling.
/// [`layer`](EventHandlers::layer) refuses a name that no event of the provider [can
/// have](crate::Provider::event_names_like).
///
/// **If the type is in a header that is not signed**, as with GitHub, Gitea, Bitbucket or Linear, anyone who has
/// captured a signed request can send its body as an event of another type. So a handler must rely only on the body. In
/// the struct for the body, do not make the fields that the handler needs optional.
///
/// # A type that is added later
///
/// Once you add a type, its new events reach the handler. Earlier events were ignored, and are not stored. To get
/// earlier events as well, call [`Reconcile::run_once`](crate::Reconcile::run_once), which fetches the events within
/// its [`look_back`](crate::Reconcile::look_back), or ask the provider to send the events again.
///
/// # A type that is removed
///
/// A kept delivery (one that is stored for a retry) whose type is ignored after a deploy stays kept, because a process
/// of another version may have accepted it. Its attempts fail, with a reason that names the type. The attempts follow
/// the retry schedule until a process with a handler for the type takes the delivery. After the last attempt, the
/// delivery is dead. Once you have rolled back the deploy, [`Endpoint::retry_all`](crate::Endpoint::retry_all) runs it;
/// [`Endpoint::discard_all`](crate::Endpoint::discard_all) discards it. These failures do not open the
/// [breaker](crate::Keep::breaker).
#[must_use = "handlers get events once they have a layer"]
pub struct Events<S = ()> {
    types: EventTypes,
    handlers: Vec<MethodRouter<S>>,
    ignored: EventTypes,
}

impl<S> Events<S>
where
    S: Clone + Send + Sync + 'static,
{
    /// Creates a table of event types that has no handlers yet.
    #[expect(clippy::new_without_default, reason = "an empty table is of no use")]
    pub fn new() -> Self {
        Self {
            types: EventTypes::new(Vec::<String>::new()),
            handlers: Vec::new(),
            ignored: EventTypes::new(Vec::<String>::new()),
        }
    }

    /// Adds a handler for events of a type, such as `invoice.paid`, or of a group, such as `invoice.*`.
    ///
    /// # Panics
    ///
    /// If the name was already given to `on` or `ignore`, or is not valid. A valid name is not empty, and contains a
    /// `*` only at its end, after a dot or another separator of words.
    #[track_caller]
    pub fn on<H, T>(mut self, event_type: impl Into<String>, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        named("on", &mut self.types, &self.ignored, event_type.into());
        self.handlers.push(any(handler));
        self
    }

    /// Ignores events of these types or groups on purpose.
    ///
    /// ```
    /// # use axum::http::StatusCode;
    /// # use idempotent_webhook::{DedupeTx, Events};
    /// # async fn paid(_: DedupeTx) -> StatusCode { StatusCode::OK }
    /// let events = Events::<()>::new()
    ///     .on("invoice.*", paid)
    ///     .ignore(["invoice.created", "charge.updated", "customer.*"])
    ///     .ignore_others();
    /// ```
    ///
    /// These events are answered in the same way as events that only [`ignore_others`](Self::ignore_others) ignores,
    /// but they are not reported. If `ignore_others` ignores a type that the endpoint never received before, this is
    /// reported as a [problem](crate::documentation::operating#event-types), because the provider may have renamed a
    /// type. `ignore` declares that you know the type.
    ///
    /// As with `on`, an exact type is matched before a group: the example handles all of `invoice.*` except
    /// `invoice.created`.
    ///
    /// # Panics
    ///
    /// In the same cases as [`on`](Self::on).
    #[track_caller]
    pub fn ignore<T: Into<String>>(mut self, event_types: impl IntoIterator<Item = T>) -> Self {
        for name in event_types {
            named("ignore", &mut self.ignored, &self.types, name.into());
        }
        self
    }

    /// Ignores events of all other types.
    ///
    /// The layer answers them with the success that the provider expects. It does not touch Postgres, and does not keep
    /// the events.
    ///
    /// An event whose type cannot be read is not ignored. It has no handler, so it is answered with 422. If it is kept,
    /// it is dead: it waits for an operator. Some events have no type, such as batches of CloudEvents. Use
    /// [`otherwise`](Self::otherwise) to handle them.
    ///
    /// # Panics
    ///
    /// If there is no handler, because all events would be ignored.
    #[track_caller]
    pub fn ignore_others(self) -> EventHandlers<S> {
        assert!(
            !self.handlers.is_empty(),
            "`Events` has no handler, so that all events would be ignored: add one with `on`"
        );
        EventHandlers {
            wanted: WantedEvents::new(self.types, &self.ignored, true),
            handlers: self.handlers,
            other: None,
        }
    }

    /// Adds a handler for the events of all other types. These events are claimed like events of a listed type.
    pub fn otherwise<H, T>(self, handler: H) -> EventHandlers<S>
    where
        H: Handler<T, S>,
        T: 'static,
    {
        EventHandlers {
            wanted: WantedEvents::new(self.types, &self.ignored, false),
            handlers: self.handlers,
            other: Some(any(handler)),
        }
    }
}

impl<S> fmt::Debug for Events<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("on", &self.types)
            .field("ignore", &self.ignored)
            .finish_non_exhaustive()
    }
}

/// Adds a name to `types`. The name must not be in `others`.
#[expect(
    clippy::panic,
    reason = "it is a mistake in the program, like two routes with the same path"
)]
#[track_caller]
fn named(method: &str, types: &mut EventTypes, others: &EventTypes, name: String) {
    if let Err(error) = add(types, others, name.clone()) {
        panic!("`Events::{method}({name:?}, ..)`: {error}");
    }
}

/// A complete table of handlers by event type, made by [`Events`].
#[must_use = "handlers get events once they have a layer"]
pub struct EventHandlers<S = ()> {
    wanted: WantedEvents,
    handlers: Vec<MethodRouter<S>>,
    other: Option<MethodRouter<S>>,
}

impl<S> EventHandlers<S>
where
    S: Clone + Send + Sync + 'static,
{
    /// The handler of a route, with the layer around it: `post(events.layer(webhook))`, or `any(..)` for a
    /// [provider that checks by GET or HEAD](Events).
    ///
    /// # Panics
    ///
    /// - If the provider has no event type.
    /// - If no event of the provider can have one of the names: for example `document.completed`, if the provider's
    ///   names have [the form](crate::Provider::event_names_like) of `DOCUMENT_COMPLETED`.
    /// - If the layer, or a clone of it, already has a table from [`only`](crate::IdempotentWebhook::only) or from
    ///   other [`Events`].
    #[track_caller]
    pub fn layer(self, webhook: impl Into<EventsLayer>) -> impl Handler<((),), S> {
        let Self {
            wanted,
            handlers,
            other,
        } = self;
        Layered {
            served: match webhook.into() {
                #[cfg(feature = "postgres")]
                EventsLayer(Kind::Idempotent(webhook)) => {
                    Served::Idempotent(webhook.with_events(wanted).serve())
                }
                EventsLayer(Kind::Verified(webhook)) => {
                    Served::Verified(webhook.with_events(wanted))
                }
            },
            handlers: handlers.into(),
            other,
        }
    }

    /// The names of the types and groups that have a handler, to compare with the provider's subscription.
    pub fn event_types(&self) -> impl Iterator<Item = &str> {
        self.wanted.handled().iter().map(String::as_str)
    }
}

impl<S> fmt::Debug for EventHandlers<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventHandlers").field(&self.wanted).finish()
    }
}

/// A layer that [`EventHandlers`] take: [`IdempotentWebhook`](crate::IdempotentWebhook) or [`VerifiedWebhook`].
#[derive(Clone, Debug)]
pub struct EventsLayer(Kind);

#[derive(Clone, Debug)]
enum Kind {
    #[cfg(feature = "postgres")]
    Idempotent(Box<IdempotentWebhook>),
    Verified(VerifiedWebhook),
}

#[cfg(feature = "postgres")]
impl From<IdempotentWebhook> for EventsLayer {
    fn from(webhook: IdempotentWebhook) -> Self {
        Self(Kind::Idempotent(Box::new(webhook)))
    }
}

impl From<VerifiedWebhook> for EventsLayer {
    fn from(webhook: VerifiedWebhook) -> Self {
        Self(Kind::Verified(webhook))
    }
}

/// The final settings of a layer.
#[derive(Clone)]
enum Served {
    #[cfg(feature = "postgres")]
    Idempotent(Arc<Settings>),
    Verified(Arc<Verification>),
}

/// The layer around the handlers. It is built once. (A layer that axum puts on a handler is built for each request.)
#[derive(Clone)]
struct Layered<S> {
    served: Served,
    handlers: Arc<[MethodRouter<S>]>,
    other: Option<MethodRouter<S>>,
}

impl<S> Handler<((),), S> for Layered<S>
where
    S: Clone + Send + Sync + 'static,
{
    type Future = Pin<Box<dyn Future<Output = Response> + Send>>;

    fn call(self, request: Request, state: S) -> Self::Future {
        let Self {
            served,
            handlers,
            other,
        } = self;
        let one_of = OneOf {
            handlers,
            other,
            state,
        };
        let response = match served {
            #[cfg(feature = "postgres")]
            Served::Idempotent(settings) => {
                IdempotentWebhookService::new(settings, one_of).call(request)
            }
            Served::Verified(verification) => {
                VerifiedWebhookService::new(verification, one_of).call(request)
            }
        };
        Box::pin(async move {
            let Ok(response) = response.await;
            response
        })
    }
}

/// Calls the handler that the layer has found.
#[derive(Clone)]
struct OneOf<S> {
    handlers: Arc<[MethodRouter<S>]>,
    other: Option<MethodRouter<S>>,
    state: S,
}

impl<S> Service<Request> for OneOf<S>
where
    S: Clone + Send + Sync + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    /// Handlers are always ready.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let handler = match request.extensions().get() {
            Some(Matched::Type(place)) => self.handlers.get(*place).cloned(),
            Some(Matched::Other) => self.other.clone(),
            None => None,
        };
        let state = self.state.clone();
        Box::pin(async move {
            Ok(match handler {
                Some(handler) => handler.call(request, state).await,
                None => {
                    HandlerError::new(
                        "the event type or action cannot be read, so no handler takes the event: is the body JSON?",
                    )
                        .status(StatusCode::UNPROCESSABLE_ENTITY)
                        .dead()
                        .into_response()
                }
            })
        })
    }
}
