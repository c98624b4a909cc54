//! The path of an authentic delivery. One task keeps the delivery, if the layer keeps deliveries before the handler
//! runs. The task then makes one attempt, and records the result.

use http::{Request, Response};
use tokio::sync::oneshot;
use tower_service::Service;
use tracing::{Instrument, Span};

use super::admitted::{Admitted, Origin};
use super::answer::Answer;
use super::decision::decide;
use super::ending::Ending;
use super::failure::Failure;
use super::guards::Guards;
use super::keep_first::{KeepFirst, KeptFirst};
use super::telemetry;
use crate::layer::verification;
use crate::metrics::outcome::Outcome;
use crate::transaction::in_flight::InFlightGuard;

/// Processes a delivery to its end, even if the sender hangs up meanwhile.
///
/// If another attempt at the same delivery is running, the wait for it is not part of the task, and ends if the sender
/// hangs up. Nothing is lost in that case, because the other attempt decides the result.
pub(super) async fn process<S, B, R>(
    admitted: Admitted,
    keep_first: Option<KeepFirst>,
    inner: S,
    request: Request<B>,
    caller: Span,
) -> Answer<R, S::Error>
where
    S: Service<Request<B>, Response = Response<R>> + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
    B: Send + 'static,
    R: Send + 'static,
{
    let settings = admitted.settings.clone();
    let id = match (&admitted.origin, &keep_first) {
        (Origin::Received(_), None) => match admitted.enter_id().await {
            Ok(guard) => Some(guard),
            Err(not_claimed) => return admitted.conclude(not_claimed.into(), None).await,
        },
        _ => None,
    };
    // Called before the task is spawned: from then on, the task records the result, even if this future is dropped.
    if let Origin::Recovered(attempt) = &admitted.origin {
        attempt.reach();
    }
    let (reply, answer) = oneshot::channel();
    let task = settings.in_flight.background_task();
    let work = async move {
        admitted
            .run(keep_first, id, inner, request, caller, reply)
            .await;
        drop(task);
    };
    // Boxed, because `spawn` would otherwise move several kilobytes a dozen times.
    let work = tokio::spawn(Box::pin(work).in_current_span());
    match answer.await {
        Ok(answer) => answer,
        // The task has ended without an answer.
        Err(_) => {
            let failure = match work.await.map_err(tokio::task::JoinError::try_into_panic) {
                Err(Ok(payload)) => Failure::panicked(&*payload),
                Err(Err(_)) | Ok(()) => Failure::Cancelled,
            };
            let answer = failure.into();
            telemetry::answer(&settings, &answer);
            answer
        }
    }
}

impl Admitted {
    /// Keeps the delivery if `keep_first` is set, makes an attempt, and replies before or after the attempt.
    async fn run<S, B, R>(
        mut self,
        keep_first: Option<KeepFirst>,
        id: Option<InFlightGuard>,
        inner: S,
        request: Request<B>,
        caller: Span,
        reply: oneshot::Sender<Answer<R, S::Error>>,
    ) where
        S: Service<Request<B>, Response = Response<R>>,
        R: 'static,
    {
        if let Some(first) = keep_first {
            let kept = match self.keep_first(&first).await {
                Ok(kept) => kept,
                Err(ending) => {
                    let _ = reply.send(self.conclude(ending, None).await);
                    return;
                }
            };
            if first.is_answered_first && !matches!(kept, KeptFirst::Elsewhere) {
                telemetry::accepted(&self.settings);
                let _ = reply.send(Answer::Acknowledged(Outcome::Accepted));
                if let KeptFirst::Attempt(origin) = kept {
                    self.origin = origin;
                    // The attempt gets a span of its own, because the request's span already contains the outcome of
                    // the request.
                    let span = verification::span(&caller, &self.settings.verification);
                    verification::identified(&span, &self.delivery);
                    self.attempt(id, inner, request).instrument(span).await;
                }
                return;
            }
            if let KeptFirst::Attempt(origin) = kept {
                self.origin = origin;
            }
        }
        // The sender may have hung up.
        let _ = reply.send(self.attempt(id, inner, request).await);
    }

    /// Waits for other attempts in this process, and then makes this attempt. The result is recorded and logged before
    /// the next attempt can begin.
    async fn attempt<S, B, R>(
        self,
        id: Option<InFlightGuard>,
        inner: S,
        request: Request<B>,
    ) -> Answer<R, S::Error>
    where
        S: Service<Request<B>, Response = Response<R>>,
        R: 'static,
    {
        let (ending, guards) = match self.enter(id).await {
            Ok(guards) => (self.claim_and_handle(inner, request).await, Some(guards)),
            Err(not_claimed) => (not_claimed.into(), None),
        };
        self.conclude(ending, guards).await
    }

    /// Records how an attempt ended, makes the decision about its outcome and answer, and logs the ending. A failure is
    /// logged as a failure, even if the provider does not see it. Recovery and the waiting duplicates follow the same
    /// decision.
    async fn conclude<R, E>(&self, ending: Ending<R, E>, guards: Option<Guards>) -> Answer<R, E> {
        let how = ending.how();
        let written = self.record(how, ending.failure()).await;
        let decision = decide(how, written, self.acknowledges(written).await);
        self.log(&ending, decision.outcome);
        if let Origin::Recovered(attempt) = &self.origin {
            attempt.end(decision.outcome);
        }
        if let Some(guards) = guards {
            guards.release(how, decision.outcome);
        }
        Answer::new(decision, ending)
    }
}
