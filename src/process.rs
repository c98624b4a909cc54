//! From a place in line to COMMIT.

use std::sync::Arc;

use http::{Request, Response};
use tokio::time::Instant;
use tower_service::Service;

use crate::claim::{Claim, Content, Repeat, Wanted};
use crate::delivery::Delivery;
use crate::error::Failure;
use crate::failures::FailedAttempt;
use crate::in_flight::{Lead, Line, Place};
use crate::layer::IdempotentWebhook;
use crate::meter::Stage;
use crate::panic::catch_panic;
use crate::recent::Recent;
use crate::report;
use crate::response::{Outcome, UnusedTransaction};
use crate::tx::{InTransaction, Slot};

/// A delivery that nobody else in this process is at, until its leads are dropped.
pub(crate) struct Turn {
    pub(crate) delivery: Delivery,
    pub(crate) content: Option<Content>,
    pub(crate) leads: Leads,
    pub(crate) deadline: Instant,
}

pub(crate) struct Leads {
    by_id: Lead,
    /// There is one where replays are guarded against.
    by_content: Option<Lead>,
}

/// Waits until nobody else in this process is at the delivery, without a connection.
pub(crate) async fn line_up<B>(
    layer: &IdempotentWebhook,
    delivery: &Delivery,
    content: Option<Content>,
    deadline: Instant,
) -> Result<Leads, Outcome<B>> {
    let key = delivery.key();
    let is_recent = |recent: &Recent| recent.contains(&key);
    if layer.recent.as_ref().is_some_and(is_recent) {
        return Err(Outcome::Duplicate(Repeat::Id));
    }
    let tenant = key.tenant.clone();
    let line = |line| layer.in_flight.turn(line, deadline, &layer.meter);
    let by_id = match line(Line::Delivery(key)).await {
        Place::Lead(lead) => lead,
        Place::Processed => return Err(Outcome::Duplicate(Repeat::Id)),
        Place::TimeUp => return Err(Outcome::InFlight),
    };
    let by_content = match content {
        Some(Content {
            digest,
            guarded: true,
        }) => match line(Line::Digest { tenant, digest }).await {
            Place::Lead(lead) => Some(lead),
            Place::Processed => {
                return Err(Outcome::Duplicate(Repeat::BodyOnly { first: None }));
            }
            Place::TimeUp => return Err(Outcome::InFlight),
        },
        Some(_) | None => None,
    };
    Ok(Leads { by_id, by_content })
}

impl Leads {
    /// Lets those who wait know what came of it. Where that is not success, the first of
    /// them leads.
    fn end<B>(self, outcome: Option<&Outcome<B>>) {
        let (id_is_processed, content_is_processed) = match outcome {
            Some(Outcome::Processed(_)) => (true, true),
            // What this one says may not have been processed.
            Some(Outcome::Duplicate(Repeat::Id | Repeat::IdOnly { .. })) => (true, false),
            Some(Outcome::Duplicate(Repeat::BodyOnly { .. })) => (false, true),
            Some(_) | None => (false, false),
        };
        if id_is_processed {
            self.by_id.processed();
        }
        if let Some(by_content) = self.by_content
            && content_is_processed
        {
            by_content.processed();
        }
    }
}

/// Claims and handles the delivery, and puts down what came of it before anybody else has
/// their turn.
pub(crate) async fn process<S, ReqBody, ResBody>(
    layer: Arc<IdempotentWebhook>,
    inner: S,
    request: Request<ReqBody>,
    turn: Turn,
) -> Result<Outcome<ResBody>, S::Error>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
{
    let answer = claim_and_handle(&layer, inner, request, &turn).await;
    if layer.records_failures {
        let attempt = failed_attempt(answer.as_ref().ok());
        record(&layer, attempt, &turn.delivery).await;
    }
    let outcome = answer.as_ref().ok();
    report::outcome(&layer.meter, outcome);
    turn.leads.end(outcome);
    answer
}

async fn record(layer: &IdempotentWebhook, attempt: Option<FailedAttempt>, delivery: &Delivery) {
    if let Some(attempt) = attempt
        && let Err(error) = layer.store.record(&attempt, delivery).await
    {
        tracing::warn!(%error, "could not put down that a webhook failed");
    }
}

/// How an attempt failed that had begun and was rolled back.
fn failed_attempt<B>(outcome: Option<&Outcome<B>>) -> Option<FailedAttempt> {
    match outcome {
        Some(Outcome::RolledBack(response)) => Some(FailedAttempt::answered(response)),
        // There has been no attempt.
        Some(Outcome::Failed(
            Failure::Unavailable(_) | Failure::NoSecrets(_) | Failure::Nested,
        )) => None,
        Some(Outcome::Failed(failure)) => Some(FailedAttempt::new(failure.status(), failure)),
        Some(
            Outcome::Processed(_)
            | Outcome::Duplicate(_)
            | Outcome::Handshake(_)
            | Outcome::InFlight
            | Outcome::Rejected(_),
        ) => None,
        None => Some(FailedAttempt::inner_service()),
    }
}

async fn claim_and_handle<S, ReqBody, ResBody>(
    layer: &IdempotentWebhook,
    inner: S,
    request: Request<ReqBody>,
    turn: &Turn,
) -> Result<Outcome<ResBody>, S::Error>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
{
    let store = &layer.store;
    let delivery = &turn.delivery;
    let wanted = Wanted {
        delivery,
        content: turn.content,
        redelivery_window: layer.provider.max_redelivery(),
        deadline: turn.deadline,
    };
    let started = Instant::now();
    let claim = store.claim(wanted).await;
    layer.meter.duration(Stage::Claim, started.elapsed());
    let (connection, id) = match claim {
        Ok(Claim::Claimed(connection, id)) => (connection, id),
        Ok(Claim::Duplicate(repeat)) => return Ok(Outcome::Duplicate(repeat)),
        Ok(Claim::InFlight) => return Ok(Outcome::InFlight),
        Err(error) => return Ok(Outcome::Failed(Failure::Unavailable(error))),
    };
    let (answer, connection) = handle(layer, inner, request, delivery, connection).await;
    let Some(mut connection) = connection else {
        return Ok(Outcome::Failed(Failure::Outlived));
    };
    match answer {
        Ok(Ok(mut response)) if layer.commits(response.status()) => {
            let after_commit = std::mem::take(&mut connection.after_commit);
            let unused = !connection.taken && !layer.allows_unused_transaction;
            let before_commit = layer.recent.as_ref().map(Recent::before_commit);
            let started = Instant::now();
            let committed = store.commit(connection, id).await;
            layer.meter.duration(Stage::Commit, started.elapsed());
            if let Err(error) = committed {
                return Ok(Outcome::Failed(Failure::Commit(error)));
            }
            if let (Some(recent), Some(before_commit)) = (&layer.recent, before_commit) {
                recent.insert(delivery.key(), before_commit);
            }
            after_commit.spawn(layer.handler_time, layer.in_flight.busy());
            if unused {
                report::unused_transaction();
                response.extensions_mut().insert(UnusedTransaction);
            }
            Ok(Outcome::Processed(response))
        }
        Ok(Ok(response)) => {
            store.roll_back(connection).await;
            Ok(Outcome::RolledBack(response))
        }
        Ok(Err(error)) => {
            store.roll_back(connection).await;
            Err(error)
        }
        Err(failure) => {
            store.roll_back(connection).await;
            Ok(Outcome::Failed(failure))
        }
    }
}

/// Runs the handler with the transaction, and takes the transaction back. Without one,
/// the handler has left it somewhere.
async fn handle<S, ReqBody>(
    layer: &IdempotentWebhook,
    mut inner: S,
    mut request: Request<ReqBody>,
    delivery: &Delivery,
    connection: InTransaction,
) -> (
    Result<Result<S::Response, S::Error>, Failure>,
    Option<InTransaction>,
)
where
    S: Service<Request<ReqBody>>,
{
    let slot = Slot::new(delivery.clone(), connection);
    request.extensions_mut().insert(delivery.clone());
    request.extensions_mut().insert(slot.clone());
    // The body has been bounded here, so axum's default of 2 MB must not refuse it.
    #[cfg(feature = "axum")]
    axum_core::extract::DefaultBodyLimit::disable().apply(&mut request);

    let started = Instant::now();
    let handler = catch_panic(async move { inner.call(request).await });
    let answer = match tokio::time::timeout(layer.handler_time, handler).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(payload)) => Err(Failure::panicked(&*payload)),
        Err(_) => Err(Failure::HandlerTimedOut(layer.handler_time)),
    };
    layer.meter.duration(Stage::Handler, started.elapsed());
    (answer, slot.close())
}
