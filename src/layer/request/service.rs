//! `IdempotentWebhookService` authenticates a request, and hands the delivery to `process.rs`. The task there goes on
//! even if the sender hangs up.

use std::error::Error;
use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use tokio::time::Instant;
use tower_service::Service;
use tracing::{Instrument, Span};

use super::admitted::{Admitted, Origin};
use super::answer::Answer;
use super::failure::Failure;
use super::keep_first::KeepFirst;
use super::process::process;
use super::rehearse::rehearse;
use super::telemetry;
use super::test_kit::RollBack;
use crate::layer::settings::Settings;
use crate::layer::verification::{
    self, Authentic, Canary, Rejection, ResponseFuture, Unhandled, Verification, buffer, span,
};
use crate::provider::delivery::Delivery;
use crate::recovery::traceparent::traceparent;
use crate::recovery::{Probe, RecoveryAttempt, RehearsalAttempt};
use crate::transaction::DedupeTx;

/// The service of [`IdempotentWebhook`](crate::IdempotentWebhook), around a handler.
#[derive(Clone)]
pub struct IdempotentWebhookService<S> {
    settings: Arc<Settings>,
    inner: S,
}

impl<S> IdempotentWebhookService<S> {
    pub(crate) fn new(settings: Arc<Settings>, inner: S) -> Self {
        Self { settings, inner }
    }
}

impl<S: fmt::Debug> fmt::Debug for IdempotentWebhookService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotentWebhookService")
            .field("endpoint", &self.settings.verification.endpoint)
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

/// The body types must convert from `Bytes`: the layer makes the request's body from the buffered bytes, and the
/// response's body from its own short texts. axum's `Body` and `http_body_util::Full<Bytes>` do.
impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for IdempotentWebhookService<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
    ReqBody: Body<Data = Bytes> + From<Bytes> + Send + 'static,
    ReqBody::Error: Into<Box<dyn Error + Send + Sync>>,
    ResBody: From<Bytes> + Send + 'static,
{
    type Response = Response<ResBody>;
    type Error = S::Error;
    type Future = ResponseFuture<ResBody, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<ReqBody>) -> Self::Future {
        let settings = self.settings.clone();
        if let Some(probe) = Probe::of(&request) {
            probe.reaches(&settings.verification.endpoint);
            return ResponseFuture::new(ready(Ok(Response::new(Bytes::new().into()))));
        }
        if settings.allow_unused_transaction && RollBack::is_wanted(&request) {
            // The layer allows handlers that do not use the transaction, and a rollback would not undo their writes.
            return ResponseFuture::new(ready(Ok(RollBack::skipped())));
        }
        // Calls the service that was polled ready, and leaves the clone in its place.
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        let caller = Span::current();
        let span = span(&caller, &settings.verification);
        let rehearsal = request.extensions_mut().remove::<RehearsalAttempt>();
        let response = async move {
            let answer = if let Some(rehearsal) = rehearsal {
                // Boxed, because otherwise each request would reserve space for it.
                Box::pin(rehearse(settings.clone(), rehearsal, inner, request)).await
            } else {
                match admit(&settings, request).await {
                    Ok((admitted, request)) => {
                        let delivery =
                            Some(&admitted.delivery).filter(|_| admitted.origin.is_request());
                        let _wait = delivery
                            .and_then(|delivery| settings.verification.measure_wait(delivery));
                        let keep_first = KeepFirst::of(&admitted, &request);
                        process(admitted, keep_first, inner, request, caller).await
                    }
                    Err(answer) => {
                        telemetry::answer(&settings, &answer);
                        answer
                    }
                }
            };
            answer.into_response(&settings.verification)
        };
        ResponseFuture::new(response.instrument(span))
    }
}

/// Verifies a request. A request from recovery was verified when it was kept.
async fn admit<B, R, E>(
    settings: &Arc<Settings>,
    request: Request<B>,
) -> Result<(Admitted, Request<B>), Answer<R, E>>
where
    B: Body<Data = Bytes> + From<Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let began = Instant::now();
    let (mut head, body) = request.into_parts();
    // The attempt is removed from the extensions because it holds one of recovery's slots, and the handler may keep the
    // head for long.
    let attempt = head.extensions.remove::<RecoveryAttempt>();
    if DedupeTx::is_in(&head.extensions) {
        return Err(Failure::Nested.into());
    }
    let verification = &settings.verification;
    // An attempt at a delivery of another endpoint is ignored here. Its request is verified like a request from
    // outside.
    let kept = attempt.and_then(|attempt| {
        let provider = verification.provider.shared_name();
        let delivery = attempt.delivery_for(&verification.endpoint, provider)?;
        Some((delivery, attempt))
    });
    let (authentic, origin) = match kept {
        Some((delivery, attempt)) => {
            let authentic = read_kept(verification, delivery, &head, body).await?;
            // The headers come from the kept request, so this is the trace of that request.
            Span::current().record("traceparent", traceparent(&head.headers));
            (authentic, Origin::Recovered(attempt))
        }
        None => {
            let seen = |delivery: &_| settings.counts.authentic(delivery);
            let authentic = verification::authenticate(verification, &head, body, seen).await;
            let authentic = match authentic {
                Err(Unhandled::Canary(Canary::Authentic(tenant))) => {
                    // Boxed, because otherwise each request would reserve space for it.
                    let canary = Box::pin(settings.try_claim(tenant)).await;
                    return Err(Unhandled::Canary(canary).into());
                }
                authentic => authentic?,
            };
            let to_keep = settings.kept_request(&head, &authentic.body);
            (authentic, Origin::Received(to_keep))
        }
    };
    Ok(Admitted::new(settings, head, authentic, origin, began))
}

/// Reads the request of a kept delivery, which was verified when it was kept.
pub(super) async fn read_kept<B>(
    verification: &Verification,
    delivery: Delivery,
    head: &Parts,
    body: B,
) -> Result<Authentic, Unhandled>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let body = buffer(&head.headers, body, usize::MAX, verification.body_timeout).await;
    let body = body.map_err(Rejection::from)?;
    Ok(Authentic {
        wanted: verification.wanted(delivery.event_type(), head, &body),
        delivery,
        body,
    })
}
