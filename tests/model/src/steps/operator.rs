//! What operators do with a delivery, each action in one transaction.

use super::{Actor, Steps};
use crate::configuration::{Action, Configuration};
use crate::guards::Guard;
use crate::state::{Claim, Is, Row, State, Take, TakenBy, Tx};

impl Steps<'_, Configuration> {
    pub(super) fn operator(&mut self) {
        if self.state.paused {
            self.step(Actor::Operator, "resumes (`resume.sql`)", |state| {
                state.paused = false;
            });
        }
        self.discard_next();
        if self.state.left.actions == 0 {
            return;
        }
        let Some(action) = self.model.action else {
            return;
        };
        let is = |each| action == each || action == Action::Any;
        if is(Action::Pause) && !self.state.paused {
            self.act("pauses (`pause.sql`)", |state| state.paused = true);
        }
        if action == Action::DiscardAll && self.state.many.is_none() {
            self.act("begins to discard many", |state| state.many = Some(false));
        }
        // All other steps wait for the transaction that has changed the row, or skip the row.
        if self.state.is_row_locked() {
            return;
        }
        if is(Action::Retry) {
            self.retry();
        }
        if is(Action::Discard) {
            self.discard();
        }
        if is(Action::Forget) {
            self.forget();
        }
        if is(Action::Reprocess) {
            self.reprocess();
        }
        if is(Action::Erase) {
            self.erase();
        }
    }

    fn act(&mut self, what: &'static str, change: impl FnOnce(&mut State)) {
        self.may(Actor::Operator, what, |state| {
            state.left.actions -= 1;
            change(state);
        });
    }

    /// `retry.sql`, unless the delivery is processed or running.
    fn retry(&mut self) {
        let Some(row) = self.state.row else { return };
        let leaves_running = self.model.has(Guard::RetryLeavesRunning);
        if self.state.claim != Claim::None
            || !matches!(row.is, Is::Due | Is::Dead)
            || leaves_running && !self.state.is_free(&row)
        {
            return;
        }
        let fence = self.model.has(Guard::FenceOfRetry);
        self.act("retries (`retry.sql`)", |state| state.make_due(fence));
    }

    /// The operation that discards many deliveries reaches this one.
    fn discard_next(&mut self) {
        let Some(came_again) = self.state.many else {
            return;
        };
        let has = |guard| self.model.has(guard);
        let runs = has(Guard::LockOfClaim) && self.state.holds_claim().is_some();
        let is_meant = self.state.row.is_some_and(|row| row.is != Is::Processed)
            && !(came_again && has(Guard::ManyLeaveLater));
        if runs && has(Guard::ManyLeaveRunning) || !is_meant {
            return self.step(Actor::Operator, "leaves it among many", |state| {
                state.many = None;
            });
        }
        if self.state.is_row_locked() {
            return;
        }
        let sets_aside = has(Guard::SetAside);
        let what = "discards it among many (`discard.sql`)";
        self.step(Actor::Operator, what, |state| {
            state.many = None;
            state.discard(sets_aside);
            // The operator did not mean a request that came later.
            state.ended |= !came_again;
        });
    }

    /// `await_attempt.sql`, `discard.sql` and `set_aside.sql`.
    fn discard(&mut self) {
        let has = |guard| self.model.has(guard);
        let Some(row) = self.state.row else { return };
        if has(Guard::DiscardWaits) && has(Guard::LockOfClaim) && self.state.holds_claim().is_some()
            || row.is == Is::Processed && has(Guard::DiscardLeavesProcessed)
        {
            return;
        }
        let sets_aside = has(Guard::SetAside);
        self.act("discards (`discard.sql`)", |state| {
            state.discard(sets_aside);
            state.ended = true;
        });
    }

    /// `operator::forget`.
    fn forget(&mut self) {
        if self.state.claim == Claim::None {
            return;
        }
        let deletes_kept = self.model.has(Guard::ForgetDeletesKept);
        let sets_aside = self.model.has(Guard::SetAside);
        self.act("forgets", |state| {
            state.claim = Claim::None;
            if deletes_kept {
                state.row = None;
            }
            state.set_aside |= sets_aside;
            match state.has_request() {
                true => state.allowed += 1,
                false => state.forgotten = true,
            }
        });
    }

    /// `operator::reprocess`: it deletes the claim, and runs `reprocess.sql`.
    fn reprocess(&mut self) {
        if self.state.row.is_none_or(|row| row.is != Is::Processed) {
            return;
        }
        let fence = self.model.has(Guard::FenceOfReprocess);
        self.act("reprocesses (`reprocess.sql`)", |state| {
            state.claim = Claim::None;
            state.allowed += 1;
            state.make_due(fence);
            if let Some(row) = &mut state.row {
                row.reprocessed = true;
            }
        });
    }

    /// `await_attempt.sql` and `erase.sql`.
    fn erase(&mut self) {
        let Some(row) = self.state.row else { return };
        if row.is == Is::Recorded
            || self.model.has(Guard::LockOfClaim) && self.state.holds_claim().is_some()
        {
            return;
        }
        let fence = self.model.has(Guard::FenceOfErase);
        self.act("erases (`erase.sql`)", |state| {
            state.ended = true;
            if row.is == Is::Processed {
                state.row = None;
                return;
            }
            if fence {
                state.count_take();
            }
            state.row = state.row.map(|row| Row {
                is: Is::Recorded,
                taken_by: TakenBy::Nobody,
                owner: None,
                ..row
            });
        });
    }
}

impl State {
    /// The row is deleted.
    fn discard(&mut self, sets_aside: bool) {
        self.row = None;
        self.set_aside |= sets_aside;
        for attempt in self.attempts.iter_mut().flatten() {
            attempt.discarded |= attempt.take != Take::None || attempt.tx != Tx::None;
        }
    }

    /// The row is due, with a new schedule. Attempts that have taken the row before lose it.
    fn make_due(&mut self, fence: bool) {
        self.overtake();
        if fence {
            self.count_take();
        }
        self.row = self.row.map(Row::anew);
    }
}
