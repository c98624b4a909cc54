//! An attempt at a delivery, from the claim to the commit.

use std::time::Duration;

use http::{Request, Response, StatusCode};
use tokio::time::Instant;
use tower_service::Service;
use tracing::Instrument;

use super::admitted::{Admitted, Origin};
use super::answer::{Answer, Ignored, Suspicion};
use super::error_text::error_text;
use super::failure::Failure;
use super::telemetry;
use super::test_kit::RollBack;
use crate::delivery::Delivery;
use crate::handler_error::FailureReason;
use crate::in_flight::{Entered, FlightKey, InFlightGuard};
use crate::metrics::Stage;
use crate::panic::{catch, catch_panic};
use crate::settings::Settings;
use crate::transaction::{
    ClaimRequest, Claimed, ClaimedTx, DuplicateOf, Left, Lost, NotClaimed, NotThere, PendingClaim,
    Slot,
};

/// Within this time of its receipt, a kept delivery that no handler of this process is for may have one in another
/// process: of the version before, or of the next one.
const LONGEST_DEPLOY: Duration = Duration::from_secs(60 * 60);

/// How long the request of a delivery stays that has ended without a handler, unless others stay for another time.
const ARCHIVED_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How long an attempt in the background waits for other deliveries of its object.
const BACKGROUND_WAIT: Duration = Duration::from_secs(1);

/// A delivery on which no other attempt of this process works until its guards are dropped.
struct Attempt {
    admitted: Admitted,
    guards: Guards,
}

/// Waits for other attempts of this process, and runs this one in a task of its own.
pub(super) async fn handle<S, B, R>(
    admitted: Admitted,
    inner: S,
    request: Request<B>,
) -> Answer<R, S::Error>
where
    S: Service<Request<B>, Response = Response<R>> + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
    B: Send + 'static,
    R: Send + 'static,
{
    let entered = match enter(&admitted).await {
        Err(Answer::ObjectInFlight) => {
            let store = &admitted.settings.store;
            let not_claimed = store.why_not_locked(&admitted.claim_request()).await;
            Err(not_claimed.into())
        }
        entered => entered,
    };
    if let Origin::Recovered(attempt) = &admitted.origin {
        attempt.reach();
    }
    match entered {
        Ok(guards) => Attempt { admitted, guards }.spawn(inner, request).await,
        Err(answer) => {
            let answer = admitted.settle(answer).await;
            admitted.log(&answer);
            admitted.end(&answer);
            answer
        }
    }
}

/// Runs in a task to its end, whoever stops to wait for it.
pub(super) async fn run_in_task<R, E>(
    settings: &Settings,
    run: impl Future<Output = Answer<R, E>> + Send + 'static,
) -> Answer<R, E>
where
    R: Send + 'static,
    E: Send + 'static,
{
    // Boxed, or spawning would move its kilobytes a dozen times.
    match tokio::spawn(Box::pin(run).in_current_span()).await {
        Ok(answer) => answer,
        Err(error) => {
            let answer = Answer::Failed(match error.try_into_panic() {
                Ok(payload) => Failure::panicked(&*payload),
                Err(_) => Failure::Cancelled,
            });
            telemetry::answer(settings, &answer);
            answer
        }
    }
}

struct Guards {
    id: InFlightGuard,
    /// With the replay guard.
    fingerprint: Option<InFlightGuard>,
    /// If deliveries of one object run one at a time.
    _object: Option<InFlightGuard>,
}

/// Waits, holding no connection, for other attempts of this process.
async fn enter<B, E>(admitted: &Admitted) -> Result<Guards, Answer<B, E>> {
    let Admitted {
        settings,
        delivery,
        deadline,
        ..
    } = admitted;
    let key = delivery.key();
    let tenant = key.tenant.clone();
    let enter = |key| {
        settings
            .in_flight
            .enter(key, *deadline, &settings.verification.metrics)
    };
    let of_one = async |key, processed| match enter(key).await {
        Entered::First(guard) => Ok(guard),
        Entered::Processed => Err(Answer::Duplicate(processed)),
        Entered::TimedOut => Err(Answer::InFlight),
    };
    let id = of_one(FlightKey::Delivery(key), DuplicateOf::Id).await?;
    let fingerprint = match admitted.fingerprint {
        Some(digest) => {
            let tenant = tenant.clone();
            let processed = DuplicateOf::Body { first: None };
            Some(of_one(FlightKey::Fingerprint { tenant, digest }, processed).await?)
        }
        None => None,
    };
    let object = match admitted.object.clone() {
        Some(object) => match admitted
            .wait_for(FlightKey::Object { tenant, object })
            .await
        {
            Entered::First(guard) => Some(guard),
            // Nobody says that an object is processed.
            Entered::Processed | Entered::TimedOut => return Err(Answer::ObjectInFlight),
        },
        None => None,
    };
    Ok(Guards {
        id,
        fingerprint,
        _object: object,
    })
}

impl Guards {
    /// Lets the waiting duplicates go on: with the answer if the delivery is processed. Otherwise
    /// one of them becomes the next attempt.
    fn release<B, E>(self, answer: &Answer<B, E>) {
        let (id_is_processed, fingerprint_is_processed) = match answer {
            Answer::Processed(_) => (true, true),
            // This body may not have been processed.
            Answer::Duplicate(DuplicateOf::Id) => (true, false),
            Answer::Duplicate(DuplicateOf::Body { .. }) => (false, true),
            Answer::Unhandled(_)
            | Answer::InFlight
            | Answer::ObjectInFlight
            | Answer::Ignored(..)
            | Answer::RolledBack(_)
            | Answer::Failed(_)
            | Answer::InnerError(_)
            | Answer::Kept(_)
            | Answer::Acknowledged
            | Answer::Accepted => (false, false),
        };
        if id_is_processed {
            self.id.processed();
        }
        if let Some(fingerprint) = self.fingerprint
            && fingerprint_is_processed
        {
            fingerprint.processed();
        }
    }
}

impl Attempt {
    /// Runs the attempt in a task of its own: to its end, even if the sender hangs up.
    async fn spawn<S, B, R>(self, inner: S, request: Request<B>) -> Answer<R, S::Error>
    where
        S: Service<Request<B>, Response = Response<R>> + Send + 'static,
        S::Future: Send,
        S::Error: Send + 'static,
        B: Send + 'static,
        R: Send + 'static,
    {
        let settings = self.admitted.settings.clone();
        run_in_task(&settings, self.run(inner, request)).await
    }

    /// Records and logs the result before the next attempt can begin.
    async fn run<S, B, R>(self, inner: S, request: Request<B>) -> Answer<R, S::Error>
    where
        S: Service<Request<B>, Response = Response<R>>,
        R: 'static,
    {
        let Self { admitted, guards } = self;
        let answer = admitted.claim_and_handle(inner, request).await;
        let answer = admitted.settle(answer).await;
        admitted.log(&answer);
        // The failure is logged as one, although the provider does not hear of it.
        let answer = match answer {
            Answer::Kept(_) if admitted.acknowledges() => Answer::Acknowledged,
            answer => answer,
        };
        admitted.end(&answer);
        guards.release(&answer);
        answer
    }
}

impl Admitted {
    async fn claim_and_handle<S, B, R>(&self, inner: S, request: Request<B>) -> Answer<R, S::Error>
    where
        S: Service<Request<B>, Response = Response<R>>,
        R: 'static,
    {
        if let Some(event_type) = &self.ignored {
            return self.end_ignored(event_type).await;
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
            Err(Lost::NotClaimed(not_claimed)) => return not_claimed.into(),
            Err(Lost::Outlived) => return Failure::Outlived.into(),
        };
        match to_commit {
            _ if roll_back && left.is_committed() => Failure::CannotRollBack.into(),
            Ok(mut response) if roll_back => {
                left.roll_back().await;
                RollBack::done(&mut response);
                Answer::RolledBack(response)
            }
            Ok(response) => match left.claimed().await {
                Ok(Claimed::Here(tx)) => self.commit(tx, response).await,
                Ok(Claimed::Elsewhere) => Answer::Processed(response),
                Err(NotThere::NotClaimed(not_claimed)) => not_claimed.into(),
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

    /// Waits for another delivery of the same object. In the background it waits for a moment only, since it holds a
    /// place that deliveries of other objects could have.
    async fn wait_for(&self, object: FlightKey) -> Entered {
        let deadline = match self.origin.is_request() {
            true => self.deadline,
            false => self.deadline.min(Instant::now() + BACKGROUND_WAIT),
        };
        let settings = &self.settings;
        settings
            .in_flight
            .enter(object, deadline, &settings.verification.metrics)
            .await
    }

    /// Ends a kept delivery that no handler is for any more, as if its handler had done nothing. While it is young,
    /// it waits: in the midst of a deploy, another process may have one. What has ended stays in the archive, since a
    /// later version may have a handler again.
    async fn end_ignored<R, E>(&self, event_type: &str) -> Answer<R, E> {
        let ignored = |what| Answer::Ignored(what, event_type.to_owned());
        let age = self.delivery.first_received_at().elapsed();
        if age.unwrap_or_default() < LONGEST_DEPLOY {
            return ignored(Ignored::Waits);
        }
        let request = ClaimRequest {
            archived_for: Some(self.settings.archived_for().unwrap_or(ARCHIVED_FOR)),
            ..self.claim_request()
        };
        let tx = match self.settings.store.claim(&request, self.deadline).await {
            Ok(tx) => tx,
            Err(not_claimed) => return not_claimed.into(),
        };
        match tx.commit().await {
            Ok(_) => ignored(Ignored::Ended),
            Err(error) => Failure::Commit(error).into(),
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
        let known = settings.store.look_up(&request).await;
        let known = known.map_err(NotClaimed::Failed)?;
        if let Some(of) = known.duplicate_of {
            return Err(Answer::Duplicate(of));
        }
        let delivery = self.delivery_for_handler(known.is_reprocessed);
        let pending = PendingClaim::new(
            settings.store.clone(),
            request,
            settings.in_flight_timeout,
            settings.verification.metrics.clone(),
            settings.handler_timeout,
        );
        Ok(Slot::late(delivery, pending))
    }

    async fn claim(&self) -> Result<ClaimedTx, NotClaimed> {
        let (store, started) = (&self.settings.store, Instant::now());
        let claimed = store.claim(&self.claim_request(), self.deadline).await;
        let metrics = &self.settings.verification.metrics;
        metrics.duration(Stage::Claim, started.elapsed());
        claimed
    }

    fn claim_request(&self) -> ClaimRequest {
        ClaimRequest {
            delivery: self.delivery.clone(),
            fingerprint: self.fingerprint,
            object: self.object.clone(),
            longest_idle: self.settings.longest_attempt(),
            take: self.origin.take().map(|take| take.number),
            archived_for: None,
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
        let took = started.elapsed();
        self.settings
            .verification
            .metrics
            .duration(Stage::Handler, took);
        // A handler that timed out took the timeout, and not the moment until that was seen.
        self.settings.count_handler(took.min(timeout));
        let response = handled
            .map_err(|_| Failure::HandlerTimedOut(timeout))?
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

    /// Tells recovery how its attempt has ended.
    fn end<R, E>(&self, answer: &Answer<R, E>) {
        if let Origin::Recovered(attempt) = &self.origin {
            attempt.end(answer.outcome());
        }
    }

    fn suspicion(&self, tx: &ClaimedTx) -> Option<Suspicion> {
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
