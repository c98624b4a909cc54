//! The service, and the lifecycle of a request in it.

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
use crate::event_types::Wanted;
use crate::recovery::{RecoveryAttempt, RehearsalAttempt};
use crate::settings::Settings;
use crate::traceparent::traceparent;
use crate::transaction::DedupeTx;
use crate::verification::{
    self, Authentic, Rejection, ResponseFuture, Unhandled, Verification, buffer, identified, span,
};

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

/// The body types must be made from `Bytes`: that of a request from the buffered bytes, that of a
/// response from the layer's own short texts. axum's `Body` and `http_body_util::Full<Bytes>` are.
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
        if settings.allow_unused_transaction && RollBack::is_wanted(&request) {
            // What such a handler writes would not be rolled back.
            return ResponseFuture::new(ready(Ok(RollBack::skipped())));
        }
        // The service that was polled ready is the one to call.
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        let caller = Span::current();
        let span = span(&caller, &settings.verification);
        let rehearsal = request.extensions_mut().remove::<RehearsalAttempt>();
        let response = async move {
            let answer = if let Some(rehearsal) = rehearsal {
                // Boxed, or each request would have room for it.
                Box::pin(rehearse(&settings, rehearsal, inner, request)).await
            } else {
                match admit(&settings, request).await {
                    Ok((admitted, request)) => {
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

/// Verifies a request.
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
    // Not left to the handler, which may keep the head: it holds a place of recovery.
    let attempt = head.extensions.remove::<RecoveryAttempt>();
    if DedupeTx::is_in(&head.extensions) {
        return Err(Failure::Nested.into());
    }
    let (authentic, attempt) = authenticate(&settings.verification, &head, body, attempt).await?;
    let Authentic {
        delivery,
        body,
        wanted,
    } = authentic;
    identified(&Span::current(), &delivery);
    let mut ignored = None;
    match wanted {
        Some(Wanted::Yes(matched)) => {
            if attempt.is_none()
                && let Some(name) = settings.verification.handled_name(matched)
            {
                settings.counts.handled_type(name);
            }
            head.extensions.insert(matched);
        }
        Some(Wanted::Ignored(_)) => ignored = delivery.event_type().map(str::to_owned),
        None => {}
    }
    let origin = match attempt {
        Some(attempt) => {
            // Of the first attempt.
            Span::current().record("traceparent", traceparent(&head.headers));
            Origin::Recovered(attempt)
        }
        None => {
            telemetry::received();
            Origin::Received(settings.kept_request(&head, &body))
        }
    };
    let admitted = Admitted {
        settings: settings.clone(),
        fingerprint: settings.fingerprint(&delivery, &body),
        object: settings.object(&head, &body),
        delivery,
        origin,
        ignored,
        began,
        deadline: began + settings.in_flight_timeout,
    };
    Ok((admitted, Request::from_parts(head, B::from(body))))
}

/// Verifies a request. One of recovery was verified when it was kept.
async fn authenticate<B>(
    verification: &Verification,
    head: &Parts,
    body: B,
    attempt: Option<RecoveryAttempt>,
) -> Result<(Authentic, Option<RecoveryAttempt>), Unhandled>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let provider = &verification.provider;
    if let Some(attempt) = attempt
        && let Some(delivery) = attempt.delivery_for(&verification.endpoint, provider.shared_name())
    {
        let timeout = verification.body_timeout;
        let body = buffer(&head.headers, body, usize::MAX, timeout).await;
        let body = body.map_err(Rejection::from)?;
        let authentic = Authentic {
            wanted: verification.wanted(delivery.event_type(), head, &body),
            delivery,
            body,
        };
        return Ok((authentic, Some(attempt)));
    }
    let authentic = verification::authenticate(verification, head, body).await?;
    Ok((authentic, None))
}
