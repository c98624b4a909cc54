//! Handlers by the type of the event.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::{MethodRouter, any};
use http::StatusCode;

use crate::HandlerError;
use crate::event_types::{EventTypes, Matched, WantedEvents, add};
use crate::layer::IdempotentWebhook;

/// Handlers by the type of the event: what has none is answered before anything of Postgres.
///
/// A provider sends all events to which an endpoint is subscribed. Those that no handler is for are
/// [ignored](Self::ignore_others): they are verified, answered with the provider's success and the outcome
/// `ignored`, and cost no connection, no transaction and no row.
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
/// Each handler has its own extractors; a state comes from `Router::with_state`. The layer reads the table:
/// recovery and [`assert_idempotent`](crate::testing::assert_idempotent) go by it, too. A layer that
/// [`Reconcile`](crate::Reconcile) is for gets the table first, so that what is ignored does not count as missing:
///
/// ```no_run
/// # use axum::routing::{MethodRouter, post};
/// # use idempotent_webhook::{DedupeTx, Events, IdempotentWebhook};
/// # async fn paid(_: DedupeTx) {}
/// # fn routes(stripe: IdempotentWebhook) -> MethodRouter {
/// let events = Events::new().on("invoice.paid", paid).ignore_others();
/// let stripe = stripe.only(events.event_types());
/// // `Reconcile::new(&stripe, ..)`
/// post(events.layer(stripe))
/// # }
/// ```
///
/// # Matching
///
/// The type is where the preset says ([`Provider::event_type`](crate::Provider::event_type)). An exact name comes
/// before a group such as `invoice.*`, and a longer group before a shorter one, in whichever order they are given.
/// GitHub's action can be written: `pull_request.opened` comes before `pull_request`, which has all actions.
///
/// **Where the type is in a header that is not signed**, as that of GitHub, Gitea, Bitbucket or Linear, whoever has
/// captured a signed body can send it as an event of another type. A handler takes nothing for granted that its
/// body does not say: members that it needs are no `Option`s.
///
/// # A type that is added later
///
/// What was ignored was not kept. A type that is added comes from then on; what was sent before is brought by
/// [`Reconcile::run_once`](crate::Reconcile::run_once), or by the provider on request. A delivery that is kept, and
/// whose type is ignored after a deploy, is dead when its turn comes, with the reason: another process may have a
/// handler for it, so it is not deleted.
#[must_use = "handlers get events once they have a layer"]
pub struct Events<S = ()> {
    types: EventTypes,
    handlers: Vec<MethodRouter<S>>,
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
        }
    }

    /// A handler for events of the type, such as `invoice.paid`, or of a group, such as `invoice.*`.
    ///
    /// # Panics
    ///
    /// If there is one for the name, or it is no name: it is empty, or has `*` elsewhere than at its end and
    /// after a dot.
    #[expect(
        clippy::panic,
        reason = "it is a mistake of the program, as two routes of one path are"
    )]
    #[track_caller]
    pub fn on<H, T>(mut self, event_type: impl Into<String>, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        let name = event_type.into();
        if let Err(error) = add(&mut self.types, name.clone()) {
            panic!("`Events::on({name:?}, ..)`: {error}");
        }
        self.handlers.push(any(handler));
        self
    }

    /// Events of other types are answered with the provider's success before anything of Postgres, and not kept.
    ///
    /// # Panics
    ///
    /// If there is no handler: all events would be ignored.
    #[track_caller]
    pub fn ignore_others(self) -> EventHandlers<S> {
        assert!(
            !self.handlers.is_empty(),
            "`Events` has no handler, so that all events would be ignored: add one with `on`"
        );
        EventHandlers {
            wanted: WantedEvents::new(self.types, true),
            handlers: self.handlers,
            other: None,
        }
    }

    /// Events of other types have this handler. They are claimed as all others are.
    pub fn otherwise<H, T>(self, handler: H) -> EventHandlers<S>
    where
        H: Handler<T, S>,
        T: 'static,
    {
        EventHandlers {
            wanted: WantedEvents::new(self.types, false),
            handlers: self.handlers,
            other: Some(any(handler)),
        }
    }
}

impl<S> fmt::Debug for Events<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Events").field(&self.types).finish()
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
    /// The handler of a route, with the layer around it: `post(events.layer(webhook))`.
    ///
    /// # Panics
    ///
    /// If the provider has no event type, or the layer has another list, by
    /// [`only`](IdempotentWebhook::only) or of other [`Events`].
    #[track_caller]
    pub fn layer(self, webhook: IdempotentWebhook) -> impl Handler<((),), S> {
        let Self {
            wanted,
            handlers,
            other,
        } = self;
        let webhook = webhook.with_events(wanted);
        let handlers = handlers.into();
        OneOf { handlers, other }.layer(webhook)
    }

    /// The names of the types and groups that have a handler, to be compared with what the provider sends.
    pub fn event_types(&self) -> impl Iterator<Item = &str> {
        self.wanted.names().iter().map(String::as_str)
    }
}

impl<S> fmt::Debug for EventHandlers<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventHandlers").field(&self.wanted).finish()
    }
}

/// Calls the handler that the layer has found.
#[derive(Clone)]
struct OneOf<S> {
    handlers: Arc<[MethodRouter<S>]>,
    other: Option<MethodRouter<S>>,
}

impl<S> Handler<((),), S> for OneOf<S>
where
    S: Clone + Send + Sync + 'static,
{
    type Future = Pin<Box<dyn Future<Output = Response> + Send>>;

    fn call(self, request: Request, state: S) -> Self::Future {
        let handler = match request.extensions().get() {
            Some(Matched::Type(place)) => self.handlers.get(*place).cloned(),
            Some(Matched::Other) => self.other,
            None => None,
        };
        Box::pin(async move {
            match handler {
                Some(handler) => handler.call(request, state).await,
                None => {
                    HandlerError::new("its event type cannot be read, so that no handler is for it")
                        .status(StatusCode::UNPROCESSABLE_ENTITY)
                        .dead()
                        .into_response()
                }
            }
        })
    }
}
