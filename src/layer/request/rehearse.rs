//! The path of a rehearsal: an attempt that is rolled back instead of committed. It is neither recorded nor counted,
//! and only the caller of the rehearsal gets its result. The rollback is in `transaction/commit.rs`.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::time::Instant;
use tower_service::Service;
use tracing::{Instrument, debug, error};

use super::admitted::{Admitted, Origin};
use super::answer::Answer;
use super::ending::{Ending, Suspicion};
use super::failure::Failure;
use super::service::read_kept;
use crate::layer::settings::Settings;
use crate::recovery::{Refused, RehearsalAttempt, RehearsalResult};
use crate::transaction::{ClaimedTx, DedupeTx, RehearsalError, RowsByTable};

/// What the handler has written. This is an extension of the response if the attempt could have been committed.
#[derive(Clone, Debug)]
struct Effects(Option<RowsByTable>);

/// Rehearses a delivery that was verified when it was kept.
///
/// Like any attempt, a rehearsal runs in its own task, so it goes on even if middleware in front of the layer gives up.
/// If the caller aborts the rehearsal, the task is aborted as well. Its connection is then closed, and nothing is lost.
pub(super) async fn rehearse<S, B, R>(
    settings: Arc<Settings>,
    rehearsal: RehearsalAttempt,
    inner: S,
    request: Request<B>,
) -> Answer<R, S::Error>
where
    S: Service<Request<B>, Response = Response<R>> + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + From<Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    R: Send + 'static,
{
    let of_layer = rehearsal.clone();
    let task = tokio::spawn(
        async move {
            let answer = match admit(&settings, &of_layer, request).await {
                Ok((admitted, request)) => {
                    Answer::unrecorded(admitted.claim_and_handle(inner, request).await)
                }
                Err(answer) => answer,
            };
            let result = result_of(&answer);
            if let Answer::Attempted(_, Ending::Failed(failure @ Failure::RehearsalLeft)) = &answer
            {
                error!(reason = %failure, "webhook rehearsal may have written");
            }
            debug!(?result, "webhook rehearsed");
            of_layer.end(result);
            answer
        }
        .in_current_span(),
    );
    rehearsal.begin(task.abort_handle());
    task.await.unwrap_or_else(|_| Failure::Cancelled.into())
}

/// Reads the request of a rehearsal, which has no signature.
async fn admit<B, R, E>(
    settings: &Arc<Settings>,
    rehearsal: &RehearsalAttempt,
    request: Request<B>,
) -> Result<(Admitted, Request<B>), Answer<R, E>>
where
    B: Body<Data = Bytes> + From<Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let verification = &settings.verification;
    let delivery = rehearsal.delivery().clone();
    if *delivery.endpoint() != *verification.endpoint {
        // The layer must not treat this request as a request from the provider: it would count a request without a
        // signature.
        return Err(Failure::OtherEndpoint(verification.endpoint.clone()).into());
    }
    if !settings.is_rehearsable {
        return Err(Failure::NotRehearsable.into());
    }
    let began = Instant::now();
    let (head, body) = request.into_parts();
    if DedupeTx::is_in(&head.extensions) {
        return Err(Failure::Nested.into());
    }
    let authentic = read_kept(verification, delivery, &head, body).await?;
    let origin = Origin::Rehearsed(rehearsal.clone());
    Ok(Admitted::new(settings, head, authentic, origin, began))
}

impl Admitted {
    /// Ends a rehearsal whose handler answered success, in place of the commit.
    pub(super) async fn rehearse_commit<R, E>(
        &self,
        tx: ClaimedTx,
        mut response: Response<R>,
    ) -> Ending<R, E> {
        let suspicion = self.suspicion(&tx);
        let written = match tx.rehearse_commit().await {
            Ok(written) => written,
            Err(RehearsalError::NotCommitted(error)) => return Failure::Commit(error).into(),
            Err(RehearsalError::Left) => return Failure::RehearsalLeft.into(),
        };
        response.extensions_mut().insert(Effects(written));
        if let Some(suspicion) = suspicion {
            response.extensions_mut().insert(suspicion);
        }
        Ending::Processed(response)
    }
}

/// Rolls back after a handler failure. Returns `ending`, unless the handler has ended the transaction or the connection
/// was lost.
pub(super) async fn rehearse_rollback<R, E>(tx: ClaimedTx, ending: Ending<R, E>) -> Ending<R, E> {
    match tx.rehearse_rollback().await {
        Ok(()) => ending,
        // The connection was lost. The handler's response does not contain this failure.
        Err(RehearsalError::NotCommitted(error)) => Failure::Commit(error).into(),
        Err(RehearsalError::Left) => Failure::RehearsalLeft.into(),
    }
}

fn result_of<R, E>(answer: &Answer<R, E>) -> Result<RehearsalResult, Refused> {
    let not_run = RehearsalResult::not_run;
    let Answer::Attempted(_, ending) = answer else {
        return Ok(not_run("another attempt was running".into()));
    };
    Ok(match ending {
        Ending::Failed(
            failure @ (Failure::NotRehearsable
            | Failure::RehearsalCommitted
            | Failure::RehearsalLeft),
        ) => return Err(Refused(failure.to_string())),
        Ending::Failed(Failure::Superseded) => RehearsalResult::Changed,
        Ending::Failed(failure @ Failure::NoHandler(_)) => {
            RehearsalResult::Ignored(failure.to_string())
        }
        // The path of the rehearsal leads to the layer of another endpoint, or through two layers.
        Ending::Failed(failure @ (Failure::OtherEndpoint(_) | Failure::Nested)) => {
            RehearsalResult::unreached(failure.to_string())
        }
        Ending::Failed(failure) if !failure.is_an_attempt() => not_run(failure.to_string()),
        Ending::Processed(response) => RehearsalResult::Processed {
            suspicion: response
                .extensions()
                .get()
                .map(|suspicion: &Suspicion| suspicion.to_string()),
            written: response
                .extensions()
                .get()
                .and_then(|Effects(written)| written.clone()),
        },
        ending => match ending.failure() {
            Some(failed) if !failed.has_begun() => not_run(failed.reason().to_owned()),
            Some(failed) if ending.is_of_the_moment() => {
                RehearsalResult::Interrupted(failed.reason().to_owned())
            }
            Some(failed) => RehearsalResult::Failed(failed.reason().to_owned()),
            None => not_run("another attempt was running".into()),
        },
    })
}
