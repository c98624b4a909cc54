//! Deliveries that are kept before their handler runs, in the background.

use std::sync::Arc;

use http::{Request, Response};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tower_service::Service;
use tracing::{Instrument, Span};

use super::admitted::{Admitted, Origin};
use super::attempt::handle;
use super::failure::Failure;
use super::log;
use super::response::Answer;
use crate::recovery::{Acceptance, Accepted};
use crate::settings::Settings;
use crate::transaction::DuplicateOf;

/// Keeps a delivery and answers. The handler runs afterwards, in this process if it has the
/// capacity, and otherwise by recovery.
pub(super) async fn accept<S, B, R>(
    settings: &Arc<Settings>,
    mut admitted: Admitted,
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
    let (answer, answered) = oneshot::channel();
    let task = settings.in_flight.background_task();
    // In a task: what is kept runs, even if the sender hangs up meanwhile.
    let work = {
        let settings = settings.clone();
        async move {
            match keep(&settings, &mut admitted).await {
                Ok(permit) => {
                    let _ = answer.send(Answer::Accepted);
                    if let Some(permit) = permit {
                        // The request has its span, with an outcome of its own.
                        let span = log::span(&caller, &settings);
                        log::identified(&span, &admitted.delivery);
                        handle(admitted, inner, request).instrument(span).await;
                        drop(permit);
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
    log::answer(settings, &answer);
    answer
}

/// Keeps a delivery, and returns the permit to run it now, if it has to be run and there is one.
async fn keep<R, E>(
    settings: &Arc<Settings>,
    admitted: &mut Admitted,
) -> Result<Option<OwnedSemaphorePermit>, Answer<R, E>> {
    let duplicate = || Answer::Duplicate(DuplicateOf::Id);
    let origin = std::mem::replace(&mut admitted.origin, Origin::Accepted);
    let (Origin::Received(Some(request)), Some(keep)) = (origin, &settings.keep) else {
        // Only such a delivery is accepted first.
        return Ok(None);
    };
    if let Some(cache) = &settings.processed
        && cache.contains(&admitted.delivery.key())
    {
        return Err(duplicate());
    }
    let (store, delivery) = (&settings.store, &admitted.delivery);
    match keep.quota.has_room_for(store, delivery).await {
        Ok(true) => {}
        Ok(false) => return Err(Failure::QuotaExhausted.into()),
        Err(error) => return Err(Failure::Acceptance(error).into()),
    }
    let permit = settings.accepted.clone().try_acquire_owned().ok();
    let acceptance = Acceptance {
        delivery: delivery.clone(),
        request,
        begins: permit.is_some(),
        lease: settings.lease(),
    };
    match keep.accept(store, acceptance).await {
        Ok(Accepted::New { begun }) => {
            settings.note_kept();
            Ok(permit.filter(|_| begun))
        }
        Ok(Accepted::Known) => Ok(None),
        Ok(Accepted::Processed) => Err(duplicate()),
        Err(error) => Err(Failure::Acceptance(error).into()),
    }
}
