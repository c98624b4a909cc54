//! The configurations that are checked: which features each one uses, and what may go wrong.

use crate::checker::Model;
use crate::guards::{Guard, Guards};
use crate::properties::Property;
use crate::state::{Budget, State};
use crate::steps::{Step, steps};

/// A check: how deliveries are kept, and what may happen.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// Which deliveries are kept.
    pub keep: Keep,
    /// Whether the layer uses `IdempotentWebhook::late_claim`.
    pub claims_late: bool,
    /// Whether the handler claims with the function `idempotent_webhook.claim`, in a transaction of another driver.
    pub other_driver: bool,
    /// Whether the second process starts with another version of the application, which ignores the event type.
    pub versions: bool,
    /// How many attempts may run at once.
    pub slots: usize,
    /// How many recovery attempts the schedule has.
    pub schedule: u8,
    /// Whether the request stays once it is processed (`Keep::processed_for`).
    pub archives: bool,
    /// The operator action that takes part.
    pub action: Option<Action>,
    /// Whether retention takes part.
    pub retention: bool,
    /// How often each fault or event may happen at most.
    pub budget: Budget,
    /// The guards that are in place (`guards.rs`).
    pub guards: Guards,
}

/// Which deliveries are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// `Keep::failed`, with `acknowledge`.
    Failed,
    /// `Keep::all`.
    All,
    /// `Keep::all` with `accept_first`.
    AcceptFirst,
}

/// An action of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the methods of `Endpoint`")]
pub enum Action {
    Retry,
    Discard,
    /// A discard of many deliveries, this one among them.
    DiscardAll,
    Forget,
    Reprocess,
    Erase,
    Pause,
    /// Any of the actions except `DiscardAll`.
    Any,
}

/// All configurations that are checked, each with a name.
pub fn all() -> Vec<(String, Configuration)> {
    let mut all = Vec::new();
    for keep in [Keep::Failed, Keep::All, Keep::AcceptFirst] {
        let of = Configuration::of(keep);
        let mut add = |name: &str, each| all.push((format!("{keep:?}, {name}"), each));
        add("a crash", of.budget(|left| left.crashes = 1));
        add("a silence", of.budget(|left| left.silences = 1));
        add("a loss", of.budget(|left| left.losses = 1));
        add("two failures", of.budget(|left| left.failures = 2));
        add(
            "three attempts",
            of.slots(3).budget(|left| left.crashes = 1),
        );
        add(
            "three requests, a crash and a loss",
            of.budget(|left| (left.requests, left.crashes, left.losses) = (3, 1, 1)),
        );
        add(
            "a late claim, a silence",
            of.claims_late().budget(|left| left.silences = 1),
        );
        add(
            "a late claim, a crash and a loss",
            of.claims_late()
                .budget(|left| (left.crashes, left.losses) = (1, 1)),
        );
        for action in Action::EACH {
            let with = of.archives().operator(action, 1);
            let name = format!("{action:?}");
            add(
                &format!("{name}, a silence"),
                with.budget(|left| left.silences = 1),
            );
        }
        let versions = of.versions();
        add(
            "two versions, deploys, a failure",
            versions.budget(|left| (left.deploys, left.failures) = (2, 1)),
        );
        add(
            "two versions, a deploy, a crash",
            versions.budget(|left| (left.deploys, left.crashes) = (1, 1)),
        );
        add(
            "two versions, a deploy, an operator",
            versions
                .archives()
                .operator(Action::Any, 1)
                .budget(|left| left.deploys = 1),
        );
        let late = of.archives().claims_late();
        add(
            "a late claim, Reprocess",
            late.operator(Action::Reprocess, 1),
        );
        add(
            "another driver, Forget, a silence",
            late.other_driver()
                .operator(Action::Forget, 1)
                .budget(|left| left.silences = 1),
        );
        add(
            "a step of the clock, a crash",
            of.budget(|left| (left.clock_steps, left.crashes) = (1, 1)),
        );
        let with = of.archives().retention().operator(Action::Any, 1);
        add(
            "an operator, retention, a loss",
            with.budget(|left| left.losses = 1),
        );
        add(
            "an operator, retention, reconciliation",
            with.budget(|left| left.lists = 1),
        );
        add(
            "two actions, no archive",
            of.operator(Action::Any, 2).budget(|left| left.crashes = 1),
        );
    }
    all
}

impl Action {
    /// Each action by itself.
    const EACH: [Self; 7] = [
        Self::Retry,
        Self::Discard,
        Self::DiscardAll,
        Self::Forget,
        Self::Reprocess,
        Self::Erase,
        Self::Pause,
    ];
}

impl Configuration {
    /// Two requests and two processes. The only fault is that the handler fails once.
    pub const fn of(keep: Keep) -> Self {
        Self {
            keep,
            claims_late: false,
            other_driver: false,
            versions: false,
            slots: 2,
            schedule: 2,
            archives: false,
            action: None,
            retention: false,
            budget: Budget {
                requests: 2,
                failures: 1,
                crashes: 0,
                silences: 0,
                losses: 0,
                actions: 0,
                lists: 0,
                deploys: 0,
                clock_steps: 0,
            },
            guards: Guards::ALL,
        }
    }

    /// This configuration with another budget.
    pub fn budget(mut self, change: impl FnOnce(&mut Budget)) -> Self {
        change(&mut self.budget);
        self
    }

    /// With this many operator actions.
    pub fn operator(mut self, action: Action, times: u8) -> Self {
        self.action = Some(action);
        self.budget.actions = times;
        self
    }

    /// With retention.
    pub fn retention(mut self) -> Self {
        self.retention = true;
        self
    }

    /// With requests that stay once they are processed (`Keep::processed_for`).
    pub fn archives(mut self) -> Self {
        self.archives = true;
        self
    }

    /// With a late claim: the handler claims after the first part of its work.
    pub fn claims_late(mut self) -> Self {
        self.claims_late = true;
        self
    }

    /// With a late claim that is made by another driver.
    pub fn other_driver(mut self) -> Self {
        self.other_driver = true;
        self.claims_late()
    }

    /// With a process of another version, which ignores the event type.
    pub fn versions(mut self) -> Self {
        self.versions = true;
        self
    }

    /// With this many attempts at once.
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = slots;
        self
    }

    /// Without a guard.
    pub fn without(mut self, guard: Guard) -> Self {
        self.guards = self.guards.without(guard);
        self
    }

    /// Whether a guard is in place.
    pub fn has(&self, guard: Guard) -> bool {
        self.guards.has(guard)
    }
}

impl Model for Configuration {
    type State = State;

    fn first(&self) -> State {
        State::first(self)
    }

    fn steps(&self, state: &State, into: &mut dyn FnMut(Step, State)) {
        steps(self, state, into);
    }

    fn broken(&self, state: &State) -> Option<Property> {
        state.broken()
    }

    fn is_due(&self, state: &State) -> bool {
        state.is_due()
    }
}
