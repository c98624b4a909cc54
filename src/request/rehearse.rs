//! The way of a rehearsal: an attempt that ends before its commit. It is neither recorded nor counted, and what it has
//! found is told to the rehearsal alone. The rollback is in `transaction/commit.rs`.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::time::Instant;
use tower_service::Service;
use tracing::debug;

use super::admitted::{Admitted, Origin};
use super::answer::{Answer, Suspicion};
use super::failure::Failure;
use super::record_result::Attempted;
use super::service::read_kept;
use crate::recovery::{Refused, RehearsalAttempt, RehearsalResult};
use crate::settings::Settings;
use crate::transaction::{ClaimedTx, DedupeTx};

/// Rehearses a delivery that was verified when it was kept.
///
/// Unlike an attempt, it needs no task of its own: if it is dropped, its connection is closed, and nothing is lost.
pub(super) async fn rehearse<S, B, R>(
    settings: &Arc<Settings>,
    rehearsal: RehearsalAttempt,
    inner: S,
    request: Request<B>,
) -> Answer<R, S::Error>
where
    S: Service<Request<B>, Response = Response<R>>,
    B: Body<Data = Bytes> + From<Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    R: 'static,
{
    let answer = match admit(settings, &rehearsal, request).await {
        Ok((admitted, request)) => admitted.claim_and_handle(inner, request).await,
        Err(answer) => answer,
    };
    let result = result_of(&answer);
    debug!(?result, "webhook rehearsed");
    rehearsal.end(result);
    answer
}

/// Reads a request, which has no signature.
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
        // Not taken for a request of it, which would be counted as one without a signature.
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
    let origin = Origin::Rehearsed;
    Ok(Admitted::new(settings, head, authentic, origin, began))
}

impl Admitted {
    /// Ends what a commit would have ended.
    pub(super) async fn rehearse_commit<R, E>(
        &self,
        tx: ClaimedTx,
        mut response: Response<R>,
    ) -> Answer<R, E> {
        let suspicion = self.suspicion(&tx);
        if let Err(error) = tx.rehearse_commit().await {
            return Failure::Commit(error).into();
        }
        if let Some(suspicion) = suspicion {
            response.extensions_mut().insert(suspicion);
        }
        Answer::Processed(response)
    }
}

fn result_of<R, E>(answer: &Answer<R, E>) -> Result<RehearsalResult, Refused> {
    Ok(match answer {
        Answer::Failed(failure @ (Failure::NotRehearsable | Failure::RehearsalCommitted)) => {
            return Err(Refused(failure.to_string()));
        }
        Answer::Failed(failure) if !failure.is_an_attempt() => {
            RehearsalResult::NotRun(failure.to_string())
        }
        Answer::Processed(response) => RehearsalResult::Processed {
            suspicion: response
                .extensions()
                .get()
                .map(|suspicion: &Suspicion| suspicion.to_string()),
        },
        answer => match Attempted::of(answer) {
            Attempted::Failed(failed) => RehearsalResult::Failed(failed.reason().to_owned()),
            Attempted::NotBegun(Some(failed)) => {
                RehearsalResult::NotRun(failed.reason().to_owned())
            }
            Attempted::NotBegun(None)
            | Attempted::Processed
            | Attempted::Duplicate
            | Attempted::Replayed => RehearsalResult::NotRun("another attempt was running".into()),
        },
    })
}
