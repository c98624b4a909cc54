//! `VerifiedWebhook`: the layer that verifies and does nothing else.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tower_layer::Layer;

use super::service::VerifiedWebhookService;
use super::settings::{MAX_TIMEOUT, Verification};
use crate::provider::Provider;
#[cfg(feature = "axum")]
use crate::provider::event_types::WantedEvents;

/// A tower [`Layer`] that verifies deliveries, without a database.
///
/// It buffers and verifies the request, answers [handshakes](crate::provider::Handshake) and [ignored](Self::only)
/// events, and calls the handler with the raw body and the [`Delivery`](crate::Delivery). Unlike `IdempotentWebhook`,
/// **it calls the handler for each request**, although a provider sends a delivery more than once. Use it for handlers
/// that [claim the delivery](crate::documentation::drivers) in a transaction of another driver, for handlers that put
/// the delivery into a queue, and for applications without Postgres.
///
/// ```
/// use axum::{Router, http::StatusCode, routing::post};
/// use idempotent_webhook::{Delivery, Secret, VerifiedWebhook, presets};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let github = presets::github(Secret::new("a secret of the webhook")?);
/// let app: Router = Router::new().route(
///     "/webhooks/github",
///     post(push).layer(VerifiedWebhook::new("deployments", github)),
/// );
///
/// async fn push(delivery: Delivery, body: String) -> StatusCode {
///     println!("{} is authentic, and has {} bytes", delivery.id(), body.len());
///     StatusCode::NO_CONTENT
/// }
/// # Ok(())
/// # }
/// ```
///
/// It needs none of the crates of the feature `postgres`: with `default-features = false` and the feature `axum`, sqlx
/// is not in the dependency tree.
///
/// # Answers
///
/// A request that is not authentic, not usable or too large is answered as by `IdempotentWebhook` ([what is
/// answered](crate::documentation::handling#what-is-answered)). The handler's response is sent unchanged, except for
/// what the provider requires: a [status for success](Provider::success_status) or for
/// [failure](Provider::failure_status), and a certain text or an empty body. The response never has the status 410,
/// because some providers then delete the endpoint. The header `x-webhook-outcome` says `verified` after a 2xx, and
/// `failed` otherwise.
///
/// Like any axum handler, the handler is dropped when the sender hangs up. The layer does not catch its panics.
///
/// # Where to put it
///
/// Put it on the route itself, as above. Middleware outside the layer must not change the body: the signature would no
/// longer match.
#[derive(Clone)]
#[must_use = "a layer does nothing until it is put on a route"]
pub struct VerifiedWebhook(Arc<Verification>);

impl VerifiedWebhook {
    /// A layer that verifies the deliveries of `provider`.
    ///
    /// The endpoint is the namespace of delivery ids. Give each route its own name, and keep the name for as long as
    /// the route exists.
    ///
    /// # Panics
    ///
    /// If the endpoint is blank, longer than 255 bytes, or contains control characters. If the provider's signature
    /// scheme cannot use one of its secrets; [`Provider::check_secrets`] checks that without a panic. If the provider
    /// signs the URL that it calls, and [`Provider::public_url`] is not set.
    #[track_caller]
    pub fn new(endpoint: impl Into<Arc<str>>, provider: Provider) -> Self {
        Self(Arc::new(Verification::new(endpoint.into(), provider)))
    }

    /// Ignores events of all other types.
    ///
    /// The layer answers them with the success that the provider expects, and does not call the handler. With `Events`,
    /// you can ignore types and give each other type its own handler; see its documentation for how names are matched.
    ///
    /// # Panics
    ///
    /// If the provider has no event type, the list is empty, a name is not valid or is listed twice, or the layer
    /// already has a list.
    #[track_caller]
    pub fn only<T: Into<String>>(self, event_types: impl IntoIterator<Item = T>) -> Self {
        self.with(|verification| verification.only(event_types))
    }

    #[cfg(feature = "axum")]
    #[track_caller]
    pub(crate) fn with_events(self, wanted: WantedEvents) -> Arc<Verification> {
        self.with(|verification| verification.set_events(wanted)).0
    }

    /// How long the whole body may take to arrive. A slower body is answered with 408, or with the provider's
    /// [`failure_status`](Provider::failure_status).
    ///
    /// Default: 10 seconds.
    pub fn body_timeout(self, timeout: Duration) -> Self {
        self.with(|verification| verification.body_timeout = timeout)
    }

    /// How long the lookup of a tenant's secrets, and the action of a handshake, may take. If they take longer, the
    /// sender gets a 503.
    ///
    /// Default: 3 seconds, at most a day.
    pub fn lookup_timeout(self, timeout: Duration) -> Self {
        self.with(|verification| verification.lookup_timeout = timeout.min(MAX_TIMEOUT))
    }

    /// The value of `Retry-After` in a 503, in whole seconds, at least 1.
    ///
    /// Default: 5 seconds.
    pub fn retry_after(self, time: Duration) -> Self {
        self.with(|verification| verification.retry_after = time)
    }

    #[track_caller]
    fn with(mut self, set: impl FnOnce(&mut Verification)) -> Self {
        set(Arc::make_mut(&mut self.0));
        self
    }
}

impl fmt::Debug for VerifiedWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedWebhook")
            .field("endpoint", &self.0.endpoint)
            .field("provider", &self.0.provider)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for VerifiedWebhook {
    type Service = VerifiedWebhookService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        VerifiedWebhookService::new(self.0.clone(), inner)
    }
}
