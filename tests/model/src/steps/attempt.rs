//! The steps of an attempt, from the first statement to the answer. The *take number* of a row (`takes`) increases with
//! each take, so that an outdated attempt cannot change the row.

use super::{Actor, Steps};
use crate::configuration::{Configuration, Keep};
use crate::guards::Guard;
use crate::properties::Property;
use crate::state::{Attempt, Claim, Is, Outcome, Phase, Process, Row, State, Take, TakenBy, Tx};

impl Steps<'_, Configuration> {
    pub(super) fn attempt(&mut self, slot: usize) {
        let Some(attempt) = self.state.attempts[slot] else {
            return;
        };
        let mut of = Of {
            from: self,
            slot,
            attempt,
        };
        match attempt.phase {
            Phase::Accept => of.accept(),
            Phase::WriteAccepted => of.write_accepted(),
            Phase::Resend => of.resend(),
            Phase::WriteResent => of.write_resent(),
            Phase::ResolveResent => of.resolve_resent(),
            Phase::Ahead => of.ahead(),
            Phase::LookUp => of.look_up(),
            Phase::FindHandler => of.find_handler(),
            Phase::BeforeClaim => {
                let claims = match of.from.model.other_driver {
                    true => "the handler calls `idempotent_webhook.claim`",
                    false => "the handler calls `LateClaim::begin`",
                };
                of.go(claims, Phase::Claim);
                of.handler_fails();
            }
            Phase::Claim => of.claim(),
            Phase::Handler if !of.is_handled() => {
                of.go("there is nothing to call", Phase::Commit);
            }
            Phase::Handler => {
                of.go("the handler succeeds", Phase::Commit);
                of.handler_fails();
                if of.from.state.left.failures > 0 {
                    of.may(
                        "a statement fails, and the handler ignores it",
                        |state, slot| {
                            state.left.failures -= 1;
                            let attempt = of_slot(state, slot);
                            (attempt.aborted, attempt.phase) = (true, Phase::Commit);
                        },
                    );
                }
            }
            Phase::Commit => of.commit(),
            Phase::EndLater => of.end_later(),
            Phase::Record(outcome) if attempt.take == Take::None => of.record_received(outcome),
            Phase::Record(outcome) => of.record_taken(outcome),
            Phase::WriteFailed(outcome) => {
                if !of.from.state.is_row_locked() {
                    of.write_failed("writes `keep_failed.sql`", outcome);
                }
            }
            Phase::Answer(is_ok) => {
                let what = match (attempt.is_request, is_ok) {
                    (false, _) => "ends",
                    (true, true) => "answers 2xx",
                    (true, false) => "answers 503",
                };
                of.step(what, |state, slot| {
                    state.acknowledged |= attempt.is_request && is_ok;
                    state.end(slot);
                });
            }
            Phase::Over => {}
        }
    }
}

/// The first step of a recovery attempt.
pub(super) fn begun(configuration: &Configuration, process: Process) -> Phase {
    match process.handles {
        true => begin(configuration.claims_late),
        false => Phase::FindHandler,
    }
}

impl State {
    /// The attempt in a slot frees the row that it has taken. `takes_back` undoes the count of an attempt that did not
    /// start.
    fn free(&mut self, slot: usize, takes_back: bool) {
        let Some(row) = &mut self.row else { return };
        let is_overtaken = row.owner != Some(slot as u8);
        (row.taken_by, row.owner) = (TakenBy::Nobody, None);
        row.retries = row.retries.saturating_sub(u8::from(takes_back));
        if is_overtaken {
            self.breaks(Property::TheOvertakenWriteNothing);
        }
    }
}

fn of_slot(state: &mut State, slot: usize) -> &mut Attempt {
    state.attempts[slot].as_mut().expect("the attempt is there")
}

/// The steps of one attempt.
struct Of<'a, 'b> {
    from: &'a mut Steps<'b, Configuration>,
    slot: usize,
    attempt: Attempt,
}

impl Of<'_, '_> {
    fn step(&mut self, what: &'static str, change: impl FnOnce(&mut State, usize)) {
        let slot = self.slot;
        let actor = Actor::Attempt(slot as u8);
        self.from.step(actor, what, |state| change(state, slot));
    }

    fn may(&mut self, what: &'static str, change: impl FnOnce(&mut State, usize)) {
        let slot = self.slot;
        let actor = Actor::Attempt(slot as u8);
        self.from.may(actor, what, |state| change(state, slot));
    }

    fn go(&mut self, what: &'static str, phase: Phase) {
        self.step(what, |state, slot| of_slot(state, slot).phase = phase);
    }

    fn has(&self, guard: Guard) -> bool {
        self.from.model.has(guard)
    }

    /// The first step of the attempt, once its delivery is kept or need not be kept.
    fn begin(&self) -> Phase {
        begin(self.from.model.claims_late)
    }

    fn answers_first(&self) -> bool {
        self.from.model.keep == Keep::AcceptFirst
    }

    /// The first half of `accept.sql`: its snapshot shows whether the delivery is processed, kept or unknown.
    fn accept(&mut self) {
        let state = self.from.state;
        let is_silent = state.processes[usize::from(self.attempt.process)].silent;
        if is_silent && self.has(Guard::StopOfSilent) && !self.answers_first() {
            return self.go("has no number to take it under", Phase::Answer(false));
        }
        if state.claim != Claim::None && self.has(Guard::AcceptLooks) {
            self.go("`accept.sql` finds it processed", Phase::Answer(true));
        } else if state.row.is_some() {
            self.known();
        } else {
            self.go("`accept.sql` finds nothing", Phase::WriteAccepted);
        }
    }

    fn known(&mut self) {
        let next = if self.answers_first() {
            Phase::Resend
        } else {
            self.begin()
        };
        self.go("`accept.sql` finds it kept", next);
    }

    /// The second half of `accept.sql`: the insert, which waits while a transaction is deleting the row.
    fn write_accepted(&mut self) {
        let state = self.from.state;
        if state.is_row_locked() {
            return;
        }
        if state.row.is_some() {
            return self.known();
        }
        let (begin, answers_first) = (self.begin(), self.answers_first());
        let new_numbers = self.has(Guard::NewNumbers);
        let process = self.attempt.process;
        let is_silent = state.processes[usize::from(process)].silent;
        if !answers_first || !(state.paused || is_silent && self.has(Guard::StopOfSilent)) {
            self.step("`accept.sql` keeps it, taken", |state, slot| {
                state.insert(Row::taken(process, slot), new_numbers);
                state.acknowledged |= answers_first;
                let attempt = of_slot(state, slot);
                (attempt.take, attempt.phase) = (Take::Number(1), begin);
                attempt.was_silent = is_silent;
                attempt.is_request &= !answers_first;
            });
        }
        if answers_first {
            self.step(
                "`accept.sql` keeps it, and no place is free",
                |state, slot| {
                    state.insert(Row::new(Is::Due), new_numbers);
                    of_slot(state, slot).phase = Phase::Answer(true);
                },
            );
        }
        if state.left.losses > 0 {
            self.may(
                "`accept.sql` keeps it, and the answer is lost",
                |state, slot| {
                    state.left.losses -= 1;
                    let row = Row::taken(process, slot);
                    state.insert(Row { owner: None, ..row }, new_numbers);
                    of_slot(state, slot).phase = match answers_first {
                        true => Phase::Resend,
                        false => begin,
                    };
                },
            );
            self.lose("`accept.sql` fails", Phase::Answer(false));
        }
    }

    fn lose(&mut self, what: &'static str, phase: Phase) {
        if self.from.state.left.losses > 0 {
            self.may(what, |state, slot| {
                state.left.losses -= 1;
                of_slot(state, slot).phase = phase;
            });
        }
    }

    /// The first half of `resend.sql`: its snapshot shows the state of the kept row.
    fn resend(&mut self) {
        let state = self.from.state;
        let is_running = state
            .row
            .is_some_and(|row| row.is == Is::Due && row.taken_by != TakenBy::Nobody);
        if state.claim != Claim::None && self.has(Guard::ResendLooks) {
            self.go("`resend.sql` finds it processed", Phase::Answer(true));
        } else if is_running && self.has(Guard::ResendLeavesRunning) {
            // `note_resent.sql` does not wait for an attempt.
            self.step("`resend.sql` finds it running", |state, slot| {
                state.came();
                of_slot(state, slot).phase = Phase::ResolveResent;
            });
        } else {
            self.go("`resend.sql` finds it waiting or ended", Phase::WriteResent);
        }
    }

    /// The second half of `resend.sql`: the insert, which waits while a transaction is changing the row.
    fn write_resent(&mut self) {
        let state = self.from.state;
        if state.is_row_locked() {
            return self.go("`resend.sql` waits for too long", Phase::Answer(false));
        }
        let new_numbers = self.has(Guard::NewNumbers);
        let fence = self.has(Guard::FenceOfResend);
        self.step("`resend.sql` makes it due", |state, slot| {
            state.came();
            match state.row.map(|row| row.is) {
                None => state.insert(Row::new(Is::Due), new_numbers),
                Some(Is::Due) => {}
                Some(_) => {
                    state.overtake();
                    if fence {
                        state.count_take();
                    }
                    state.row = state.row.map(Row::anew);
                }
            }
            of_slot(state, slot).phase = Phase::ResolveResent;
        });
    }

    /// Runs `resolve.sql` after `resend.sql`, and decides the answer.
    fn resolve_resent(&mut self) {
        if !self.has(Guard::ResolveResent) {
            return self.go("is kept", Phase::Answer(true));
        }
        if self.from.state.is_row_locked() {
            return self.go("`resolve.sql` waits for too long", Phase::Answer(false));
        }
        self.resolve();
    }

    /// `resolve.sql`.
    fn resolve(&mut self) {
        let archives = self.from.model.archives;
        let looks = self.has(Guard::ResolveLooks);
        self.step("`resolve.sql` ends what is processed", |state, slot| {
            if state.claim != Claim::None || !looks {
                if state.claim == Claim::None && state.row.is_some() {
                    state.breaks(Property::KeptIsNotLost);
                }
                if state.row.is_some_and(|row| row.is != Is::Processed) {
                    state.end_row(archives);
                }
            }
            of_slot(state, slot).phase = Phase::Answer(true);
        });
    }

    /// Whether the process has a handler for the type.
    fn is_handled(&self) -> bool {
        self.from.state.handles(&self.attempt)
    }

    /// The process of the attempt has no handler for the delivery's event type.
    fn find_handler(&mut self) {
        match self.has(Guard::HandlerIsThere) {
            true => self.go(
                "there is no handler for it, which is a failure",
                Phase::Record(Outcome::Failed),
            ),
            false => self.go("there is no handler for it, and it ends", Phase::Claim),
        }
    }

    /// `look_up.sql`, with `late_claim`.
    fn look_up(&mut self) {
        match self.from.state.claim {
            Claim::None => self.step("`look_up.sql` finds it not processed", |state, slot| {
                let told_reprocessed = state.row.is_some_and(|row| row.reprocessed);
                let attempt = of_slot(state, slot);
                (attempt.told_reprocessed, attempt.phase) = (told_reprocessed, Phase::BeforeClaim);
            }),
            Claim::Young | Claim::Old => {
                let duplicate = Phase::Record(Outcome::Duplicate);
                self.go("`look_up.sql` finds it processed", duplicate);
            }
        }
    }

    /// `claim.sql`, and then `end_with_claim.sql`. Nobody sees the claim between the two.
    fn claim(&mut self) {
        let state = self.from.state;
        if state.holds_claim().is_some() {
            // The attempt takes the advisory lock, or, without that guard, waits for the primary key.
            if self.has(Guard::LockOfClaim) || self.has(Guard::OneClaim) {
                let not_begun = Phase::Record(Outcome::NotBegun);
                return self.go("waits for the claim for too long", not_begun);
            }
        } else if state.claim != Claim::None && self.has(Guard::OneClaim) {
            let duplicate = Phase::Record(Outcome::Duplicate);
            return self.go("`claim.sql` finds it processed", duplicate);
        }
        let ends_row = self.is_its_row();
        let superseded = Phase::Record(Outcome::Superseded);
        let needs_row = self.attempt.take != Take::None
            && self.has(Guard::Superseded)
            && self.has_take_in_claim();
        if needs_row && !ends_row {
            return self.go("claims, and its row was taken or ended", superseded);
        }
        let is_reprocessed = state.row.is_some_and(|row| ends_row && row.reprocessed);
        let was_told = self.attempt.told_reprocessed;
        let claims_late = self.from.model.claims_late && self.is_handled();
        if claims_late && was_told != is_reprocessed && self.has(Guard::SameReprocessed) {
            return self.go("claims, and the look-up has said otherwise", superseded);
        }
        let told_reprocessed = match claims_late {
            true => was_told,
            false => is_reprocessed,
        };
        let ends_now = ends_row && self.has(Guard::EndInTheTransaction) && !state.is_row_locked();
        self.step("claims, and ends what is kept", |state, slot| {
            let attempt = of_slot(state, slot);
            (attempt.tx, attempt.phase) = (Tx::Open, Phase::Handler);
            (attempt.has_row, attempt.told_reprocessed) = (ends_now, told_reprocessed);
        });
        let misses = state.left.losses > 0 || !self.has(Guard::LookAgain);
        if ends_now && self.attempt.take == Take::None && misses {
            self.may(
                "claims, and does not see what was kept meanwhile",
                |state, slot| {
                    state.left.losses = state.left.losses.saturating_sub(1);
                    let attempt = of_slot(state, slot);
                    (attempt.tx, attempt.phase) = (Tx::Open, Phase::Handler);
                },
            );
        }
    }

    /// The condition of `end_with_claim.sql`.
    fn is_its_row(&self) -> bool {
        let of_claim = (Guard::FenceOfClaim, Guard::OnlyDueIsClaimed);
        self.from
            .state
            .row
            .is_some_and(|row| match self.attempt.take {
                Take::None => true,
                _ if !self.has_take_in_claim() => true,
                _ => self.is_its_take(&row, of_claim),
            })
    }

    /// Whether the claim gets the take number of the attempt. Without that number, the claim cannot notice that the
    /// attempt is outdated.
    fn has_take_in_claim(&self) -> bool {
        !self.from.model.other_driver || self.has(Guard::FenceOfFunction)
    }

    /// Whether the take number of the attempt is the one in the row.
    fn is_its_take(&self, row: &Row, (fence, only_due): (Guard, Guard)) -> bool {
        (row.is == Is::Due || !self.has(only_due))
            && (self.attempt.take == Take::Number(row.takes) || !self.has(fence))
    }

    fn handler_fails(&mut self) {
        if self.from.state.left.failures == 0 {
            return;
        }
        for (what, outcome) in [
            ("the handler fails, and is rolled back", Outcome::Failed),
            (
                "the handler fails for good, and is rolled back",
                Outcome::Dead,
            ),
            (
                "the handler discards it, and is rolled back",
                Outcome::Discarded,
            ),
        ] {
            self.may(what, |state, slot| {
                state.left.failures -= 1;
                let attempt = of_slot(state, slot);
                (attempt.tx, attempt.has_row) = (Tx::None, false);
                attempt.phase = Phase::Record(outcome);
            });
        }
    }

    fn commit(&mut self) {
        let failed = Phase::Record(Outcome::Failed);
        if self.attempt.tx != Tx::Open {
            // Postgres has ended the transaction.
            return self.go("cannot commit", failed);
        }
        if self.attempt.aborted {
            let next = match self.has(Guard::AbortedIsNo) {
                true => failed,
                false => Phase::Answer(true),
            };
            return self.step(
                "commits an aborted transaction, which is rolled back",
                |state, slot| {
                    let attempt = of_slot(state, slot);
                    (attempt.tx, attempt.has_row, attempt.phase) = (Tx::None, false, next);
                },
            );
        }
        let archives = self.from.model.archives;
        let next = match self.has(Guard::EndInTheTransaction) {
            true => Phase::Answer(true),
            false => Phase::EndLater,
        };
        self.step("commits", |state, slot| {
            state.commit(slot, archives);
            of_slot(state, slot).phase = next;
        });
        let in_doubt = match self.has(Guard::DoubtIsNo) {
            true => failed,
            false => Phase::Answer(true),
        };
        if self.from.state.left.losses > 0 {
            self.may("commits, and gets no answer", |state, slot| {
                state.left.losses -= 1;
                let attempt = of_slot(state, slot);
                (attempt.tx, attempt.phase) = (Tx::InDoubt, in_doubt);
            });
        }
    }

    /// The attempt gets a slot, or stops waiting for one: before a process stops, it gives back the deliveries that it
    /// has taken and not started.
    fn ahead(&mut self) {
        let process = self.from.state.processes[usize::from(self.attempt.process)];
        let begun = begun(self.from.model, process);
        self.go("begins", begun);
        let state = self.from.state;
        // The statement skips a locked row.
        let fences = (Guard::FenceOfGiveBackAhead, Guard::OnlyDueFails);
        let is_its_take =
            !state.is_row_locked() && state.row.is_some_and(|row| self.is_its_take(&row, fences));
        self.may("`give_back_ahead.sql`", |state, slot| {
            if is_its_take {
                state.free(slot, true);
            }
            state.end(slot);
        });
    }

    /// Ends the row after the commit, in a transaction of its own.
    fn end_later(&mut self) {
        let archives = self.from.model.archives;
        let ends_row = self.is_its_row();
        self.step("ends what is kept", |state, slot| {
            if ends_row {
                state.end_row(archives);
            }
            of_slot(state, slot).phase = Phase::Answer(true);
        });
    }

    /// `record_received`: the delivery was not kept before the attempt.
    fn record_received(&mut self, outcome: Outcome) {
        let state = self.from.state;
        match outcome {
            Outcome::Duplicate => self.go("is a duplicate", Phase::Answer(true)),
            Outcome::NotBegun | Outcome::Superseded => {
                self.go("is in flight elsewhere", Phase::Answer(false));
            }
            Outcome::Discarded => self.drop_kept(),
            Outcome::Failed | Outcome::Dead => {
                self.lose("`keep_failed.sql` fails", Phase::Answer(false));
                let waits = state.holds_claim().is_some();
                if waits || !self.has(Guard::KeepFailedWaits) {
                    // `lock.sql` has waited for too long, so the statement is tried without the lock.
                    match self.finds_processed() {
                        true => self.go("finds it processed", Phase::Answer(true)),
                        false => {
                            let write = Phase::WriteFailed(outcome);
                            self.go("`keep_failed.sql` finds no claim, without the lock", write);
                        }
                    }
                } else if self.finds_processed() {
                    self.go("finds it processed", Phase::Answer(true));
                } else {
                    self.write_failed("`keep_failed.sql` keeps it", outcome);
                }
            }
        }
    }

    fn finds_processed(&self) -> bool {
        self.from.state.claim != Claim::None && self.has(Guard::KeepFailedLooks)
    }

    /// `keep_failed.sql`.
    fn write_failed(&mut self, what: &'static str, outcome: Outcome) {
        let new_numbers = self.has(Guard::NewNumbers);
        let fence = self.has(Guard::FenceOfKeepFailed);
        self.step(what, |state, slot| {
            state.came();
            let is = match outcome {
                Outcome::Dead => Is::Dead,
                _ => Is::Due,
            };
            match &mut state.row {
                None => state.insert(Row::new(is), new_numbers),
                Some(row) if matches!(row.is, Is::Recorded | Is::Processed) => {
                    state.overtake();
                    if fence {
                        state.count_take();
                    }
                    state.row = state.row.map(|row| Row { is, ..row.anew() });
                }
                // The attempt that has taken the row has no effect from now on.
                Some(row) if is == Is::Dead => {
                    (row.is, row.taken_by, row.owner) = (is, TakenBy::Nobody, None);
                }
                Some(_) => {}
            }
            of_slot(state, slot).phase = Phase::Answer(true);
        });
    }

    /// `record_taken`: the attempt has taken the row. If another transaction is changing the row, the attempt waits and
    /// tries again.
    fn record_taken(&mut self, outcome: Outcome) {
        let state = self.from.state;
        // With `acknowledge`, the provider does not see that a delivery is kept.
        let says_kept = matches!(
            outcome,
            Outcome::Failed | Outcome::Dead | Outcome::Superseded
        );
        let as_written = self.has(Guard::KeptAsWritten);
        if outcome != Outcome::Duplicate && outcome != Outcome::Discarded {
            let unknown = Phase::Answer(says_kept && !as_written);
            self.lose("its result cannot be written", unknown);
        }
        if state.is_row_locked() {
            return;
        }
        let (fences, is) = match outcome {
            Outcome::Duplicate if self.has(Guard::ResolveDuplicate) => return self.resolve(),
            Outcome::Duplicate => return self.go("is a duplicate", Phase::Answer(true)),
            Outcome::Discarded => return self.drop_kept(),
            Outcome::Failed | Outcome::Dead => {
                let retries = state.row.map_or(0, |row| row.retries);
                let is_last = outcome == Outcome::Dead || retries >= self.from.model.schedule;
                let is = if is_last { Is::Dead } else { Is::Due };
                ((Guard::FenceOfFail, Guard::OnlyDueFails), is)
            }
            Outcome::NotBegun | Outcome::Superseded => {
                ((Guard::FenceOfGiveBack, Guard::OnlyDueFails), Is::Due)
            }
        };
        let is_its_take = state.row.is_some_and(|row| self.is_its_take(&row, fences));
        let gives_back = !matches!(outcome, Outcome::Failed | Outcome::Dead);
        let is_retry = self.attempt.is_retry;
        let what = match gives_back {
            true => "`give_back.sql`",
            false => "`fail.sql`",
        };
        let is_ok = says_kept && (is_its_take || !as_written);
        self.step(what, |state, slot| {
            if is_ok && of_slot(state, slot).is_request && !state.may_say_kept() {
                state.breaks(Property::KeptIsTrue);
            }
            if is_its_take {
                state.free(slot, gives_back && is_retry);
                if let Some(row) = state.row.as_mut().filter(|_| !gives_back) {
                    row.is = is;
                }
            }
            of_slot(state, slot).phase = Phase::Answer(is_ok);
        });
    }

    /// `drop.sql` and `set_aside.sql`: the handler has discarded the delivery.
    fn drop_kept(&mut self) {
        if self.from.state.is_row_locked() {
            return;
        }
        let take = self.attempt.take;
        let is_fenced = take != Take::None && self.has(Guard::FenceOfDrop);
        self.step("`drop.sql`", |state, slot| {
            let is_its_own = state.row.is_some_and(|row| match is_fenced {
                true => row.is == Is::Due && take == Take::Number(row.takes),
                false => row.is != Is::Processed,
            });
            let owner = state.row.filter(|_| is_its_own).map(|row| row.owner);
            if take != Take::None && owner.is_some_and(|owner| owner != Some(slot as u8)) {
                state.breaks(Property::TheOvertakenWriteNothing);
            }
            if is_its_own {
                state.row = None;
            }
            state.ended |= state.row.is_none();
            state.set_aside = true;
            of_slot(state, slot).phase = Phase::Answer(false);
        });
    }
}

/// The first step of an attempt, once its delivery is kept or need not be kept.
pub(super) fn begin(claims_late: bool) -> Phase {
    match claims_late {
        true => Phase::LookUp,
        false => Phase::Claim,
    }
}

impl Row {
    fn new(is: Is) -> Self {
        Self {
            is,
            takes: 0,
            retries: 0,
            reprocessed: false,
            taken_by: TakenBy::Nobody,
            owner: None,
        }
    }

    fn taken(process: u8, slot: usize) -> Self {
        Self {
            takes: 1,
            taken_by: TakenBy::Process(process),
            owner: Some(slot as u8),
            ..Self::new(Is::Due)
        }
    }

    /// The row is due, with a new schedule. No process has taken it.
    pub(super) fn anew(self) -> Self {
        Self {
            takes: self.takes,
            reprocessed: self.reprocessed,
            ..Self::new(Is::Due)
        }
    }

    /// The row that reconciliation keeps.
    pub(super) fn listed() -> Self {
        Self::new(Is::Due)
    }
}

impl State {
    /// Inserts a new row. With `new_numbers`, its take number differs from the numbers of all attempts that have taken
    /// an earlier row.
    pub(super) fn insert(&mut self, row: Row, new_numbers: bool) {
        for attempt in self.attempts.iter_mut().flatten() {
            if attempt.take != Take::None && new_numbers {
                attempt.take = Take::Past;
            }
        }
        self.row = Some(row);
        self.came();
    }

    /// The transaction of an attempt commits.
    pub(super) fn commit(&mut self, slot: usize, archives: bool) {
        let before = *of_slot(self, slot);
        let Attempt {
            take,
            has_row,
            discarded,
            told_reprocessed,
            ..
        } = before;
        let is_handled = self.handles(&before);
        let attempt = of_slot(self, slot);
        (attempt.tx, attempt.has_row) = (Tx::None, false);
        if has_row {
            let owner = self.row.and_then(|row| row.owner);
            if take != Take::None && owner != Some(slot as u8) {
                self.breaks(Property::TheOvertakenWriteNothing);
            }
            if !is_handled {
                self.breaks(Property::ProcessedByItsHandler);
            }
            if self.row.is_some_and(|row| row.reprocessed) != told_reprocessed {
                self.breaks(Property::TheToldIsTrue);
            }
            self.end_row(archives);
        }
        if discarded {
            self.breaks(Property::DiscardedDoesNotCommit);
        }
        self.claim = Claim::Young;
        self.effects += u8::from(is_handled);
    }

    /// Whether the version of the attempt's process has a handler for the type.
    fn handles(&self, attempt: &Attempt) -> bool {
        self.processes[usize::from(attempt.process)].handles
    }

    /// Whether the layer may answer `kept`: nothing is lost if the provider does not send the delivery again.
    fn may_say_kept(&self) -> bool {
        let is_kept = self.row.is_some_and(|row| row.is != Is::Recorded);
        is_kept || self.effects > 0 || self.set_aside
    }
}
