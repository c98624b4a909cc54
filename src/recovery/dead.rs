//! When a delivery becomes dead, and who hears of it. A dead delivery waits for an operator.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::kept::KeptState;
use crate::counts::Counts;
use crate::delivery::Delivery;
use crate::panic::{self, catch_panic};

/// Called with a dead delivery and the reason of its last attempt.
pub(super) type OnDead = Arc<dyn Fn(&Delivery, &str) + Send + Sync>;

/// The state after a failed attempt. Without a next one, the delivery is dead: the schedule has ended, or the
/// handler has said so.
pub(super) fn state_after_failure(next_attempt: Option<Duration>) -> KeptState {
    match next_attempt {
        Some(_) => KeptState::Due,
        None => KeptState::Dead,
    }
}

/// Who hears of the dead deliveries of a layer.
#[derive(Clone)]
pub(crate) struct DeadReport {
    pub(crate) provider: Arc<str>,
    pub(crate) counts: Counts,
    pub(crate) hook: Option<OnDead>,
}

impl DeadReport {
    pub(crate) async fn send(&self, delivery: &Delivery, reason: &str) {
        self.counts.dead();
        tracing::error!(
            endpoint = delivery.endpoint(),
            delivery_id = delivery.id().as_str(),
            reason,
            "webhook dead: it does not run again unless an operator retries it"
        );
        if let Some(hook) = &self.hook
            && let Err(payload) = catch_panic(async { hook(delivery, reason) }).await
        {
            hook_panicked(&*payload);
        }
    }
}

fn hook_panicked(payload: &(dyn Any + Send)) {
    let message = panic::message(payload);
    tracing::error!(message, "the hook for dead webhooks panicked");
}

impl fmt::Debug for DeadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadReport").finish_non_exhaustive()
    }
}
