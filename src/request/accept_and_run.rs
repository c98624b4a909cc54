//! Accepts deliveries: keeps each before its handler starts to run, and answers before or after the run.

use std::sync::Arc;

use http::{Request, Response};
use tokio::sync::oneshot;
use tower_service::Service;
use tracing::{Instrument, Span};

use super::admitted::{Admitted, Origin};
use super::answer::Answer;
use super::attempt::{handle, run_in_task};
use super::failure::Failure;
use super::telemetry;
use crate::recovery::{Acceptance, Accepted, Keeper};
use crate::settings::Settings;
use crate::transaction::DuplicateOf;
use crate::verification;

/// Keeps a delivery, runs its handler, and answers as the handler does. In a task, so that what is kept runs even
/// if the sender hangs up meanwhile.
pub(super) async fn keep_first<S, B, R>(
    mut admitted: Admitted,
    keeper: Arc<Keeper>,
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
    let settings = admitted.settings.clone();
    let task = settings.in_flight.background_task();
    run_in_task(&settings.clone(), async move {
        let answer = match try_keep(&admitted, &keeper).await {
            Ok(origin) => {
                if let Some(origin) = origin {
                    admitted.origin = origin;
                }
                handle(admitted, inner, request).await
            }
            Err(answer) => logged(&settings, answer),
        };
        drop(task);
        answer
    })
    .await
}

/// Keeps a delivery whose handler runs before the answer. Returns the origin of its attempt if it is kept now.
async fn try_keep<R, E>(
    admitted: &Admitted,
    keeper: &Keeper,
) -> Result<Option<Origin>, Answer<R, E>> {
    let Origin::Received(Some(kept)) = &admitted.origin else {
        // Only such a delivery is kept first.
        return Ok(None);
    };
    let (settings, delivery) = (&admitted.settings, &admitted.delivery);
    let store = &settings.store;
    let accepted = async {
        if !keeper.quota.has_room_for(store, delivery).await? {
            // It is handled without being kept.
            return Ok(Accepted::Known);
        }
        let acceptance = Acceptance {
            delivery: delivery.clone(),
            request: kept.clone(),
            taker: Some(keeper.settings.recovery.taker().await?),
        };
        keeper.accept(store, acceptance).await
    };
    match accepted.await {
        Ok(Accepted::New(Some(take))) => {
            keeper.note_kept(store, &settings.verification.endpoint, true);
            Ok(Some(Origin::KeptFirst(take)))
        }
        // The handler runs, unless an attempt that is under way succeeds.
        Ok(Accepted::New(None) | Accepted::Known) => Ok(None),
        Ok(Accepted::Processed) => Err(Answer::Duplicate(DuplicateOf::Id)),
        Err(error) => Err(Failure::Acceptance(error).into()),
    }
}

/// Keeps a delivery and answers. The handler runs after that: in this process if a slot is free, otherwise by
/// recovery.
pub(super) async fn accept<S, B, R>(
    mut admitted: Admitted,
    keeper: Arc<Keeper>,
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
            match try_accept(&admitted, &keeper).await {
                Ok(origin) => {
                    let _ = answer.send(Answer::Accepted);
                    if let Some(origin) = origin {
                        admitted.origin = origin;
                        // The request has its span, with an outcome of its own.
                        let span = verification::span(&caller, &settings.verification);
                        verification::identified(&span, &admitted.delivery);
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
    keeper: &Keeper,
) -> Result<Option<Origin>, Answer<R, E>> {
    let Origin::Received(Some(kept)) = &admitted.origin else {
        // Only such a delivery is accepted first.
        return Ok(None);
    };
    let (settings, delivery) = (&admitted.settings, &admitted.delivery);
    let store = &settings.store;
    match keeper.quota.has_room_for(store, delivery).await {
        Ok(true) => {}
        Ok(false) => return Err(Failure::QuotaExhausted.into()),
        Err(error) => return Err(Failure::Acceptance(error).into()),
    }
    let recovery = &keeper.settings.recovery;
    let slot = recovery.try_slot();
    let acceptance = Acceptance {
        delivery: delivery.clone(),
        request: kept.clone(),
        taker: match slot {
            // Without it, recovery runs it once it can.
            Some(_) => recovery.taker().await.ok(),
            None => None,
        },
    };
    match keeper.accept(store, acceptance).await {
        Ok(Accepted::New(take)) => {
            keeper.note_kept(store, &settings.verification.endpoint, take.is_some());
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
