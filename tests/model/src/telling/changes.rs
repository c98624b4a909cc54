//! A problem of an endpoint: when it starts, and when it is over. To *tell* is to report a change to a hook. A process
//! takes a change, calls its hook, and writes down that the hook was called. Each of these is one step. A freeze
//! between two steps is a long time in which only other actors take steps.

use super::{Budget, Call, Process, Telling, Turn};
use crate::checker::Model;
use crate::guards::Guard;
use crate::properties::Property;
use crate::steps::{Actor, Step, Steps};

/// A check of the reports of a problem.
#[derive(Clone, Copy, Debug)]
pub struct Changes(pub Telling);

/// One state of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// `endpoint_problems` finds the problem.
    fails: bool,
    /// A process serves the endpoint, or served it in the last ten minutes.
    served: bool,
    /// The row of `problems`.
    row: Option<Row>,
    processes: [Process; 2],
    /// Whether the problem is there, according to the last call of a hook.
    last_word: bool,
    /// Something has gone wrong, so a hook may be called twice for the same report.
    harmed: bool,
    left: Budget,
    broke: Option<Property>,
}

/// The row of `problems`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Row {
    is_there: bool,
    is_told: bool,
    telling: Turn,
    tellings: u8,
}

impl State {
    /// Whether the problem counts. A problem of a removed endpoint does not count.
    fn truth(&self) -> bool {
        self.fails && self.served
    }
}

impl Model for Changes {
    type State = State;

    fn first(&self) -> State {
        State {
            fails: false,
            served: true,
            row: None,
            processes: [Process::Idle; 2],
            last_word: false,
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
        from.world();
        for process in 0..2 {
            from.looks(process);
            from.takes(process);
            from.tells(process);
            from.dies(process);
        }
        from.time_is_over();
    }

    fn broken(&self, state: &State) -> Option<Property> {
        state.broke
    }

    fn is_due(&self, state: &State) -> bool {
        state.last_word != state.truth()
    }
}

impl Steps<'_, Changes> {
    /// Deliveries fail, or stop failing. The endpoint is removed, or comes back.
    fn world(&mut self) {
        if self.state.left.changes > 0 {
            let what = match self.state.fails {
                false => "a delivery fails",
                true => "nothing fails any more",
            };
            self.may(Actor::Provider, what, |state| {
                state.left.changes -= 1;
                state.fails ^= true;
            });
        }
        if self.state.left.deploys > 0 {
            let what = match self.state.served {
                true => "removes the endpoint",
                false => "deploys the endpoint again",
            };
            self.may(Actor::Operator, what, |state| {
                state.left.deploys -= 1;
                state.served ^= true;
            });
        }
    }

    /// `problems.sql`.
    fn looks(&mut self, process: usize) {
        let has = |guard| self.model.0.has(guard);
        let there = self.state.fails && (self.state.served || !has(Guard::RemovedIsOver));
        let was_there = self.state.row.is_some_and(|row| row.is_there);
        let (writes, new_tellings) = (has(Guard::ToTellIsWritten), has(Guard::NewTellings));
        let in_doubt = has(Guard::DoubtIsToldAgain);
        let actor = Actor::Process(process as u8);
        let notes = |state: &mut State| {
            if there && state.row.is_none() {
                state.insert(new_tellings);
            }
            let Some(row) = &mut state.row else { return };
            row.is_there = there;
            let may_be_told = match in_doubt {
                true => row.telling != Turn::None,
                false => row.telling == Turn::Taken,
            };
            if !there && !was_there && !row.is_told && !may_be_told {
                state.row = None;
            }
        };
        if writes || there == was_there {
            return self.step(actor, "looks (`problems.sql`)", notes);
        }
        // Without the guard `ToTellIsWritten`, the process keeps what it found only in its memory.
        if self.state.processes[process] == Process::Idle {
            self.step(actor, "looks, and notes that it is told", |state| {
                notes(state);
                if let Some(row) = &mut state.row {
                    row.is_told = there;
                    state.processes[process] = Process::Taken(Call {
                        number: Some(row.tellings),
                        is_there: there,
                        is_late: false,
                    });
                }
            });
        }
    }

    /// `tell_change.sql`.
    fn takes(&mut self, process: usize) {
        let (Process::Idle, Some(row)) = (self.state.processes[process], self.state.row) else {
            return;
        };
        let has = |guard| self.model.0.has(guard);
        let is_in_doubt = row.telling == Turn::Over && has(Guard::DoubtIsToldAgain);
        if !self.model.0.takes(process)
            || row.is_there == row.is_told && !is_in_doubt
            || row.telling == Turn::Taken && has(Guard::OneTells)
        {
            return;
        }
        let told_after = has(Guard::ToldAfterTheCall);
        let take = |state: &mut State| {
            let row = state.row.as_mut()?;
            row.telling = Turn::Taken;
            row.tellings += 1;
            if !told_after {
                (row.is_told, row.telling) = (row.is_there, Turn::None);
            }
            Some(Call {
                number: Some(row.tellings),
                is_there: row.is_there,
                is_late: false,
            })
        };
        let actor = Actor::Process(process as u8);
        self.step(actor, "takes the change (`tell_change.sql`)", |state| {
            if let Some(call) = take(state) {
                state.processes[process] = Process::Taken(call);
            }
        });
        if self.state.left.losses > 0 {
            self.may(actor, "takes the change, and the answer is lost", |state| {
                state.left.losses -= 1;
                state.harmed = true;
                take(state);
            });
        }
    }

    /// The call of the hook, and `told_change.sql`.
    fn tells(&mut self, process: usize) {
        let actor = Actor::Process(process as u8);
        match self.state.processes[process] {
            Process::Idle => {}
            Process::Taken(call) if call.is_late && self.model.0.has(Guard::NotToldLate) => {
                self.step(actor, "was frozen, and looks again", |state| {
                    state.processes[process] = Process::Idle;
                });
            }
            Process::Taken(call) => {
                let what = match (self.model.0.hooks[process], call.is_there) {
                    (false, _) => "has no hook to call",
                    (true, true) => "tells its hook that it has begun",
                    (true, false) => "tells its hook that it is over",
                };
                let has_hook = self.model.0.hooks[process];
                self.step(actor, what, |state| {
                    state.processes[process] = Process::Called(call);
                    if has_hook {
                        if state.last_word == call.is_there && !state.harmed {
                            state.broke = Some(Property::ToldOnce);
                        }
                        state.last_word = call.is_there;
                    }
                });
            }
            Process::Called(call) => {
                let is_fenced = self.model.0.has(Guard::FenceOfToldChange);
                self.step(
                    actor,
                    "writes that it is told (`told_change.sql`)",
                    |state| {
                        state.processes[process] = Process::Idle;
                        let Some(row) = &mut state.row else { return };
                        if is_fenced && call.number != Some(row.tellings) {
                        } else if row.is_there || call.is_there {
                            (row.is_told, row.telling) = (call.is_there, Turn::None);
                        } else {
                            state.row = None;
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

    /// The time for the report is over: the process that took the report is gone or frozen.
    fn time_is_over(&mut self) {
        let Some(row) = self.state.row else { return };
        if row.telling != Turn::Taken || !self.model.0.has(Guard::TellingEnds) {
            return;
        }
        let is_its = |process: &mut Process| {
            let call = process.call();
            call.is_some_and(|call| call.number == Some(row.tellings))
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
            if let Some(row) = &mut state.row {
                row.telling = Turn::Over;
            }
            for call in state.processes.iter_mut().filter_map(Process::call) {
                call.is_late |= call.number == Some(row.tellings);
            }
        });
    }
}

impl State {
    /// Inserts a new row. With `new_tellings`, its number (`tellings`) differs from the numbers of all calls for an
    /// earlier row.
    fn insert(&mut self, new_tellings: bool) {
        for call in self.processes.iter_mut().filter_map(Process::call) {
            call.number = call.number.filter(|_| !new_tellings);
        }
        self.row = Some(Row {
            is_there: true,
            is_told: false,
            telling: Turn::None,
            tellings: 0,
        });
    }
}
