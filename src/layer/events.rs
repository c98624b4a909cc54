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
/// dropped silently. With [`ignore`](Self::ignore), you name the types that you know.
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
/// With [`VerifiedWebhook`] in place of the layer, the handlers get each authentic request, and claim it themselves.
///
/// Each handler has its own extractors; a state comes from `Router::with_state`. The layer reads the table, so
/// recovery, [`Reconcile`](crate::Reconcile) and [`assert_idempotent`](crate::testing::assert_idempotent) use it, too.
///
/// `post` answers other methods itself. If a provider checks an endpoint by GET or HEAD, as Meta, Dropbox or Trello do,
/// use `any(events.layer(webhook))`: the layer answers the check, and refuses other methods.
///
/// # Matching
///
/// The preset knows where the type is ([`Provider::event_type`](crate::Provider::event_type)). An exact name is matched
/// before a group such as `invoice.*`, and a longer group before a shorter one, regardless of the order in which they
/// are given. For GitHub, a name can include the action: `pull_request.opened` is matched before `pull_request`, which
/// matches all actions.
///
/// `customer.subscription.*` matches `customer.subscription.trial.end`, but not `customer.subscription`. `issues.*`
/// matches GitHub's `issues` with any action. Any other name matches only its exact spelling.
/// [`layer`](EventHandlers::layer) refuses a name that no event of the provider [can
/// have](crate::Provider::event_names_like).
///
/// **If the type is in a header that is not signed**, as with GitHub, Gitea, Bitbucket or Linear, anyone who has
/// captured a signed body can send it as an event of another type. A handler must therefore rely only on the body: in
/// its struct, do not make the fields that it needs optional.
///
/// # A type that is added later
///
/// Ignored events were not kept. Once you add a type, its new events reach the handler.
/// [`Reconcile::run_once`](crate::Reconcile::run_once) fetches earlier ones, as far back as it looks, or the provider
/// sends them again on request.
///
/// # A type that is removed
///
/// A kept delivery (one that is stored for a retry) whose type is ignored after a deploy stays kept, because a process
/// of another version may have accepted it. Its attempts fail, with a reason that names the type, and are repeated on
/// the retry schedule until a process with a handler takes the delivery. After the last attempt, the delivery is dead.
/// [`Endpoint::retry_all`](crate::Endpoint::retry_all) runs it once you have rolled back the deploy;
/// [`Endpoint::discard_all`](crate::Endpoint::discard_all) discards it. These failures do not open the breaker.
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
    /// An empty table.
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
    /// If the name already has a handler, or is not a valid name: it is empty, or has a `*` anywhere but at its end,
    /// after a dot or another separator of words.
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
    /// They are answered in the same way as by [`ignore_others`](Self::ignore_others). The difference is in the
    /// reports: an ignored type that no name matches, and that the endpoint never received before, is a
    /// [problem](crate::documentation::operating#event-types), because it may be a renamed one. A name declares that
    /// the type is known. Here, too, a name is matched before a group: the example handles all of `invoice.*` except
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

    /// Answers events of other types with the provider's success, without touching Postgres or keeping them.
    ///
    /// An event whose type cannot be read is not ignored, but has no handler: it is answered with 422, and is dead if
    /// it is kept. Some events of a provider may have no type, such as batches of CloudEvents.
    /// [`otherwise`](Self::otherwise) handles them.
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

    /// Adds a handler for events of other types. They are claimed like events with a handler of their own.
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

/// A complete table of [`Events`].
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
    /// If the provider has no event type. If no event of the provider can have one of the names, such as
    /// `document.completed` where the preset's [names are like](crate::Provider::event_names_like)
    /// `DOCUMENT_COMPLETED`. Or if the layer, or a clone of it, already has another table: from
    /// [`only`](crate::IdempotentWebhook::only), or from other [`Events`].
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

/// The layer around the handlers. It is built once, while axum builds its own layers on handlers for each request.
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
