//! Accepts deliveries: keeps each before its handler starts to run, and answers before or after the run.

use std::sync::Arc;

use http::{Request, Response};
use tokio::sync::oneshot;
use tower_service::Service;
use tracing::{Instrument, Span};

use super::admitted::{Admitted, Origin};
use super::attempt::handle;
use super::failure::Failure;
use super::response::Answer;
use super::telemetry;
use crate::recovery::{Acceptance, Accepted, Keep};
use crate::settings::Settings;
use crate::transaction::DuplicateOf;

/// Keeps a delivery, runs its handler, and answers as the handler does.
pub(super) async fn keep_first<S, B, R>(
    mut admitted: Admitted,
    keep: &Keep,
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
    if let Origin::Received(Some(kept)) = &admitted.origin {
        let (settings, delivery) = (&admitted.settings, &admitted.delivery);
        let has_room = keep.quota.has_room_for(&settings.store, delivery).await;
        let acceptance = Acceptance {
            delivery: delivery.clone(),
            request: kept.clone(),
            begins: true,
        };
        let accepted = match has_room {
            Ok(true) => keep.accept(&settings.store, acceptance).await,
            // It is handled without being kept.
            Ok(false) => Ok(Accepted::Known),
            Err(error) => Err(error),
        };
        match accepted {
            Ok(Accepted::New(Some(take))) => {
                keep.note_kept(&settings.store, &settings.endpoint, true);
                admitted.origin = Origin::KeptFirst(take);
            }
            // The handler runs, unless an attempt that is under way succeeds.
            Ok(Accepted::New(None) | Accepted::Known) => {}
            Ok(Accepted::Processed) => return logged(settings, Answer::Duplicate(DuplicateOf::Id)),
            Err(error) => return logged(settings, Failure::Acceptance(error).into()),
        }
    }
    handle(admitted, inner, request).await
}

/// Keeps a delivery and answers. The handler runs after that: in this process if a slot is free, otherwise by
/// recovery.
pub(super) async fn accept<S, B, R>(
    mut admitted: Admitted,
    keep: Keep,
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
    let (answer, answered) = oneshot::channel();
    let task = settings.in_flight.background_task();
    // In a task, so that what is kept runs even if the sender hangs up meanwhile.
    let work = {
        let settings = settings.clone();
        async move {
            match try_accept(&admitted, &keep).await {
                Ok(origin) => {
                    let _ = answer.send(Answer::Accepted);
                    if let Some(origin) = origin {
                        admitted.origin = origin;
                        // The request has its span, with an outcome of its own.
                        let span = telemetry::span(&caller, &settings);
                        telemetry::identified(&span, &admitted.delivery);
                        handle(admitted, inner, request).instrument(span).await;
                    }
                }
                Err(refused) => {
                    let _ = answer.send(refused);
                }
            }
            drop(task);
        }
    };
    tokio::spawn(Box::pin(work).in_current_span());
    let answer = answered.await.unwrap_or(Answer::Failed(Failure::Cancelled));
    logged(&settings, answer)
}

/// Keeps a delivery. Returns the origin of its attempt, if that begins now.
async fn try_accept<R, E>(
    admitted: &Admitted,
    keep: &Keep,
) -> Result<Option<Origin>, Answer<R, E>> {
    let Origin::Received(Some(kept)) = &admitted.origin else {
        // Only such a delivery is accepted first.
        return Ok(None);
    };
    let (settings, delivery) = (&admitted.settings, &admitted.delivery);
    let store = &settings.store;
    match keep.quota.has_room_for(store, delivery).await {
        Ok(true) => {}
        Ok(false) => return Err(Failure::QuotaExhausted.into()),
        Err(error) => return Err(Failure::Acceptance(error).into()),
    }
    let slot = keep.recovery.try_slot();
    let acceptance = Acceptance {
        delivery: delivery.clone(),
        request: kept.clone(),
        begins: slot.is_some(),
    };
    match keep.accept(store, acceptance).await {
        Ok(Accepted::New(take)) => {
            keep.note_kept(store, &settings.endpoint, take.is_some());
            Ok(take
                .zip(slot)
                .map(|(take, slot)| Origin::Accepted { take, _slot: slot }))
        }
        Ok(Accepted::Known) => Ok(None),
        Ok(Accepted::Processed) => Err(Answer::Duplicate(DuplicateOf::Id)),
        Err(error) => Err(Failure::Acceptance(error).into()),
    }
}

/// The answer, logged, if there is no attempt that logs it.
fn logged<R, E>(settings: &Arc<Settings>, answer: Answer<R, E>) -> Answer<R, E> {
    telemetry::answer(settings, &answer);
    answer
}
