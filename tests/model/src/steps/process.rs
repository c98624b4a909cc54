//! Processes: how they die, how they notice each other's heartbeats, and how they take due
//! deliveries.

use super::attempt::begun;
use super::{Actor, Steps};
use crate::configuration::Configuration;
use crate::guards::Guard;
use crate::properties::Property;
use crate::state::{Attempt, Clock, Is, Phase, State, Take, TakenBy, Tx};

impl Steps<'_, Configuration> {
    pub(super) fn processes(&mut self) {
        for number in 0..2 {
            self.dies(number);
            self.is_deployed(number);
            self.is_heard(number);
            self.gives_up(number);
            self.takes(number);
        }
        self.transactions();
        self.clock();
    }

    /// The process has finished its work, and restarts with the other version.
    fn is_deployed(&mut self, number: u8) {
        let at = usize::from(number);
        let process = self.state.processes[at];
        let mut attempts = self.state.attempts.iter().flatten();
        if self.state.left.deploys == 0
            || !process.lives
            || process.silent
            || attempts.any(|attempt| attempt.process == number)
        {
            return;
        }
        let what = match process.handles {
            true => "is restarted with a version that ignores the type",
            false => "is restarted with a version that has a handler",
        };
        self.may(Actor::Process(number), what, |state| {
            state.left.deploys -= 1;
            state.processes[at].handles = !process.handles;
            if let Some(row) = &mut state.row
                && row.taken_by == TakenBy::Process(number)
            {
                row.taken_by = TakenBy::GivenUp;
            }
        });
    }

    /// The clock is set forward or back, as after a failover to a host with a wrong clock.
    fn clock(&mut self) {
        if self.state.left.clock_steps == 0 {
            return;
        }
        for (what, clock) in [
            ("its clock is set forward", Clock::Ahead),
            ("its clock is set back", Clock::Behind),
        ] {
            self.may(Actor::Postgres, what, |state| {
                state.left.clock_steps -= 1;
                state.clock = clock;
            });
        }
    }

    /// The process is killed. The other one survives.
    fn dies(&mut self, number: u8) {
        let [first, second] = self.state.processes;
        if self.state.left.crashes == 0 || !first.lives || !second.lives {
            return;
        }
        let actor = Actor::Process(number);
        self.may(actor, "is killed", |state| state.kill(number, Tx::None));
        self.may(actor, "is lost with its host", |state| {
            state.kill(number, Tx::Abandoned);
        });
    }

    /// `heartbeat.sql` and `expire.sql`.
    fn is_heard(&mut self, number: u8) {
        let at = usize::from(number);
        let (process, other) = (self.state.processes[at], self.state.processes[1 - at]);
        let actor = Actor::Process(number);
        if process.lives && !process.silent && self.state.left.silences > 0 {
            self.may(actor, "falls silent", |state| {
                state.left.silences -= 1;
                state.processes[at].silent = true;
                for attempt in state.attempts.iter_mut().flatten() {
                    attempt.was_silent |= attempt.process == number;
                }
            });
        }
        if process.lives && (process.silent || !process.registered) {
            self.step(actor, "is heard again (`heartbeat.sql`)", |state| {
                let process = &mut state.processes[at];
                (process.silent, process.registered) = (false, true);
            });
        }
        let is_silent = process.silent || !process.lives;
        let looks_silent = match self.state.clock {
            Clock::Ahead if !self.model.has(Guard::OwnClock) => true,
            Clock::Behind if !self.model.has(Guard::OwnClock) => false,
            _ => is_silent || !self.model.has(Guard::GraceOfSilent),
        };
        let tells = other.lives && !other.silent && self.model.has(Guard::Expire);
        if process.registered && tells && looks_silent {
            let what = "is silent, and its number is deleted (`expire.sql`)";
            self.put(actor, what, is_silent, |state| {
                state.processes[at].registered = false;
            });
        }
    }

    /// `heartbeat.sql`: the process gives up a number that no attempt holds.
    fn gives_up(&mut self, number: u8) {
        let process = self.state.processes[usize::from(number)];
        let Some(row) = self.state.row else { return };
        let is_held = row.owner.is_some() && self.model.has(Guard::HoldNumber);
        let is_its_own = row.taken_by == TakenBy::Process(number);
        if is_its_own
            && process.lives
            && !process.silent
            && !is_held
            && self.model.has(Guard::GiveUp)
        {
            let actor = Actor::Process(number);
            self.step(actor, "gives up the number (`heartbeat.sql`)", |state| {
                if let Some(row) = &mut state.row {
                    row.taken_by = TakenBy::GivenUp;
                }
            });
        }
    }

    /// `take.sql`.
    fn takes(&mut self, number: u8) {
        let process = self.state.processes[usize::from(number)];
        let (Some(row), Some(slot)) = (self.state.row, self.free_slot()) else {
            return;
        };
        let has = |guard| self.model.has(guard);
        if !process.lives
            || process.silent && has(Guard::StopOfSilent)
            || row.is != Is::Due
            || !self.state.is_free(&row) && has(Guard::TakeOnlyFree)
            || self.state.paused && has(Guard::TakeNotPaused)
            || self.state.is_row_locked()
        {
            return;
        }
        let schedule = self.model.schedule;
        for (what, phase) in [
            ("takes it (`take.sql`)", begun(self.model, process)),
            ("takes it ahead (`take.sql`)", Phase::Ahead),
        ] {
            self.step(Actor::Process(number), what, |state| {
                if state.paused {
                    state.breaks(Property::PausedDoesNotBegin);
                }
                state.overtake();
                state.count_take();
                let Some(row) = &mut state.row else { return };
                row.retries = schedule.min(row.retries + 1);
                row.taken_by = TakenBy::Process(number);
                row.owner = Some(slot as u8);
                state.attempts[slot] = Some(Attempt {
                    process: number,
                    is_request: false,
                    take: Take::Number(row.takes),
                    is_retry: true,
                    phase,
                    tx: Tx::None,
                    has_row: false,
                    aborted: false,
                    was_silent: process.silent,
                    discarded: false,
                    told_reprocessed: false,
                });
            });
        }
    }

    /// What Postgres does with transactions whose client is gone.
    fn transactions(&mut self) {
        let archives = self.model.archives;
        for slot in 0..self.model.slots {
            let Some(attempt) = self.state.attempts[slot] else {
                continue;
            };
            let process = self.state.processes[usize::from(attempt.process)];
            match attempt.tx {
                Tx::InDoubt => {
                    self.step(Actor::Postgres, "commits what is in doubt", |state| {
                        state.commit(slot, archives);
                        state.let_go(slot);
                    });
                    self.step(Actor::Postgres, "rolls back what is in doubt", |state| {
                        state.roll_back(slot);
                    });
                }
                Tx::Abandoned if self.model.has(Guard::IdleTimeout) => {
                    self.step(Actor::Postgres, "ends an idle transaction", |state| {
                        state.roll_back(slot);
                    });
                }
                Tx::Open if process.silent && self.model.has(Guard::IdleTimeout) => {
                    self.may(Actor::Postgres, "ends an idle transaction", |state| {
                        state.roll_back(slot);
                    });
                }
                Tx::None | Tx::Open | Tx::Abandoned => {}
            }
        }
    }
}

impl State {
    /// Ends the attempts of the process. Only their transactions are left, for a while.
    fn kill(&mut self, number: u8, open: Tx) {
        self.left.crashes -= 1;
        self.processes[usize::from(number)].lives = false;
        for slot in 0..self.attempts.len() {
            if let Some(attempt) = &mut self.attempts[slot]
                && attempt.process == number
            {
                if attempt.tx == Tx::Open {
                    attempt.tx = open;
                }
                self.end(slot);
            }
        }
    }

    fn roll_back(&mut self, slot: usize) {
        if let Some(attempt) = &mut self.attempts[slot] {
            (attempt.tx, attempt.has_row) = (Tx::None, false);
        }
        self.let_go(slot);
    }

    /// Removes an attempt that is over and whose last transaction has ended.
    fn let_go(&mut self, slot: usize) {
        if self.attempts[slot].is_some_and(|attempt| attempt.phase == Phase::Over) {
            self.end(slot);
        }
    }
}
