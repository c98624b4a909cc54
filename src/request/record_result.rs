//! Records the result of an attempt in what is kept of its delivery.

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use tracing::Instrument;

use super::admitted::{Admitted, Origin};
use super::answer::Answer;
use super::failure::Failure;
use super::telemetry;
use super::test_kit::RolledBack;
use crate::background::spawn_once;
use crate::delivery::Delivery;
use crate::handler_error::{FailureReason, Next};
use crate::recovery::{
    AttemptBy, DroppedAs, FailedAttempt, GivenBack, Keep, Keeper, KeptRequest, KeptState, Take,
};
use crate::settings::Settings;
use crate::transaction::{DatabaseError, DuplicateOf};

/// How long a kept delivery waits after an attempt that did not begin.
const NOT_BEGUN_WAIT: Duration = Duration::from_secs(5);

/// The time between two tries to write a result.
const WRITE_AGAIN: Duration = Duration::from_secs(1);

/// For how long it is tried. After that the delivery is free once this process has given up the number under which it
/// was taken, as if the attempt had not ended.
const WRITE_FOR: Duration = Duration::from_secs(60);

/// The effect of an attempt on what is kept.
pub(super) enum Attempted {
    /// It has committed the delivery, and ended what was kept with the commit.
    Processed,
    /// Another attempt has committed it before.
    Duplicate,
    /// Another delivery with the same body was committed before.
    Replayed,
    Failed(FailedAttempt),
    /// The handler has not been called. With a failure, a delivery that is not kept yet is kept by it, so that it is not
    /// lost.
    NotBegun(Option<FailedAttempt>),
}

/// Whether a delivery is kept after its attempt, as the statement says that has recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    Kept,
    NotKept,
    /// An operator has discarded it during the attempt, and the provider hears of neither.
    Discarded,
    /// Another attempt has committed it meanwhile.
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
            Settled::NotKept => answer,
            Settled::Kept => match answer {
                Answer::InFlight => answer,
                // It was kept before.
                Answer::ObjectInFlight { .. } if take.is_some() => answer,
                answer => Answer::Kept(Box::new(answer)),
            },
            Settled::Discarded => {
                telemetry::event(&self.settings, &answer);
                Answer::Discarded
            }
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

    /// Records an attempt at a kept delivery.
    async fn settle_kept(&self, attempted: Attempted, take: &Take) -> Settled {
        let (store, delivery) = (&self.settings.store, &self.delivery);
        let drop_as = |dropped| store.drop_kept(delivery, Some(take), dropped);
        let ended = match attempted {
            Attempted::Processed => return Settled::NotKept,
            Attempted::Failed(failed) if !failed.is_discarded() => {
                return self.record(Some(failed), take).await;
            }
            Attempted::NotBegun(_) => return self.record(None, take).await,
            Attempted::Duplicate => store.resolve(delivery).await,
            Attempted::Replayed => drop_as(DroppedAs::Replay).await,
            Attempted::Failed(_) => drop_as(DroppedAs::Discarded).await,
        };
        if let Err(error) = ended {
            telemetry::not_written(&error);
        }
        Settled::NotKept
    }

    /// Records a failure, or takes back an attempt that was counted and did not begin. It has no effect on a row that
    /// was taken again, erased or discarded meanwhile.
    async fn record(&self, failed: Option<FailedAttempt>, take: &Take) -> Settled {
        let (settings, delivery) = (&self.settings, &self.delivery);
        let written = write(settings, delivery, failed.as_ref(), take, self.origin.by()).await;
        match written {
            Ok(true) => return Settled::Kept,
            Ok(false) => {}
            Err(error) => {
                telemetry::not_written(&error);
                self.write_later(failed, take.clone());
                // It was kept before, and whether it still is is unknown: no 2xx for that.
                return match self.acknowledges() {
                    true => Settled::NotKept,
                    false => Settled::Kept,
                };
            }
        }
        match settings
            .store
            .what_became(delivery, self.began.elapsed())
            .await
        {
            Ok(became) if became.is_processed => Settled::CommittedElsewhere,
            Ok(became) if became.is_kept => Settled::Kept,
            Ok(became) if became.is_discarded && self.acknowledges() => Settled::Discarded,
            Ok(_) => Settled::NotKept,
            Err(error) => {
                telemetry::not_written(&error);
                Settled::NotKept
            }
        }
    }

    /// Records an attempt of the provider at a delivery that was not kept before.
    async fn settle_received(&self, attempted: Attempted) -> Settled {
        let settled = match (attempted, &self.origin) {
            (
                Attempted::Failed(failed) | Attempted::NotBegun(Some(failed)),
                Origin::Received(request),
            ) => self.keep_failed(&failed, request.as_ref()).await,
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
            let written = async {
                loop {
                    tokio::time::sleep(WRITE_AGAIN).await;
                    let written = write(&settings, &delivery, failed.as_ref(), &take, by).await;
                    if written.is_ok() || settings.store.pool().is_closed() {
                        return;
                    }
                }
            };
            // It is free later if the time is over.
            let _ = tokio::time::timeout(WRITE_FOR, written).await;
            drop(task);
        };
        spawn_once("result", again.in_current_span());
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
        spawn_once("breaker", close.in_current_span());
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
            store
                .drop_kept(delivery, None, DroppedAs::Discarded)
                .await?;
            return Ok(Settled::NotKept);
        }
        if !quota.has_room_for(store, delivery).await? {
            return Ok(Settled::NotKept);
        }
        let keep = keeper.map(|keeper| &keeper.settings);
        let delay = keep.and_then(|keep| failed.delay(&keep.schedule, 0));
        let tells = keep.is_some_and(|keep| keep.on_dead.is_some());
        let kept = store.keep_failed(failed, delivery, request, delay, tells);
        let Some(kept) = kept.await? else {
            return Ok(Settled::CommittedElsewhere);
        };
        quota.note_kept(store, &self.settings.verification.endpoint);
        if kept.state == KeptState::Recorded {
            if let Some(limit) = keep.and_then(|keep| keep.body_limit) {
                telemetry::request_not_kept(limit);
            }
            return Ok(Settled::NotKept);
        }
        if let Some(keep) = keep {
            if kept.died {
                let (settings, takes) = (&self.settings, kept.takes);
                tell_dead(settings, keep, delivery, failed, takes, AttemptBy::Provider).await;
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
                .drop_kept(&self.delivery, None, DroppedAs::Replay)
                .await?;
        }
        Ok(Settled::NotKept)
    }
}

/// Records that an attempt at a kept delivery has failed or, without a failure, that it did not begin. Returns whether
/// the delivery is kept: the row is still that of this attempt.
async fn write(
    settings: &Settings,
    delivery: &Delivery,
    failed: Option<&FailedAttempt>,
    take: &Take,
    by: AttemptBy,
) -> Result<bool, DatabaseError> {
    let store = &settings.store;
    let Some(failed) = failed else {
        return store
            .give_back(delivery, take, NOT_BEGUN_WAIT, GivenBack::NotBegun)
            .await;
    };
    let Some(keeper) = &settings.keeper else {
        return Ok(false);
    };
    let Keeper {
        served,
        settings: keep,
        ..
    } = &**keeper;
    let kept = store.fail(failed, delivery, take, 0, served, by).await?;
    served.note_failure();
    keep.recovery.notify();
    if let Some(kept) = kept.filter(|kept| kept.died) {
        tell_dead(settings, keep, delivery, failed, kept.takes, by).await;
    }
    Ok(kept.is_some())
}

/// Tells that a delivery is dead. The answer to a provider does not wait for the hook.
async fn tell_dead(
    settings: &Settings,
    keep: &Keep,
    delivery: &Delivery,
    failed: &FailedAttempt,
    takes: i64,
    by: AttemptBy,
) {
    let report = settings.dead_report(keep);
    report.note(delivery, failed.reason());
    if by == AttemptBy::Recovery {
        return report.call_hook(delivery, failed.reason(), takes).await;
    }
    let (delivery, reason) = (delivery.clone(), failed.reason().to_owned());
    let task = settings.in_flight.background_task();
    let tell = async move {
        report.call_hook(&delivery, &reason, takes).await;
        drop(task);
    };
    tokio::spawn(tell.in_current_span());
}

impl Attempted {
    pub(super) fn of<R, E>(answer: &Answer<R, E>) -> Self {
        let scheduled =
            |status, reason: &dyn fmt::Display| FailedAttempt::new(status, reason, Next::Scheduled);
        match answer {
            Answer::Processed(_) => Self::Processed,
            Answer::Duplicate(DuplicateOf::Body { .. }) => Self::Replayed,
            Answer::Duplicate(DuplicateOf::Id) => Self::Duplicate,
            Answer::RolledBack(response) if response.extensions().get::<RolledBack>().is_some() => {
                Self::NotBegun(None)
            }
            Answer::RolledBack(response) => {
                let status = response.status();
                Self::Failed(match response.extensions().get::<FailureReason>() {
                    Some(reason) => FailedAttempt::new(status, &reason.text, reason.next),
                    None => scheduled(status, &format_args!("the handler answered {status}")),
                })
            }
            Answer::ObjectInFlight { handler_was_called } => {
                let reason = "other deliveries of its object were being processed (`serialize_by`)";
                let failed = scheduled(StatusCode::SERVICE_UNAVAILABLE, &reason);
                match handler_was_called {
                    true => Self::Failed(failed),
                    false => Self::NotBegun(Some(failed)),
                }
            }
            Answer::Failed(failure @ Failure::NoHandler(_)) => {
                Self::Failed(scheduled(failure.status(), failure).without_breaker())
            }
            Answer::Failed(failure) => {
                let failed = || scheduled(failure.status(), failure);
                if failure.is_an_attempt() {
                    Self::Failed(failed())
                } else {
                    Self::NotBegun(failure.keeps_what_did_not_begin().then(failed))
                }
            }
            Answer::InnerError(_) => Self::Failed(scheduled(
                StatusCode::INTERNAL_SERVER_ERROR,
                &"the inner service failed",
            )),
            Answer::Unhandled(_)
            | Answer::InFlight
            | Answer::Kept(_)
            | Answer::Acknowledged
            | Answer::Discarded
            | Answer::Accepted => Self::NotBegun(None),
        }
    }
}
