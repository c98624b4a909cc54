//! The connections of a pool, and the backends behind them: what still happens in Postgres after the layer has given up
//! a connection. A *place* is a permit for one connection of the pool.

use crate::checker::Model;
use crate::guards::{Guard, Guards};
use crate::properties::Property;
use crate::steps::{Actor, Step, Steps};

/// How many connections the pool may have. Each one uses a place.
const PLACES: usize = 2;

/// A check of the pool. The model has room for one connection more than the pool may have, so that it can find an
/// excess connection.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// How many connections may fall silent: nothing gets through any more, and neither side notices.
    pub silences: u8,
    /// The guards that are in place.
    pub guards: Guards,
}

/// One state of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    connections: [Option<Connection>; PLACES + 1],
    silences_left: u8,
    broke: Option<Property>,
}

/// A connection of the pool, or a backend whose connection is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Connection {
    /// Whether it uses a place of the pool.
    has_place: bool,
    /// Whether the layer has given up its delivery.
    is_given_up: bool,
    /// Whether nothing gets through, in either direction.
    is_silent: bool,
    backend: Backend,
}

/// What Postgres does for a connection. If a session is idle in a transaction for too long, Postgres itself ends the
/// session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Backend {
    /// It waits for a statement.
    Idle,
    /// A statement of the handler runs, or waits for a lock. The statement never ends by itself.
    Handler,
    /// The commit waits for a standby.
    Commit,
    /// The session has ended.
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

    /// A connection that was given up frees its place, except while its commit waits for a standby.
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

    /// What `given_up.rs` does with a connection that the layer has given up.
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
                self.may(Actor::Postgres, "gets the answer of the standby", |state| {
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
                "learns that nothing runs, and closes it",
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
