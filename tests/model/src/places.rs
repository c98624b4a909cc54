//! The places of a pool, and the backends behind them: what goes on in Postgres after a connection was given up.

use crate::checker::Model;
use crate::guards::{Guard, Guards};
use crate::properties::Property;
use crate::steps::{Actor, Step, Steps};

/// The places of the pool.
const PLACES: usize = 2;

/// A check of the places. There is one connection more than there may be.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// How many connections may fall silent: neither side learns of it.
    pub silences: u8,
    /// Which guards there are.
    pub guards: Guards,
}

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    connections: [Option<Connection>; PLACES + 1],
    silences_left: u8,
    broke: Option<Property>,
}

/// A connection of the pool, or a backend that has none any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Connection {
    /// Whether it has a place of the pool.
    has_place: bool,
    /// Its delivery was given up.
    is_given_up: bool,
    /// Nothing gets there, and nothing comes from there.
    is_silent: bool,
    backend: Backend,
}

/// What Postgres does for a connection. It ends a session by itself that is idle in a transaction, after a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Backend {
    /// It waits for a statement.
    Idle,
    /// A statement of the handler runs, or waits for a lock. It never ends by itself.
    Handler,
    /// The commit waits for a standby.
    Commit,
    /// It has ended.
    Gone,
}

impl Backend {
    fn runs(self) -> bool {
        matches!(self, Self::Handler | Self::Commit)
    }
}

impl Places {
    /// The library as it is.
    pub const fn of(silences: u8) -> Self {
        Self {
            silences,
            guards: Guards::ALL,
        }
    }

    /// Without a guard.
    pub fn without(mut self, guard: Guard) -> Self {
        self.guards = self.guards.without(guard);
        self
    }
}

impl Model for Places {
    type State = State;

    fn first(&self) -> State {
        State {
            connections: [None; PLACES + 1],
            silences_left: self.silences,
            broke: None,
        }
    }

    fn steps(&self, state: &State, into: &mut dyn FnMut(Step, State)) {
        let mut from = Steps {
            model: self,
            state,
            into,
        };
        from.opens();
        for (at, connection) in state.connections.iter().enumerate() {
            let Some(connection) = connection else {
                continue;
            };
            from.falls_silent(at, connection);
            match connection.is_given_up {
                true => from.given_up(at, connection),
                false => from.works(at, connection),
            }
        }
    }

    fn broken(&self, state: &State) -> Option<Property> {
        let connections = state.connections.iter().flatten();
        let backends = connections.filter(|one| one.has_place || one.backend.runs());
        match state.broke {
            None if backends.count() > PLACES => Some(Property::BackendsAreBounded),
            broke => broke,
        }
    }

    /// A place that was given up comes back, but for that of a commit: it waits for its standby.
    fn is_due(&self, state: &State) -> bool {
        let mut connections = state.connections.iter().flatten();
        connections.any(|one| one.is_given_up && one.backend != Backend::Commit)
    }
}

impl Steps<'_, Places> {
    fn has(&self, guard: Guard) -> bool {
        self.model.guards.has(guard)
    }

    fn opens(&mut self) {
        let connections = self.state.connections.iter().flatten();
        let in_use = connections.filter(|one| one.has_place).count();
        let slot = self.state.connections.iter().position(Option::is_none);
        if let Some(slot) = slot.filter(|_| in_use < PLACES) {
            self.may(Actor::Provider, "sends a delivery", |state| {
                state.connections[slot] = Some(Connection {
                    has_place: true,
                    is_given_up: false,
                    is_silent: false,
                    backend: Backend::Idle,
                });
            });
        }
    }

    fn falls_silent(&mut self, at: usize, connection: &Connection) {
        if self.state.silences_left > 0 && !connection.is_silent {
            self.may(Actor::Postgres, "falls silent", |state| {
                state.silences_left -= 1;
                of(state, at).is_silent = true;
            });
        }
    }

    fn works(&mut self, at: usize, connection: &Connection) {
        let actor = Actor::Attempt(at as u8);
        if connection.backend == Backend::Idle && !connection.is_silent {
            self.may(actor, "runs a statement of its handler", |state| {
                of(state, at).backend = Backend::Handler;
            });
            self.may(actor, "commits", |state| {
                of(state, at).backend = Backend::Commit;
            });
            self.step(actor, "is answered", |state| state.connections[at] = None);
            return;
        }
        let keeps_place = self.has(Guard::PlaceIsKept);
        self.step(actor, "is given up", |state| {
            let connection = of(state, at);
            connection.is_given_up = true;
            connection.has_place = keeps_place;
        });
    }

    /// `given_up.rs`.
    fn given_up(&mut self, at: usize, connection: &Connection) {
        let actor = Actor::Attempt(at as u8);
        let frees = |state: &mut State| state.connections[at] = None;
        match connection.backend {
            Backend::Handler if self.has(Guard::HandlerIsCancelled) => {
                self.step(actor, "has the statement cancelled", |state| {
                    of(state, at).backend = Backend::Idle;
                });
            }
            Backend::Handler => {}
            Backend::Commit => {
                self.may(Actor::Postgres, "hears of the standby", |state| {
                    of(state, at).backend = Backend::Idle;
                });
                if !self.has(Guard::CommitIsNotCancelled) {
                    self.step(actor, "has the commit cancelled", |state| {
                        of(state, at).backend = Backend::Idle;
                        state.broke = Some(Property::VisibleIsReplicated);
                    });
                }
            }
            Backend::Idle if !connection.is_silent => {
                self.step(actor, "reads the answer, and closes the connection", frees);
            }
            Backend::Idle => {
                self.step(
                    Actor::Postgres,
                    "ends an idle session",
                    |state| match connection.has_place {
                        true => of(state, at).backend = Backend::Gone,
                        false => state.connections[at] = None,
                    },
                );
            }
            Backend::Gone => {}
        }
        let runs = connection.backend.runs() && self.has(Guard::RunningIsNotClosed);
        let is_closed = !connection.has_place;
        if connection.is_silent && !is_closed && !runs && self.has(Guard::SilentIsClosed) {
            self.step(
                actor,
                "hears that nothing runs, and closes it",
                |state| match connection.backend {
                    Backend::Gone => state.connections[at] = None,
                    _ => of(state, at).has_place = false,
                },
            );
        }
    }
}

fn of(state: &mut State, at: usize) -> &mut Connection {
    state.connections[at].as_mut().expect("it is there")
}
