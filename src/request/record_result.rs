//! Records the result of an attempt in what is kept of its delivery.

use std::time::Duration;

use http::StatusCode;
use tracing::Instrument;

use super::admitted::{Admitted, Origin};
use super::answer::{Answer, Ignored};
use super::telemetry;
use super::test_kit::RolledBack;
use crate::delivery::Delivery;
use crate::handler_error::{FailureReason, Next};
use crate::recovery::{AttemptBy, FailedAttempt, Keeper, KeptRequest, KeptState, Take};
use crate::settings::Settings;
use crate::transaction::{DatabaseError, DuplicateOf};

/// How long a kept delivery waits after an attempt that did not begin.
const NOT_BEGUN_WAIT: Duration = Duration::from_secs(5);

/// How long a kept delivery waits that no handler of this process is for.
const IGNORED_WAIT: Duration = Duration::from_secs(60);

/// The time between two tries to write a result.
const WRITE_AGAIN: Duration = Duration::from_secs(1);

/// The number of tries. After them, the delivery is free, as if the attempt had not ended.
const MAX_WRITES: usize = 60;

/// The effect of an attempt on what is kept.
enum Attempted {
    /// It has committed the delivery, and ended what was kept with the commit.
    Processed,
    /// Another attempt has committed it before.
    Duplicate,
    /// Another delivery with the same body was committed before.
    Replayed,
    Failed(FailedAttempt),
    /// It has ended the delivery without a handler.
    Ended,
    /// It has waited for other deliveries of its object until its time was over. For who has not kept the delivery,
    /// that is a failure.
    Waited(FailedAttempt),
    /// The handler has not been called. The next attempt is due after this time.
    NotBegun(Duration),
}

/// Whether a delivery is kept after its attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    Kept,
    NotKept,
    /// Another process has committed it meanwhile.
    CommittedElsewhere,
}

impl Admitted {
    /// Records an attempt. Returns the answer, which says whether the delivery is kept.
    pub(super) async fn settle<R, E>(&self, answer: Answer<R, E>) -> Answer<R, E> {
        let attempted = Attempted::of(&answer);
        if let Attempted::Processed = attempted {
            self.close_breaker();
        }
        let take = self.origin.take();
        let settled = match take {
            Some(take) => self.settle_kept(attempted, take).await,
            None => self.settle_received(attempted).await,
        };
        match settled {
            Settled::Kept if matches!(answer, Answer::InFlight | Answer::Ignored(..)) => answer,
            // It was kept before.
            Settled::Kept if take.is_some() && matches!(answer, Answer::ObjectInFlight) => answer,
            Settled::Kept => Answer::Kept(Box::new(answer)),
            Settled::NotKept => answer,
            Settled::CommittedElsewhere => {
                // The request is counted once, as a duplicate.
                telemetry::event(&self.settings, &answer);
                Answer::Duplicate(DuplicateOf::Id)
            }
        }
    }

    /// Whether the provider does not hear of a failure that is kept.
    pub(super) fn acknowledges(&self) -> bool {
        let keeper = self.settings.keeper.as_ref();
        self.origin.is_request() && keeper.is_some_and(|keeper| keeper.settings.acknowledge)
    }

    /// Records an attempt at a kept delivery, which stays kept even if nothing could be written.
    async fn settle_kept(&self, attempted: Attempted, take: &Take) -> Settled {
        let (store, delivery) = (&self.settings.store, &self.delivery);
        let (written, settled) = match attempted {
            Attempted::Processed | Attempted::Ended => return Settled::NotKept,
            Attempted::Duplicate => (store.resolve(delivery).await, Settled::NotKept),
            Attempted::Replayed => (
                store.drop_replay(delivery, Some(take)).await,
                Settled::NotKept,
            ),
            Attempted::Failed(failed) if failed.is_discarded() => (
                store.drop_kept(delivery, Some(take)).await,
                Settled::NotKept,
            ),
            Attempted::Failed(failed) => {
                let written = fail(&self.settings, delivery, &failed, take, self.origin.by()).await;
                if written.is_err() {
                    self.write_later(Some(failed), take.clone());
                }
                (written, Settled::Kept)
            }
            Attempted::Waited(_) => self.give_back(take, NOT_BEGUN_WAIT).await,
            Attempted::NotBegun(wait) => self.give_back(take, wait).await,
        };
        if let Err(error) = written {
            telemetry::not_written(&error);
        }
        settled
    }

    /// Takes back an attempt that was counted and did not begin.
    async fn give_back(&self, take: &Take, wait: Duration) -> (Result<(), DatabaseError>, Settled) {
        let store = &self.settings.store;
        let written = store.give_back(&self.delivery, take, wait, None).await;
        if written.is_err() {
            self.write_later(None, take.clone());
        }
        (written, Settled::Kept)
    }

    /// Records an attempt of the provider at a delivery that was not kept before.
    async fn settle_received(&self, attempted: Attempted) -> Settled {
        let settled = match (attempted, &self.origin) {
            (Attempted::Failed(failed) | Attempted::Waited(failed), Origin::Received(request)) => {
                self.keep_failed(&failed, request.as_ref()).await
            }
            (Attempted::Replayed, _) => self.drop_replay().await,
            _ => return Settled::NotKept,
        };
        match settled {
            Ok(settled) => settled,
            Err(error) => {
                telemetry::not_written(&error);
                Settled::NotKept
            }
        }
    }

    /// Writes the result of an attempt once Postgres answers again. An attempt that did not begin must not be
    /// counted, and one that failed waits as the schedule says.
    fn write_later(&self, failed: Option<FailedAttempt>, take: Take) {
        let (settings, delivery) = (self.settings.clone(), self.delivery.clone());
        let by = self.origin.by();
        let task = settings.in_flight.background_task();
        let again = async move {
            for _ in 0..MAX_WRITES {
                tokio::time::sleep(WRITE_AGAIN).await;
                let written = match &failed {
                    Some(failed) => fail(&settings, &delivery, failed, &take, by).await,
                    None => {
                        let store = &settings.store;
                        store
                            .give_back(&delivery, &take, Duration::ZERO, None)
                            .await
                    }
                };
                if written.is_ok() || settings.store.pool().is_closed() {
                    break;
                }
            }
            drop(task);
        };
        tokio::spawn(again.in_current_span());
    }

    /// Closes the breaker after a success. That costs nothing unless this process knows of failures.
    fn close_breaker(&self) {
        let Some(keeper) = &self.settings.keeper else {
            return;
        };
        if !keeper.served.take_failures() {
            return;
        }
        let settings = self.settings.clone();
        let task = settings.in_flight.background_task();
        let close = async move {
            if let Err(error) = settings
                .store
                .close_breaker(&settings.verification.endpoint)
                .await
            {
                telemetry::not_written(&error);
            }
            drop(task);
        };
        tokio::spawn(close.in_current_span());
    }

    /// Keeps or records a failed attempt of the provider.
    async fn keep_failed(
        &self,
        failed: &FailedAttempt,
        request: Option<&KeptRequest>,
    ) -> Result<Settled, DatabaseError> {
        let (store, delivery) = (&self.settings.store, &self.delivery);
        let keeper = self.settings.keeper.as_deref();
        let Some(quota) = self.settings.quota() else {
            return Ok(Settled::NotKept);
        };
        if failed.is_discarded() {
            store.drop_kept(delivery, None).await?;
            return Ok(Settled::NotKept);
        }
        if !quota.has_room_for(store, delivery).await? {
            return Ok(Settled::NotKept);
        }
        let keep = keeper.map(|keeper| &keeper.settings);
        let delay = keep.and_then(|keep| failed.delay(&keep.schedule, 0));
        let Some(kept) = store.keep_failed(failed, delivery, request, delay).await? else {
            return Ok(Settled::CommittedElsewhere);
        };
        quota.note_kept(store, &self.settings.verification.endpoint);
        if kept.state == KeptState::Recorded {
            if let Some(keep) = keep {
                telemetry::request_not_kept(keep.body_limit);
            }
            return Ok(Settled::NotKept);
        }
        if let Some(keep) = keep {
            if kept.died {
                let report = self.settings.dead_report(keep);
                report.send(delivery, failed.reason()).await;
            }
            keep.recovery
                .note_kept(&self.settings.verification.endpoint);
            keep.recovery.notify();
        }
        Ok(Settled::Kept)
    }

    /// Ends what is kept of a delivery whose body was processed under another id.
    async fn drop_replay(&self) -> Result<Settled, DatabaseError> {
        if self.settings.quota().is_some() {
            self.settings
                .store
                .drop_replay(&self.delivery, None)
                .await?;
        }
        Ok(Settled::NotKept)
    }
}

/// Records that an attempt at a kept delivery has failed.
async fn fail(
    settings: &Settings,
    delivery: &Delivery,
    failed: &FailedAttempt,
    take: &Take,
    by: AttemptBy,
) -> Result<(), DatabaseError> {
    let Some(keeper) = &settings.keeper else {
        return Ok(());
    };
    let Keeper {
        served,
        settings: keep,
        ..
    } = &**keeper;
    let kept = settings
        .store
        .fail(failed, delivery, take, 0, served, by)
        .await?;
    served.note_failure();
    keep.recovery.notify();
    if kept.is_some_and(|kept| kept.died) {
        let report = settings.dead_report(keep);
        report.send(delivery, failed.reason()).await;
    }
    Ok(())
}

impl Attempted {
    fn of<R, E>(answer: &Answer<R, E>) -> Self {
        Self::Failed(match answer {
            Answer::Processed(_) => return Self::Processed,
            Answer::Duplicate(DuplicateOf::Body { .. }) => return Self::Replayed,
            Answer::Duplicate(DuplicateOf::Id) => return Self::Duplicate,
            Answer::Ignored(Ignored::Ended, _) => return Self::Ended,
            Answer::Ignored(Ignored::Waits, _) => return Self::NotBegun(IGNORED_WAIT),
            Answer::RolledBack(response) => {
                if response.extensions().get::<RolledBack>().is_some() {
                    return Self::NotBegun(NOT_BEGUN_WAIT);
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
            Answer::ObjectInFlight => {
                let reason = "other deliveries of its object were being processed (`serialize_by`)";
                let status = StatusCode::SERVICE_UNAVAILABLE;
                return Self::Waited(FailedAttempt::new(status, reason, Next::Scheduled));
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
            | Answer::Unhandled(_)
            | Answer::InFlight
            | Answer::Kept(_)
            | Answer::Acknowledged
            | Answer::Accepted => return Self::NotBegun(NOT_BEGUN_WAIT),
        })
    }
}
