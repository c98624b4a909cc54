//! A *turn* is the permission to do a task that one process does for all processes, such as a *round*, which reads a
//! provider's list once from start to end. The model has two processes and one round. The position in the list is
//! stored in a row next to the turn.

use crate::checker::Model;
use crate::guards::{Guard, Guards};
use crate::properties::Property;
use crate::steps::{Actor, Step, Steps};

const PROCESSES: usize = 2;

/// A check of the turns: how often each thing may go wrong.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    /// How many processes may be killed. At most one, so that the other one survives.
    pub crashes: u8,
    /// How often a process may be frozen in its round.
    pub silences: u8,
    /// How often the answer to a commit may be lost.
    pub losses: u8,
    /// How often the clock of Postgres may be set back.
    pub clock_steps: u8,
    /// Whether somebody requests a round before it is due.
    pub on_request: bool,
    /// The guards that are in place.
    pub guards: Guards,
}

/// One state of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    turn: Turn,
    processes: [Process; PROCESSES],
    /// The round is complete.
    is_done: bool,
    crashes_left: u8,
    silences_left: u8,
    losses_left: u8,
    clock_steps_left: u8,
    broke: Option<Property>,
}

/// The row of `turns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Turn {
    process: Option<usize>,
    next: Next,
}

/// When the next turn may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
    Now,
    /// After the longest time of a turn, or after the interval between two turns.
    Later,
    /// After the clock was set back by days.
    MuchLater,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Process {
    Rests,
    /// It has started the round, and does not know of another process that has the turn.
    InRound(Heard),
    Killed,
}

/// Whether a process was running all the time since it has taken or extended its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Heard {
    InTime,
    /// It is frozen.
    Not,
    /// It was frozen, and another process may have the turn.
    Late,
}

impl Turns {
    /// The library as it is, if nothing goes wrong.
    pub const fn new() -> Self {
        Self {
            crashes: 0,
            silences: 0,
            losses: 0,
            clock_steps: 0,
            on_request: false,
            guards: Guards::ALL,
        }
    }

    /// Without a guard.
    pub fn without(mut self, guard: Guard) -> Self {
        self.guards = self.guards.without(guard);
        self
    }
}

impl Default for Turns {
    fn default() -> Self {
        Self::new()
    }
}

impl Model for Turns {
    type State = State;

    fn first(&self) -> State {
        State {
            turn: Turn {
                process: None,
                next: Next::Now,
            },
            processes: [Process::Rests; PROCESSES],
            is_done: false,
            crashes_left: self.crashes,
            silences_left: self.silences,
            losses_left: self.losses,
            clock_steps_left: self.clock_steps,
            broke: None,
        }
    }

    fn steps(&self, state: &State, into: &mut dyn FnMut(Step, State)) {
        let mut from = Steps {
            model: self,
            state,
            into,
        };
        for (number, process) in state.processes.iter().enumerate() {
            match process {
                Process::Rests if !state.is_done => from.takes(number),
                Process::InRound(Heard::Not) => {
                    let actor = Actor::Process(number as u8);
                    from.step(actor, "goes on", |state| {
                        state.processes[number] = Process::InRound(Heard::Late);
                    });
                }
                Process::InRound(_) => from.works(number),
                Process::Rests | Process::Killed => {}
            }
            from.is_killed(number);
        }
        from.time();
    }

    fn broken(&self, state: &State) -> Option<Property> {
        state.broke
    }

    /// Whether the round is still to be completed.
    fn is_due(&self, state: &State) -> bool {
        !state.is_done
    }
}

impl Steps<'_, Turns> {
    fn has(&self, guard: Guard) -> bool {
        self.model.guards.has(guard)
    }

    /// `take_turn.sql`, in one transaction with the start of the round.
    fn takes(&mut self, number: usize) {
        let turn = self.state.turn;
        let is_own = turn.process == Some(number);
        let is_due = match turn.next {
            Next::Now => turn.process.is_none() || self.has(Guard::TurnEnds),
            Next::Later => false,
            Next::MuchLater => self.has(Guard::LongestTurn),
        };
        let actor = Actor::Process(number as u8);
        if is_own || is_due || !self.has(Guard::TurnOfOne) {
            self.step(actor, "takes the turn, and begins", |state| {
                state.take(number);
                state.processes[number] = Process::InRound(Heard::InTime);
            });
            if self.state.losses_left > 0 {
                self.may(actor, "takes the turn, and is not told", |state| {
                    state.losses_left -= 1;
                    state.take(number);
                });
            }
        }
        let is_of_nobody = turn.process.is_none();
        if self.model.on_request && (is_of_nobody || !self.has(Guard::RequestWaits)) {
            self.may(actor, "takes the turn early, on request", |state| {
                state.take(number);
                state.processes[number] = Process::InRound(Heard::InTime);
            });
        }
    }

    fn works(&mut self, number: usize) {
        let actor = Actor::Process(number as u8);
        let is_own = self.state.turn.process == Some(number);
        let writes = is_own || !self.has(Guard::FenceOfTurn);
        self.may(
            actor,
            "extends the turn, and notes how far it is",
            |state| {
                state.write(number, writes);
            },
        );
        self.step(actor, "ends the turn, and completes the round", |state| {
            state.complete(number, writes);
        });
        if self.state.losses_left > 0 {
            self.may(actor, "completes the round, and is not told", |state| {
                state.losses_left -= 1;
                state.complete(number, writes);
            });
            self.may(actor, "cannot complete the round", |state| {
                state.losses_left -= 1;
                state.processes[number] = Process::Rests;
            });
        }
        // The process is asked to stop.
        self.may(actor, "gives up the turn", |state| {
            if is_own {
                state.turn = Turn {
                    process: None,
                    next: Next::Now,
                };
            }
            state.processes[number] = Process::Rests;
        });
        if self.state.silences_left > 0 {
            self.may(actor, "is frozen", |state| {
                state.silences_left -= 1;
                state.processes[number] = Process::InRound(Heard::Not);
            });
        }
    }

    fn is_killed(&mut self, number: usize) {
        if self.state.crashes_left > 0 && self.state.processes[number] != Process::Killed {
            self.may(Actor::Process(number as u8), "is killed", |state| {
                state.crashes_left -= 1;
                state.processes[number] = Process::Killed;
            });
        }
    }

    /// A process in its round extends its turn, so that the turn does not run out.
    fn time(&mut self) {
        let turn = self.state.turn;
        let is_extended = turn.process.is_some_and(|process| {
            self.state.processes[process] == Process::InRound(Heard::InTime)
        });
        if turn.next == Next::Later && !(is_extended && self.has(Guard::TurnIsExtended)) {
            self.step(Actor::Postgres, "the next turn is due", |state| {
                state.turn.next = Next::Now;
            });
        }
        if turn.next == Next::Later && self.state.clock_steps_left > 0 {
            self.may(Actor::Postgres, "its clock is set back", |state| {
                state.clock_steps_left -= 1;
                state.turn.next = Next::MuchLater;
            });
        }
    }
}

impl State {
    /// The process has the turn from now on.
    fn take(&mut self, number: usize) {
        if let Some(other) = self.turn.process
            && other != number
            && self.processes[other] == Process::InRound(Heard::InTime)
            && self.turn.next != Next::MuchLater
        {
            self.broke = Some(Property::TheLivingAreNotOvertaken);
        }
        self.turn = Turn {
            process: Some(number),
            next: Next::Later,
        };
    }

    /// The process writes the position, or learns that it has lost the turn.
    fn write(&mut self, number: usize, writes: bool) {
        if !writes {
            self.processes[number] = Process::Rests;
        } else if self.turn.process != Some(number) {
            self.broke = Some(Property::TheOvertakenWriteNothing);
        } else {
            self.turn.next = Next::Later;
            self.processes[number] = Process::InRound(Heard::InTime);
        }
    }

    fn complete(&mut self, number: usize, writes: bool) {
        self.write(number, writes);
        self.processes[number] = Process::Rests;
        if writes {
            self.is_done = true;
            self.turn.process = None;
        }
    }
}
