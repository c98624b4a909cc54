//! *Telling*: what two processes report to hooks about a problem of an endpoint, and about a dead
//! delivery.

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
    /// The guards that are in place.
    pub guards: Guards,
}

/// How often something may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Starts and ends of a problem, or deaths of a delivery and retries.
    pub changes: u8,
    /// Removals and deploys of an endpoint.
    pub deploys: u8,
    /// Processes that are killed and restarted.
    pub crashes: u8,
    /// Processes that are frozen for longer than a call may take.
    pub freezes: u8,
    /// Answers of Postgres that are lost, and writes that fail.
    pub losses: u8,
}

impl Telling {
    /// Two changes. Nothing goes wrong.
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

    /// This check with another budget.
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

    /// Whether a process takes reports.
    fn takes(&self, process: usize) -> bool {
        self.hooks[process] || !self.has(Guard::OnlyWithHook)
    }
}

/// All checks, each with a name.
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

/// How far a process has come with a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Process {
    /// It has nothing to report.
    Idle,
    /// It has taken what is to be reported.
    Taken(Call),
    /// It has called its hook.
    Called(Call),
}

/// A report of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The value of `tellings` or `takes` when the process took the report. `None` if no row has
    /// that number any more.
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

/// Whether a process is reporting: `telling_until`, `untold_at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Turn {
    /// `null`.
    None,
    /// A process has taken the report.
    Taken,
    /// The time of that process is over.
    Over,
}
