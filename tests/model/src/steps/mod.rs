//! The steps of the model. Each step is a statement of the library, or an event such as a crash.

mod attempt;
mod operator;
mod process;
mod upkeep;

use std::fmt;

use crate::checker::Model;
use crate::configuration::Configuration;
use crate::state::{Is, State, TakenBy};

/// A step from one state to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Who takes the step.
    pub actor: Actor,
    /// What the actor does.
    pub what: &'static str,
    /// Whether the step also happens if nothing else goes wrong.
    pub is_progress: bool,
}

/// Who or what takes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Actor {
    Attempt(u8),
    Process(u8),
    Postgres,
    Provider,
    Operator,
    Retention,
    Reconciliation,
}

impl Actor {
    /// The actors that act even if nothing else goes wrong.
    pub const ALL: [Self; 7] = [
        Self::Attempt(0),
        Self::Attempt(1),
        Self::Attempt(2),
        Self::Process(0),
        Self::Process(1),
        Self::Postgres,
        Self::Operator,
    ];
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.actor {
            Actor::Attempt(slot) => write!(f, "attempt {}: ", char::from(b'A' + slot))?,
            Actor::Process(number) => write!(f, "process {}: ", number + 1)?,
            actor => write!(f, "{actor:?}: ")?,
        }
        f.write_str(self.what)
    }
}

/// All steps from a state.
pub fn steps(configuration: &Configuration, state: &State, into: &mut dyn FnMut(Step, State)) {
    let mut from = Steps {
        model: configuration,
        state,
        into,
    };
    for slot in 0..configuration.slots {
        from.attempt(slot);
    }
    from.processes();
    from.operator();
    from.upkeep();
}

/// The state of a model from which steps lead, and the collector that the steps are put into.
pub(crate) struct Steps<'a, M: Model> {
    pub(crate) model: &'a M,
    pub(crate) state: &'a M::State,
    pub(crate) into: &'a mut dyn FnMut(Step, M::State),
}

impl<M: Model> Steps<'_, M> {
    /// Adds a step that also happens if nothing else goes wrong.
    pub(crate) fn step(
        &mut self,
        actor: Actor,
        what: &'static str,
        change: impl FnOnce(&mut M::State),
    ) {
        self.put(actor, what, true, change);
    }

    /// Adds a step that may happen, but need not.
    pub(crate) fn may(
        &mut self,
        actor: Actor,
        what: &'static str,
        change: impl FnOnce(&mut M::State),
    ) {
        self.put(actor, what, false, change);
    }

    pub(crate) fn put(
        &mut self,
        actor: Actor,
        what: &'static str,
        is_progress: bool,
        change: impl FnOnce(&mut M::State),
    ) {
        let mut state = *self.state;
        change(&mut state);
        let step = Step {
            actor,
            what,
            is_progress,
        };
        (self.into)(step, state);
    }
}

impl Steps<'_, Configuration> {
    /// A slot for another attempt.
    fn free_slot(&self) -> Option<usize> {
        (0..self.model.slots).find(|slot| self.state.attempts[*slot].is_none())
    }
}

impl State {
    /// The row ends because its delivery is processed: the row is deleted, or its request stays.
    fn end_row(&mut self, archives: bool) {
        self.row = self.row.filter(|row| archives && row.is != Is::Recorded);
        if let Some(row) = &mut self.row {
            row.is = Is::Processed;
            row.taken_by = TakenBy::Nobody;
            row.owner = None;
            row.retries = 0;
        }
    }
}
