//! Decides which statement of `recovery/kept/result.rs` records the result of an attempt. The *take number* is a
//! counter in the row of a kept delivery. It changes whenever an attempt takes the delivery, so an outdated attempt
//! cannot change the row.

use std::time::Duration;

use tracing::Instrument;

use super::admitted::{Admitted, Origin};
use super::decision::{How, Written};
use super::telemetry;
use crate::layer::settings::Settings;
use crate::provider::delivery::Delivery;
use crate::recovery::{
    AttemptBy, DroppedAs, FailedAttempt, GivenBack, Keep, Keeper, KeptRequest, KeptState, Take,
};
use crate::tasks_and_errors::background::spawn_once;
use crate::transaction::DatabaseError;

/// How long a kept delivery waits for its next attempt after an attempt that did not begin.
const NOT_BEGUN_WAIT: Duration = Duration::from_secs(5);

/// The time between two tries to write a result.
const WRITE_AGAIN: Duration = Duration::from_secs(1);

/// For how long the layer tries to write a result. If every try fails, the row still says that an attempt has taken the
/// delivery. The delivery can be taken again once this process gives up the number under which it was taken
/// (`recovery/liveness/mod.rs`).
const WRITE_FOR: Duration = Duration::from_secs(60);

impl Admitted {
    /// Records in the kept row of a delivery how an attempt ended.
    pub(super) async fn record(&self, how: How, failed: Option<FailedAttempt>) -> Written {
        if how == How::Processed {
            self.close_breaker();
        }
        let written = match self.origin.take() {
            Some(take) => self.record_taken(how, failed, take).await,
            None => self.record_received(how, failed).await,
        };
        written.unwrap_or_else(|error| {
            telemetry::not_written(&error);
            Written::NotKept
        })
    }

    /// Whether the provider gets a 2xx although the attempt has failed, because the delivery is kept. The provider gets
    /// no 2xx if the database belongs to another environment: no process runs the kept deliveries of such a database.
    pub(super) async fn acknowledges(&self, written: Written) -> bool {
        let keeper = self.settings.keeper.as_ref();
        let acknowledges = keeper.is_some_and(|keeper| keeper.settings.acknowledge);
        if !acknowledges || !self.origin.is_request() {
            return false;
        }
        match written {
            // Read the environment now, after the write. An earlier result may be outdated: the database may have been
            // restored from another environment since.
            Written::Kept | Written::StillKept | Written::Discarded => {
                let is_home = self.settings.store.is_home().await;
                is_home.unwrap_or_else(|error| {
                    telemetry::not_written(&error);
                    false
                })
            }
            Written::NotKept | Written::Unknown | Written::Committed => true,
        }
    }

    /// Records an attempt at a kept delivery.
    async fn record_taken(
        &self,
        how: How,
        failed: Option<FailedAttempt>,
        take: &Take,
    ) -> Result<Written, DatabaseError> {
        let (store, delivery) = (&self.settings.store, &self.delivery);
        let drop_as = |dropped| store.drop_kept(delivery, Some(take), dropped);
        match (how, failed) {
            (How::Processed, _) => {}
            (How::Duplicate, _) => store.resolve(delivery).await?,
            (How::Replayed, _) => drop_as(DroppedAs::Replay).await?,
            (How::Failed, Some(failed)) if failed.is_discarded() => {
                drop_as(DroppedAs::Discarded).await?;
            }
            (How::InFlight | How::Failed, failed) => {
                return self
                    .record_failure(failed.filter(FailedAttempt::has_begun), take)
                    .await;
            }
        }
        Ok(Written::NotKept)
    }

    /// Records a failure. If `failed` is `None`, the attempt was counted but did not begin, and the count is taken
    /// back. This has no effect on a row that was taken again, erased or discarded meanwhile.
    async fn record_failure(
        &self,
        failed: Option<FailedAttempt>,
        take: &Take,
    ) -> Result<Written, DatabaseError> {
        let (settings, delivery) = (&self.settings, &self.delivery);
        match write(settings, delivery, failed.as_ref(), take, self.origin.by()).await {
            Ok(true) => return Ok(Written::StillKept),
            Ok(false) => {}
            Err(error) => {
                telemetry::not_written(&error);
                self.write_later(failed, take.clone());
                return Ok(Written::Unknown);
            }
        }
        let began = self.began.elapsed();
        let became = settings.store.what_became(delivery, began).await?;
        Ok(if became.is_processed {
            Written::Committed
        } else if became.is_kept {
            Written::StillKept
        } else if became.is_discarded {
            Written::Discarded
        } else {
            Written::NotKept
        })
    }

    /// Records a provider's attempt at a delivery that was not kept before.
    async fn record_received(
        &self,
        how: How,
        failed: Option<FailedAttempt>,
    ) -> Result<Written, DatabaseError> {
        match (failed, &self.origin) {
            (Some(failed), Origin::Received(request)) => {
                self.keep_failed(&failed, request.as_ref()).await
            }
            _ if how == How::Replayed => self.drop_replay().await,
            _ => Ok(Written::NotKept),
        }
    }

    /// Writes the result of an attempt once Postgres answers again. Without this write, an attempt that did not begin
    /// would use up an attempt of the schedule, and a failed delivery would not wait for as long as the schedule says.
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
            // [`WRITE_FOR`] says what happens if this limit is reached.
            let _ = tokio::time::timeout(WRITE_FOR, written).await;
            drop(task);
        };
        spawn_once("result", again.in_current_span());
    }

    /// Closes the breaker after a success. This costs nothing unless this process knows of failures.
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

    /// Keeps the delivery of a provider's failed attempt, or only records the failure.
    async fn keep_failed(
        &self,
        failed: &FailedAttempt,
        request: Option<&KeptRequest>,
    ) -> Result<Written, DatabaseError> {
        let (store, delivery) = (&self.settings.store, &self.delivery);
        let endpoint = &self.settings.verification.endpoint;
        let Some(keeper) = self.settings.keeper.as_deref() else {
            return Ok(Written::NotKept);
        };
        let keep = &keeper.settings;
        if failed.is_discarded() {
            store
                .drop_kept(delivery, None, DroppedAs::Discarded)
                .await?;
            return Ok(Written::NotKept);
        }
        if !keeper.quota.has_room_for(store, delivery).await? {
            return Ok(Written::NotKept);
        }
        let delay = failed.delay(&keep.schedule, 0);
        let tells = keep.on_dead.is_some();
        let kept = store.keep_failed(failed, delivery, request, delay, tells);
        let Some(kept) = kept.await? else {
            return Ok(Written::Committed);
        };
        keeper.quota.note_kept(store, endpoint);
        if kept.state == KeptState::Recorded {
            // A limit of 0 means that no request is to be kept.
            if let Some(limit @ 1..) = keep.body_limit {
                telemetry::request_not_kept(limit);
            }
            return Ok(Written::NotKept);
        }
        if kept.died {
            let (settings, takes) = (&self.settings, kept.takes);
            tell_dead(settings, keep, delivery, failed, takes, AttemptBy::Provider).await;
        }
        keep.recovery.note_kept(endpoint);
        keep.recovery.notify();
        Ok(Written::Kept)
    }

    /// Deletes the kept row of a delivery whose body was processed under another id.
    async fn drop_replay(&self) -> Result<Written, DatabaseError> {
        if self.settings.keeper.is_some() {
            self.settings
                .store
                .drop_kept(&self.delivery, None, DroppedAs::Replay)
                .await?;
        }
        Ok(Written::NotKept)
    }
}

/// Records that an attempt at a kept delivery has failed or, if `failed` is `None`, that it did not begin. Returns
/// `false` if the delivery's row was not changed, because it no longer belongs to this attempt.
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

/// Reports that a delivery is dead, and calls the application's hook. The answer to the provider does not wait for the
/// hook.
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
