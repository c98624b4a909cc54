//! An attempt at a delivery, from the claim to the commit.

use http::{Request, Response, StatusCode};
use tokio::time::Instant;
use tower_service::Service;

use super::admitted::{Admitted, Origin};
use super::answer::{Answer, Suspicion};
use super::error_text::error_text;
use super::failure::Failure;
use super::telemetry;
use super::test_kit::RollBack;
use crate::delivery::Delivery;
use crate::handler_error::FailureReason;
use crate::metrics::{Metrics, Stage};
use crate::panic::{catch, catch_panic};
use crate::transaction::{
    ClaimRequest, Claimed, ClaimedTx, DuplicateOf, Left, Lost, NotClaimed, NotThere, PendingClaim,
    Slot,
};

/// The number of no take: `idempotent_webhook.claim` refuses it, so that a handler with another driver does not claim what
/// is only rehearsed.
const NO_TAKE: i64 = 0;

impl Admitted {
    pub(super) async fn claim_and_handle<S, B, R>(
        &self,
        inner: S,
        request: Request<B>,
    ) -> Answer<R, S::Error>
    where
        S: Service<Request<B>, Response = Response<R>>,
        R: 'static,
    {
        if let Some(event_type) = &self.ignored {
            return self.without_handler(event_type).await;
        }
        let slot = match self.open().await {
            Ok(slot) => slot,
            Err(answer) => return answer,
        };
        let roll_back = RollBack::is_wanted(&request);
        let to_commit = self.call_handler(inner, request, &slot).await;
        let left = match slot.close() {
            Ok(left) => left,
            // Whatever the handler has made of it.
            Err(Lost::NotClaimed(not_claimed)) => return Answer::after_the_handler(not_claimed),
            Err(Lost::Outlived) => return Failure::Outlived.into(),
        };
        match to_commit {
            _ if roll_back && left.is_committed() => Failure::CannotRollBack.into(),
            _ if self.origin.is_rehearsal() && left.is_committed() => {
                Failure::RehearsalCommitted.into()
            }
            Ok(mut response) if roll_back => {
                left.roll_back().await;
                RollBack::done(&mut response);
                Answer::RolledBack(response)
            }
            Ok(response) => match left.claimed().await {
                Ok(Claimed::Here(tx)) if self.origin.is_rehearsal() => {
                    self.rehearse_commit(tx, response).await
                }
                Ok(Claimed::Here(tx)) => self.commit(tx, response).await,
                Ok(Claimed::Elsewhere) => Answer::Processed(response),
                Err(NotThere::NotClaimed(not_claimed)) => Answer::after_the_handler(not_claimed),
                Err(NotThere::NotCommitted) => Failure::NotCommitted.into(),
            },
            Err(answer) if left.is_committed() => match left.claimed().await {
                // Nothing is left to do, whatever has failed after that.
                Ok(_) => {
                    telemetry::event(&self.settings, &answer);
                    Answer::Duplicate(DuplicateOf::Id)
                }
                Err(_) => answer,
            },
            Err(Answer::RolledBack(mut response)) => {
                explain_missing_handler(&mut response, &left);
                let explained = catch(|| explain_error(&mut response));
                left.roll_back().await;
                match explained {
                    Ok(()) => Answer::RolledBack(response),
                    // Its body has.
                    Err(payload) => Failure::panicked(&*payload).into(),
                }
            }
            Err(answer) => {
                left.roll_back().await;
                answer
            }
        }
    }

    /// A kept delivery is never ended without a handler: another version of the application may have accepted it.
    async fn without_handler<R, E>(&self, event_type: &str) -> Answer<R, E> {
        if self.origin.is_rehearsal() {
            return Failure::NoHandler(event_type.to_owned()).into();
        }
        match self.settings.store.look_up(&self.claim_request()).await {
            Ok(known) => match known.duplicate_of {
                Some(of) => Answer::Duplicate(of),
                None => Failure::NoHandler(event_type.to_owned()).into(),
            },
            Err(error) => Failure::Claim(error).into(),
        }
    }

    /// Claims the delivery, unless the handler does that.
    async fn open<R, E>(&self) -> Result<Slot, Answer<R, E>> {
        let settings = &self.settings;
        if !settings.claims_late {
            let tx = self.claim().await?;
            let delivery = self.delivery_for_handler(tx.is_reprocessed);
            return Ok(Slot::new(delivery, tx));
        }
        let request = self.claim_request();
        let is_reprocessed = if self.origin.is_rehearsal() {
            self.delivery.is_reprocessed()
        } else {
            let known = settings.store.look_up(&request).await;
            let known = known.map_err(NotClaimed::Failed)?;
            if let Some(of) = known.duplicate_of {
                return Err(Answer::Duplicate(of));
            }
            known.is_reprocessed
        };
        let delivery = self.delivery_for_handler(is_reprocessed);
        let pending = PendingClaim::new(
            settings.store.clone(),
            request,
            is_reprocessed,
            settings.in_flight_timeout,
            self.metrics().cloned(),
            settings.handler_timeout,
        );
        Ok(Slot::late(delivery, pending))
    }

    async fn claim(&self) -> Result<ClaimedTx, NotClaimed> {
        let (store, started) = (&self.settings.store, Instant::now());
        let claimed = store.claim(&self.claim_request(), self.deadline).await;
        if let Some(metrics) = self.metrics() {
            metrics.duration(Stage::Claim, started.elapsed());
        }
        claimed
    }

    /// `None` for a rehearsal, which is not measured.
    fn metrics(&self) -> Option<&Metrics> {
        (!self.origin.is_rehearsal()).then_some(&self.settings.verification.metrics)
    }

    pub(super) fn claim_request(&self) -> ClaimRequest {
        ClaimRequest {
            delivery: self.delivery.clone(),
            fingerprint: self.fingerprint,
            object: self.object.clone(),
            object_wait: self.object_wait(),
            longest_idle: self.settings.longest_attempt(),
            take: match self.origin {
                Origin::Rehearsed => Some(NO_TAKE),
                _ => self.origin.take().map(|take| take.number),
            },
            is_rehearsal: self.origin.is_rehearsal(),
            version: self.settings.version.clone(),
        }
    }

    fn delivery_for_handler(&self, is_reprocessed: bool) -> Delivery {
        match is_reprocessed {
            // The provider has sent it, too.
            true => self.delivery.clone().reprocessed(),
            false => self.delivery.clone(),
        }
    }

    /// Runs the handler with the transaction. Returns its response if that is to be committed.
    async fn call_handler<S, B, R>(
        &self,
        mut inner: S,
        mut request: Request<B>,
        slot: &Slot,
    ) -> Result<Response<R>, Answer<R, S::Error>>
    where
        S: Service<Request<B>, Response = Response<R>>,
    {
        request.extensions_mut().insert(slot.delivery().clone());
        request.extensions_mut().insert(slot.clone());
        // axum's default limit of 2 MB must not refuse a body that the layer has accepted.
        #[cfg(feature = "axum")]
        axum_core::extract::DefaultBodyLimit::disable().apply(&mut request);

        let timeout = self.settings.handler_timeout;
        let started = Instant::now();
        let handler = catch_panic(async move { inner.call(request).await });
        let handled = tokio::time::timeout(timeout, handler).await;
        if self.metrics().is_some() {
            self.settings.counts.handler(started.elapsed(), timeout);
        }
        let response = handled
            .map_err(|_| Failure::HandlerTimedOut {
                timeout,
                pool_in_use: self.settings.store.is_pool_in_use(),
            })?
            .map_err(|payload| Failure::panicked(&*payload))?
            .map_err(Answer::InnerError)?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(Answer::RolledBack(response))
        }
    }

    async fn commit<R, E>(&self, tx: ClaimedTx, mut response: Response<R>) -> Answer<R, E> {
        let settings = &self.settings;
        let suspicion = self.suspicion(&tx);
        let started = Instant::now();
        let committed = tx.commit().await;
        settings
            .verification
            .metrics
            .duration(Stage::Commit, started.elapsed());
        let after_commit = match committed {
            Ok(after_commit) => after_commit,
            Err(error) => return Failure::Commit(error).into(),
        };
        after_commit.spawn(settings.handler_timeout, || {
            settings.in_flight.background_task()
        });
        if let Some(suspicion) = suspicion {
            telemetry::suspicion(suspicion);
            response.extensions_mut().insert(suspicion);
        }
        Answer::Processed(response)
    }

    pub(super) fn suspicion(&self, tx: &ClaimedTx) -> Option<Suspicion> {
        if !tx.was_taken && !self.settings.allow_unused_transaction {
            Some(Suspicion::UnusedTransaction)
        } else if tx.has_dropped_savepoint() {
            Some(Suspicion::DroppedSavepoint)
        } else {
            None
        }
    }
}

/// Adds a reason to a response that is probably not from a handler.
fn explain_missing_handler<R>(response: &mut Response<R>, left: &Left) {
    let status = response.status();
    let is_routing = [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED].contains(&status);
    if is_routing && !left.was_taken() && response.extensions().get::<FailureReason>().is_none() {
        response
            .extensions_mut()
            .insert(FailureReason::new(format_args!(
                "{status} without taking DedupeTx: if no handler serves this path, put the layer \
                 on the route and not around the router"
            )));
    }
}

/// Adds the text of the response as the reason, if the handler gives none.
fn explain_error<R: 'static>(response: &mut Response<R>) {
    if response.extensions().get::<FailureReason>().is_none()
        && let Some(text) = error_text(response)
    {
        let status = response.status();
        let reason = format_args!("the handler answered {status}: {text}");
        response.extensions_mut().insert(FailureReason::new(reason));
    }
}
