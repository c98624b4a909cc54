//! What an attempt means for what is kept of its delivery.

use std::time::Duration;

use http::StatusCode;
use tracing::Instrument;

use super::admitted::{Admitted, Origin};
use super::handler_error::FailureReason;
use super::log;
use super::response::Answer;
use super::rollback_test::RolledBack;
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

/// What has become of a delivery whose attempt has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// It is kept.
    Kept,
    NotKept,
    /// Another process has committed it meanwhile.
    Processed,
}

impl Admitted {
    pub(super) fn acknowledges(&self) -> bool {
        let keep = self.settings.keep.as_ref();
        keep.is_some_and(|keep| keep.acknowledge)
    }

    /// Writes down what an attempt means for what is kept.
    pub(super) async fn settle(&self, result: AttemptResult) -> Settled {
        let store = &self.settings.store;
        let Some(keep) = &self.settings.keep else {
            return Settled::NotKept;
        };
        let written = match (&self.origin, result) {
            (Origin::Received(request), AttemptResult::Failed(failed)) => {
                return self.keep(keep, &failed, request.as_ref()).await;
            }
            (Origin::Received(_), _) => return Settled::NotKept,
            (Origin::Accepted | Origin::Recovered(_), AttemptResult::Processed) => {
                self.end_in_background(keep);
                return Settled::NotKept;
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
            Ok(Some(_)) => Settled::Kept,
            Ok(None) => Settled::NotKept,
            Err(error) => {
                log::not_written(&error);
                Settled::NotKept
            }
        }
    }

    /// After a success: that of a provider's request ends the failures in a row, too, where the
    /// recovery of this process knows of them. Otherwise it costs nothing.
    pub(super) fn end_failures_in_a_row(&self) {
        if let (Origin::Received(_), Some(keep), Some(served)) =
            (&self.origin, &self.settings.keep, &self.settings.served)
            && served.take_probed()
        {
            self.end_in_background(keep);
        }
    }

    /// The delivery is processed, so nothing depends on when its kept row ends.
    fn end_in_background(&self, keep: &Keep) {
        let (keep, store) = (keep.clone(), self.settings.store.clone());
        let (delivery, task) = (
            self.delivery.clone(),
            self.settings.in_flight.background_task(),
        );
        let end = async move {
            if let Err(error) = keep.end(&store, &delivery, true).await {
                log::not_written(&error);
            }
            drop(task);
        };
        tokio::spawn(end.in_current_span());
    }

    /// Keeps or records a failed attempt of the provider.
    async fn keep(
        &self,
        keep: &Keep,
        failed: &FailedAttempt,
        request: Option<&KeptRequest>,
    ) -> Settled {
        match self.try_keep(keep, failed, request).await {
            Ok(settled) => settled,
            Err(error) => {
                log::not_written(&error);
                Settled::NotKept
            }
        }
    }

    async fn try_keep(
        &self,
        keep: &Keep,
        failed: &FailedAttempt,
        request: Option<&KeptRequest>,
    ) -> Result<Settled, DatabaseError> {
        let store = &self.settings.store;
        if failed.is_discarded() {
            keep.end(store, &self.delivery, false).await?;
            return Ok(Settled::NotKept);
        }
        if !keep.quota.has_room_for(store, &self.delivery).await? {
            return Ok(Settled::NotKept);
        }
        let kept = store.keep(failed, &self.delivery, request, keep).await?;
        if kept == Some(KeptAs::Dead) {
            self.report_dead(failed).await;
        }
        Ok(match kept {
            None => Settled::Processed,
            Some(KeptAs::Recorded) => {
                if keep.requests {
                    log::request_not_kept(keep.body_limit);
                }
                Settled::NotKept
            }
            Some(KeptAs::Due | KeptAs::Dead | KeptAs::StillDead) => {
                self.settings.note_kept();
                Settled::Kept
            }
        })
    }

    async fn report_dead(&self, failed: &FailedAttempt) {
        let report = self.settings.dead_report();
        report.send(&self.delivery, failed.reason()).await;
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
