//! What hooks are told, by two processes: of a problem of an endpoint, and of a dead delivery.

pub mod changes;
pub mod deaths;

pub use changes::Changes;
pub use deaths::Deaths;

use crate::guards::{Guard, Guards};

/// What takes part in a check, and how often each thing may happen.
#[derive(Clone, Copy, Debug)]
pub struct Telling {
    /// Which of the processes have a hook.
    pub hooks: [bool; 2],
    /// What may happen.
    pub budget: Budget,
    /// Which guards there are.
    pub guards: Guards,
}

/// How often something may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Beginnings and ends of a problem, or deaths of a delivery and retries.
    pub changes: u8,
    /// Removals and deploys of an endpoint.
    pub deploys: u8,
    /// Processes that are killed, and started anew.
    pub crashes: u8,
    /// Processes that are frozen for longer than a call may take.
    pub freezes: u8,
    /// Answers of Postgres that are lost, and writes that fail.
    pub losses: u8,
}

impl Telling {
    /// Two changes, and nothing goes wrong.
    pub const fn of(hooks: [bool; 2]) -> Self {
        Self {
            hooks,
            budget: Budget {
                changes: 2,
                deploys: 0,
                crashes: 0,
                freezes: 0,
                losses: 0,
            },
            guards: Guards::ALL,
        }
    }

    /// The same with other numbers.
    pub fn budget(mut self, change: impl FnOnce(&mut Budget)) -> Self {
        change(&mut self.budget);
        self
    }

    /// Without a guard.
    pub fn without(mut self, guard: Guard) -> Self {
        self.guards = self.guards.without(guard);
        self
    }

    fn has(&self, guard: Guard) -> bool {
        self.guards.has(guard)
    }

    /// Whether a process takes what is to be told.
    fn takes(&self, process: usize) -> bool {
        self.hooks[process] || !self.has(Guard::OnlyWithHook)
    }
}

/// All that is checked, with a name each.
pub fn all() -> Vec<(String, Telling)> {
    let mut all = Vec::new();
    for (name, hooks) in [("both tell", [true, true]), ("one tells", [true, false])] {
        let of = Telling::of(hooks);
        let mut add = |what: &str, change: fn(&mut Budget)| {
            all.push((format!("{name}, {what}"), of.budget(change)));
        };
        add("six changes", |left| left.changes = 6);
        add("three deploys", |left| {
            (left.changes, left.deploys) = (3, 3)
        });
        add("three crashes", |left| {
            (left.changes, left.crashes) = (4, 3)
        });
        add("three losses", |left| (left.changes, left.losses) = (4, 3));
        add("three freezes", |left| {
            (left.changes, left.freezes) = (4, 3)
        });
        add("a deploy, a crash, a loss and two freezes", |left| {
            *left = Budget {
                changes: 4,
                deploys: 1,
                crashes: 1,
                freezes: 2,
                losses: 1,
            };
        });
    }
    all
}

/// Where a process is that tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Process {
    /// It has nothing to tell.
    Idle,
    /// It has taken what is to be told.
    Taken(Call),
    /// It has called its hook.
    Called(Call),
}

/// What a process tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// `tellings` or `takes`. `None` if no row has that number any more.
    pub number: Option<u8>,
    /// Whether the problem is there.
    pub is_there: bool,
    /// The process was frozen for longer than a call may take.
    pub is_late: bool,
}

impl Process {
    fn call(&mut self) -> Option<&mut Call> {
        match self {
            Self::Idle => None,
            Self::Taken(call) | Self::Called(call) => Some(call),
        }
    }
}

/// Whether a process is telling what is to be told: `telling_until`, `untold_at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Turn {
    /// `null`.
    None,
    /// A process has it.
    Taken,
    /// Its time is over.
    Over,
}
