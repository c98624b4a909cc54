//! An attempt at a delivery: the claim, the handler, and the end of the transaction. After a 2xx, the transaction is
//! committed; otherwise, it is rolled back.

use http::{Request, Response, StatusCode};
use tokio::time::Instant;
use tower_service::Service;

use super::admitted::{Admitted, Origin};
use super::ending::{Ending, Suspicion};
use super::error_text::error_text;
use super::failure::Failure;
use super::rehearse::rehearse_rollback;
use super::telemetry;
use super::test_kit::RollBack;
use crate::metrics::{Metrics, Stage};
use crate::provider::delivery::Delivery;
use crate::tasks_and_errors::handler_error::FailureReason;
use crate::tasks_and_errors::panic::{catch, catch_panic};
use crate::transaction::{
    ClaimRequest, ClaimedTx, DuplicateOf, Left, NotClaimed, PendingClaim, Slot,
};

/// The take number of a rehearsal. (An attempt that takes a kept delivery gets a take number, which is never 0.) The
/// SQL function `idempotent_webhook.claim` refuses this number, so a handler with another driver cannot claim a
/// rehearsed delivery.
const NO_TAKE: i64 = 0;

impl Admitted {
    pub(super) async fn claim_and_handle<S, B, R>(
        &self,
        inner: S,
        request: Request<B>,
    ) -> Ending<R, S::Error>
    where
        S: Service<Request<B>, Response = Response<R>>,
        R: 'static,
    {
        // This is a kept delivery, because a provider's request with an ignored type is answered earlier.
        if let Some(event_type) = &self.ignored {
            return self.without_handler(event_type).await;
        }
        let slot = match self.open().await {
            Ok(slot) => slot,
            Err(not_claimed) => return not_claimed.into(),
        };
        let handled = self.call_handler(inner, request, &slot).await;
        match slot.close() {
            None => Failure::Outlived.into(),
            // This error decides the ending regardless of the handler's answer, because the handler may have ignored
            // the error.
            Some(Left::NotClaimed(not_claimed)) => Ending::after_the_handler(not_claimed),
            Some(Left::Committed(pending)) => self.committed_elsewhere(handled, &pending).await,
            Some(Left::Claim(pending)) => match handled {
                Ok(response) => match pending.claim().await {
                    Ok(tx) => self.commit(tx, response).await,
                    Err(not_claimed) => Ending::after_the_handler(not_claimed),
                },
                Err(ending) => explain(ending, pending.was_extracted),
            },
            Some(Left::Transaction(tx)) => match handled {
                Ok(response) => self.commit(tx, response).await,
                Err(ending) => {
                    let ending = explain(ending, tx.was_extracted);
                    if self.origin.is_rehearsal() {
                        return rehearse_rollback(tx, ending).await;
                    }
                    tx.roll_back().await;
                    ending
                }
            },
        }
    }

    /// Ends an attempt whose handler reports that it has committed the delivery with another driver. If the claim is
    /// there, the delivery is processed, even if something failed after the commit.
    async fn committed_elsewhere<R, E>(
        &self,
        handled: Result<Response<R>, Ending<R, E>>,
        pending: &PendingClaim,
    ) -> Ending<R, E> {
        if self.origin.is_rehearsal() {
            return Failure::RehearsalCommitted.into();
        }
        match (handled, pending.is_committed().await) {
            (Ok(response), Ok(true)) => Ending::Processed(response),
            (Ok(_), Ok(false)) => Failure::NotCommitted.into(),
            (Ok(_), Err(not_claimed)) => Ending::after_the_handler(not_claimed),
            (Err(ending), Ok(true)) => {
                // The delivery is committed, although the handler failed after its commit. The sender gets the same
                // answer as for a duplicate.
                telemetry::ended(&ending);
                Ending::Duplicate(DuplicateOf::Id)
            }
            (Err(ending), Ok(false) | Err(_)) => ending,
        }
    }

    /// Ends an attempt at a kept delivery for whose type this process has no handler. If the delivery was not processed
    /// before, the attempt fails: the delivery stays kept for a version of the application that has a handler.
    async fn without_handler<R, E>(&self, event_type: &str) -> Ending<R, E> {
        if self.origin.is_rehearsal() {
            return Failure::NoHandler(event_type.to_owned()).into();
        }
        match self.settings.store.look_up(&self.claim_request()).await {
            Ok(known) => match known.duplicate_of {
                Some(of) => Ending::Duplicate(of),
                None => Failure::NoHandler(event_type.to_owned()).into(),
            },
            Err(error) => Failure::Claim(error).into(),
        }
    }

    /// Claims the delivery. For a late claim, this only looks up whether the delivery was already processed.
    async fn open(&self) -> Result<Slot, NotClaimed> {
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
            let known = settings.store.look_up(&request).await?;
            if let Some(of) = known.duplicate_of {
                return Err(NotClaimed::Duplicate(of));
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

    /// The metrics, or `None` for a rehearsal, because rehearsals are not measured.
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
                Origin::Rehearsed(_) => Some(NO_TAKE),
                _ => self.origin.take().map(|take| take.takes),
            },
            rehearsed: match &self.origin {
                Origin::Rehearsed(rehearsal) => Some(rehearsal.read().clone()),
                _ => None,
            },
            version: self.settings.version.clone(),
        }
    }

    fn delivery_for_handler(&self, is_reprocessed: bool) -> Delivery {
        match is_reprocessed {
            // An operator has asked to reprocess the delivery. A request from the provider does not contain this fact.
            true => self.delivery.clone().reprocessed(),
            false => self.delivery.clone(),
        }
    }

    /// Calls the handler, which takes the transaction from the slot. Returns a 2xx response whose transaction is to be
    /// committed, or the ending of an attempt that is to be rolled back.
    async fn call_handler<S, B, R>(
        &self,
        mut inner: S,
        mut request: Request<B>,
        slot: &Slot,
    ) -> Result<Response<R>, Ending<R, S::Error>>
    where
        S: Service<Request<B>, Response = Response<R>>,
    {
        let roll_back = RollBack::is_wanted(&request);
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
        let mut response = handled
            .map_err(|_| Failure::HandlerTimedOut {
                timeout,
                pool_in_use: self.settings.store.is_pool_in_use(),
            })?
            .map_err(|payload| Failure::panicked(&*payload))?
            .map_err(Ending::InnerError)?;
        match response.status().is_success() {
            true if roll_back => {
                RollBack::done(&mut response);
                Err(Ending::RolledBack(response))
            }
            true => Ok(response),
            false => Err(Ending::RolledBack(response)),
        }
    }

    async fn commit<R, E>(&self, tx: ClaimedTx, mut response: Response<R>) -> Ending<R, E> {
        if self.origin.is_rehearsal() {
            return self.rehearse_commit(tx, response).await;
        }
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
        Ending::Processed(response)
    }

    pub(super) fn suspicion(&self, tx: &ClaimedTx) -> Option<Suspicion> {
        if !tx.was_extracted && !self.settings.allow_unused_transaction {
            Some(Suspicion::UNUSED_TRANSACTION)
        } else if tx.has_dropped_savepoint() {
            Some(Suspicion::DROPPED_SAVEPOINT)
        } else {
            None
        }
    }
}

/// Adds a reason to a handler's response that gives none.
fn explain<R: 'static, E>(ending: Ending<R, E>, was_extracted: bool) -> Ending<R, E> {
    let Ending::RolledBack(mut response) = ending else {
        return ending;
    };
    match catch(|| reason_of(&mut response, was_extracted)) {
        Ok(reason) => {
            if let Some(reason) = reason {
                response.extensions_mut().insert(reason);
            }
            Ending::RolledBack(response)
        }
        // The body of the handler's response panicked while its text was read.
        Err(payload) => Failure::panicked(&*payload).into(),
    }
}

fn reason_of<R: 'static>(response: &mut Response<R>, was_extracted: bool) -> Option<FailureReason> {
    let status = response.status();
    // A success that was rolled back for the test kit needs no reason, and the handler may already have given one.
    if status.is_success() || response.extensions().get::<FailureReason>().is_some() {
        return None;
    }
    let is_routing = [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED].contains(&status);
    if is_routing && !was_extracted {
        return Some(FailureReason::new(format_args!(
            "{status} without taking DedupeTx: if no handler serves this path, put the layer on the route and not \
             around the router"
        )));
    }
    let text = error_text(response)?;
    let reason = format_args!("the handler answered {status}: {text}");
    Some(FailureReason::new(reason))
}
