//! The reports to hooks about a delivery that dies, is retried by an operator, and dies again.

use super::{Budget, Call, Process, Telling, Turn};
use crate::checker::Model;
use crate::guards::Guard;
use crate::properties::Property;
use crate::steps::{Actor, Step, Steps};

/// A check of the reports of a dead delivery.
#[derive(Clone, Copy, Debug)]
pub struct Deaths(pub Telling);

/// One state of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Whether `state = 'dead'`. A delivery that is not dead is due.
    is_dead: bool,
    takes: u8,
    /// `untold_at`.
    untold: Turn,
    /// A hook was called for this death.
    is_told: bool,
    processes: [Process; 2],
    /// Something has gone wrong, so a hook may be called twice for the same report.
    harmed: bool,
    left: Budget,
    broke: Option<Property>,
}

impl Model for Deaths {
    type State = State;

    fn first(&self) -> State {
        State {
            is_dead: false,
            takes: 0,
            untold: Turn::None,
            is_told: false,
            processes: [Process::Idle; 2],
            harmed: false,
            left: self.0.budget,
            broke: None,
        }
    }

    fn steps(&self, state: &State, into: &mut dyn FnMut(Step, State)) {
        let mut from = Steps {
            model: self,
            state,
            into,
        };
        for process in 0..2 {
            from.fails(process);
            from.takes(process);
            from.tells(process);
            from.dies(process);
        }
        from.retries();
        from.time_is_over();
    }

    fn broken(&self, state: &State) -> Option<Property> {
        state.broke
    }

    fn is_due(&self, state: &State) -> bool {
        state.is_dead && !state.is_told
    }
}

impl Steps<'_, Deaths> {
    /// `fail.sql`, after an attempt in a process with a hook.
    fn fails(&mut self, process: usize) {
        let is_idle = self.state.processes[process] == Process::Idle;
        if self.state.is_dead || !is_idle || !self.model.0.hooks[process] {
            return;
        }
        let is_written = self.model.0.has(Guard::ToTellIsWritten);
        let die = |state: &mut State| {
            state.takes += 1;
            (state.is_dead, state.is_told) = (true, false);
            if is_written {
                state.untold = Turn::Taken;
            }
            Process::Taken(Call {
                number: Some(state.takes),
                is_there: true,
                is_late: false,
            })
        };
        let actor = Actor::Process(process as u8);
        self.may(
            actor,
            "takes it, and fails for good (`fail.sql`)",
            |state| {
                state.processes[process] = die(state);
            },
        );
        if self.state.left.losses > 0 {
            self.may(actor, "fails for good, and hears no answer", |state| {
                state.left.losses -= 1;
                state.harmed = true;
                die(state);
            });
        }
    }

    /// `tell_death.sql`.
    fn takes(&mut self, process: usize) {
        let turn = match self.model.0.has(Guard::OneTells) {
            true => self.state.untold == Turn::Over,
            false => self.state.untold != Turn::None,
        };
        let is_idle = self.state.processes[process] == Process::Idle;
        if !turn || !is_idle || !self.state.is_dead || !self.model.0.takes(process) {
            return;
        }
        let told_after = self.model.0.has(Guard::ToldAfterTheCall);
        let actor = Actor::Process(process as u8);
        let take = |state: &mut State| {
            state.untold = match told_after {
                true => Turn::Taken,
                false => Turn::None,
            };
        };
        self.step(actor, "takes the death (`tell_death.sql`)", |state| {
            take(state);
            state.processes[process] = Process::Taken(Call {
                number: Some(state.takes),
                is_there: true,
                is_late: false,
            });
        });
        if self.state.left.losses > 0 {
            self.may(actor, "takes the death, and the answer is lost", |state| {
                state.left.losses -= 1;
                state.harmed = true;
                take(state);
            });
        }
    }

    /// The call of the hook, and `told_death.sql`.
    fn tells(&mut self, process: usize) {
        let actor = Actor::Process(process as u8);
        match self.state.processes[process] {
            Process::Idle => {}
            Process::Taken(call) => {
                let has_hook = self.model.0.hooks[process];
                let what = match has_hook {
                    true => "tells its hook that it is dead",
                    false => "has no hook to call",
                };
                self.step(actor, what, |state| {
                    state.processes[process] = Process::Called(call);
                    if has_hook && call.number == Some(state.takes) {
                        if state.is_told && !state.harmed {
                            state.broke = Some(Property::ToldOnce);
                        }
                        state.is_told = true;
                    }
                });
            }
            Process::Called(call) => {
                let is_fenced = self.model.0.has(Guard::FenceOfToldDeath);
                self.step(
                    actor,
                    "writes that it is told (`told_death.sql`)",
                    |state| {
                        state.processes[process] = Process::Idle;
                        let is_its = call.number == Some(state.takes) || !is_fenced;
                        if state.is_dead && is_its {
                            state.untold = Turn::None;
                        }
                    },
                );
                if self.state.left.losses > 0 {
                    self.may(actor, "cannot write that it is told", |state| {
                        state.left.losses -= 1;
                        state.harmed = true;
                        state.processes[process] = Process::Idle;
                    });
                }
            }
        }
    }

    fn dies(&mut self, process: usize) {
        if self.state.left.crashes > 0 && self.state.processes[process] != Process::Idle {
            let actor = Actor::Process(process as u8);
            self.may(actor, "is killed, and started anew", |state| {
                state.left.crashes -= 1;
                state.harmed = true;
                state.processes[process] = Process::Idle;
            });
        }
    }

    /// `retry.sql`. It leaves `untold_at` as it is.
    fn retries(&mut self) {
        if self.state.is_dead && self.state.left.changes > 0 {
            self.may(Actor::Operator, "retries it (`retry.sql`)", |state| {
                state.left.changes -= 1;
                state.takes += 1;
                state.is_dead = false;
            });
        }
    }

    /// The time for the report is over: the process that took the report is gone or frozen.
    fn time_is_over(&mut self) {
        if self.state.untold != Turn::Taken || !self.model.0.has(Guard::TellingEnds) {
            return;
        }
        let is_its = |process: &mut Process| {
            let call = process.call();
            call.is_some_and(|call| call.number == Some(self.state.takes))
        };
        let is_told = self.state.processes.clone().iter_mut().any(is_its);
        if is_told && self.state.left.freezes == 0 {
            return;
        }
        let what = "the time of the process that tells it is over";
        self.put(Actor::Postgres, what, !is_told, |state| {
            if is_told {
                state.left.freezes -= 1;
                state.harmed = true;
            }
            state.untold = Turn::Over;
        });
    }
}
