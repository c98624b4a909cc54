//! What an attempt means for what is kept of its delivery.

use std::time::Duration;

use http::StatusCode;

use super::admitted::{Admitted, Origin};
use super::handler_error::FailureReason;
use super::log;
use super::response::Answer;
use super::rollback_test::RolledBack;
use crate::panic::catch_panic;
use crate::recovery::{FailedAttempt, Keep, KeptAs, KeptRequest, Next, UNHANDLED_WAIT};
use crate::transaction::DatabaseError;

/// How long a kept delivery waits whose attempt could not be made.
const NOT_RUN_WAIT: Duration = Duration::from_secs(5);

/// The result of an attempt, as far as it matters to what is kept.
pub(super) enum AttemptResult {
    /// The delivery is processed, by this attempt or before.
    Processed,
    Failed(FailedAttempt),
    /// The handler has not been called.
    NotRun,
}

impl Admitted {
    pub(super) fn acknowledges(&self) -> bool {
        let keep = self.settings.keep.as_ref();
        keep.is_some_and(|keep| keep.acknowledge)
    }

    /// Writes down what an attempt means for what is kept. Returns whether a failed delivery is kept.
    pub(super) async fn settle(&self, result: AttemptResult) -> bool {
        let store = &self.settings.store;
        let Some(keep) = &self.settings.keep else {
            return false;
        };
        let written = match (&self.origin, result) {
            (Origin::Received(request), AttemptResult::Failed(failed)) => {
                self.keep(keep, &failed, request.as_ref()).await
            }
            (Origin::Received(_), _) => return false,
            (Origin::Accepted | Origin::Recovered(_), AttemptResult::Processed) => {
                keep.end(store, &self.delivery, true).await.map(|()| None)
            }
            (Origin::Accepted | Origin::Recovered(_), AttemptResult::Failed(failed))
                if failed.is_discarded() =>
            {
                keep.end(store, &self.delivery, false).await.map(|()| None)
            }
            (origin, AttemptResult::Failed(failed)) if failed.is_unhandled() => {
                let retries = origin.retries();
                store
                    .give_back(&self.delivery, retries, UNHANDLED_WAIT)
                    .await
                    .map(|()| None)
            }
            (origin, AttemptResult::Failed(failed)) => {
                let retries = origin.retries();
                let kept = store
                    .fail_kept(&failed, &self.delivery, retries, &keep.schedule)
                    .await;
                if let Ok(Some(KeptAs::Dead)) = kept {
                    self.report_dead(&failed).await;
                }
                kept
            }
            (origin, AttemptResult::NotRun) => {
                let retries = origin.retries();
                store
                    .give_back(&self.delivery, retries, NOT_RUN_WAIT)
                    .await
                    .map(|()| None)
            }
        };
        match written {
            Ok(kept) => kept.is_some_and(|kept| kept != KeptAs::Recorded),
            Err(error) => {
                log::not_written(&error);
                false
            }
        }
    }

    /// Keeps or records a failed attempt of the provider.
    async fn keep(
        &self,
        keep: &Keep,
        failed: &FailedAttempt,
        request: Option<&KeptRequest>,
    ) -> Result<Option<KeptAs>, DatabaseError> {
        let store = &self.settings.store;
        if failed.is_discarded() {
            return keep.end(store, &self.delivery, false).await.map(|()| None);
        }
        if keep.quota.is_full(store, self.delivery.endpoint()).await? {
            return Ok(None);
        }
        let kept = store.keep(failed, &self.delivery, request, keep).await;
        if let Ok(Some(KeptAs::Dead)) = kept {
            self.report_dead(failed).await;
        }
        kept
    }

    async fn report_dead(&self, failed: &FailedAttempt) {
        log::dead(&self.settings.metrics, failed.reason());
        if let Some(hook) = &self.settings.on_dead
            && let Err(payload) = catch_panic(async { hook(&self.delivery, failed.reason()) }).await
        {
            log::hook_panicked(&*payload);
        }
    }
}

pub(super) fn result_of<R, E>(answer: &Answer<R, E>) -> AttemptResult {
    AttemptResult::Failed(match answer {
        Answer::Processed(_) | Answer::Duplicate(_) => return AttemptResult::Processed,
        Answer::RolledBack(response) => {
            if response.extensions().get::<RolledBack>().is_some() {
                return AttemptResult::NotRun;
            }
            let status = response.status();
            match response.extensions().get::<FailureReason>() {
                Some(reason) => FailedAttempt::new(status, &reason.text, reason.next),
                None => {
                    let reason = format_args!("the handler answered {status}");
                    FailedAttempt::new(status, reason, Next::Scheduled)
                }
            }
        }
        Answer::Failed(failure) if failure.is_an_attempt() => {
            FailedAttempt::new(failure.status(), failure, Next::Scheduled)
        }
        Answer::InnerError(_) => FailedAttempt::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the inner service failed",
            Next::Scheduled,
        ),
        Answer::Failed(_)
        | Answer::Handshake(_)
        | Answer::InFlight
        | Answer::Rejected(_)
        | Answer::Kept(_)
        | Answer::Acknowledged
        | Answer::Accepted => return AttemptResult::NotRun,
    })
}
