//! What Postgres, the processes and the attempts know at one moment.
//!
//! A *take* reserves the kept row for one attempt. Each take increases the row's *take number*, so that an outdated
//! attempt cannot change the row.

use crate::configuration::Configuration;
use crate::properties::Property;

/// The most attempts that are under way at once.
pub const SLOTS: usize = 3;

/// Take numbers count up to this number, and then start at 0 again. The number of an attempt that is this far behind
/// becomes `Take::Past`, so it never matches again.
pub const TAKES: u8 = 4;

/// One state of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The row of `deliveries`.
    pub claim: Claim,
    /// The row of `kept_deliveries`.
    pub row: Option<Row>,
    /// The row of `discarded`.
    pub set_aside: bool,
    /// `pruned`: retention has deleted what was known of deliveries as old as this one.
    pub pruned: bool,
    /// `kept_endpoints.paused_at`.
    pub paused: bool,
    /// The clock of Postgres. The processes have their own clocks.
    pub clock: Clock,
    /// The processes that serve the endpoint.
    pub processes: [Process; 2],
    /// The attempts, and the transactions that outlive them.
    pub attempts: [Option<Attempt>; SLOTS],
    /// Retention has selected the row, or the claim, and has not deleted it yet.
    pub retention: Option<Selected>,
    /// Set while an operator's discard of many deliveries is running and has not reached this delivery yet. The value
    /// says whether a request for this delivery has come since the discard started (`last_received_at`).
    pub many: Option<bool>,
    /// Reconciliation has found that the delivery is missing, and has not kept it yet.
    pub missing: bool,
    /// What may still happen.
    pub left: Budget,
    /// How many transactions with the handler's effect have been committed.
    pub effects: u8,
    /// How many such transactions may be committed: one, one more for each reprocess, and one more for each forget that
    /// a request follows.
    pub allowed: u8,
    /// The sender has got a 2xx.
    pub acknowledged: bool,
    /// The delivery has ended without an effect, because a handler or an operator wanted that, or because it was dead
    /// for longer than the retention.
    pub ended: bool,
    /// An operator has forgotten the delivery, and no request came after that.
    pub forgotten: bool,
    /// The property that a step has violated.
    pub broke: Option<Property>,
}

/// The row of `deliveries`, once it is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Claim {
    /// There is no claim.
    None,
    /// The provider may still send the delivery again.
    Young,
    /// The claim is older than the redelivery window.
    Old,
}

/// The row of `kept_deliveries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// `state`.
    pub is: Is,
    /// `takes`.
    pub takes: u8,
    /// `retries`.
    pub retries: u8,
    /// `reprocessed`.
    pub reprocessed: bool,
    /// `taken_by`.
    pub taken_by: TakenBy,
    /// The attempt that has taken the row last. `None` if the row was freed since. This is not a column of the table.
    pub owner: Option<u8>,
}

/// `kept_deliveries.state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "they are those of the table")]
pub enum Is {
    Recorded,
    Due,
    Dead,
    Processed,
}

/// `kept_deliveries.taken_by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TakenBy {
    /// `null`.
    Nobody,
    /// The number of this process.
    Process(u8),
    /// A number that its process has given up.
    GivenUp,
}

/// The clock of Postgres.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// It agrees with the clocks of the processes.
    Right,
    /// It was set forward. By this clock, each heartbeat of a process was long ago.
    Ahead,
    /// It was set back. By this clock, the last heartbeat of a process lies in the future.
    Behind,
}

/// A process with the layer and `Recovery`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Whether it is running. It may have been killed.
    pub lives: bool,
    /// Whether it has sent no heartbeat for a while.
    pub silent: bool,
    /// Its number is in `processes`.
    pub registered: bool,
    /// Whether its version has a handler for the event type of the delivery. Otherwise it ignores that type.
    pub handles: bool,
}

/// An attempt at the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// The process in which it runs.
    pub process: u8,
    /// Whether a sender waits for the answer.
    pub is_request: bool,
    /// `Take::number`, if the attempt has taken the delivery.
    pub take: Take,
    /// Whether the take counts as a retry of the schedule.
    pub is_retry: bool,
    /// Its next step.
    pub phase: Phase,
    /// The transaction of its claim.
    pub tx: Tx,
    /// Whether that transaction has ended the kept row, and holds the lock of the row.
    pub has_row: bool,
    /// A statement of the handler has failed in the transaction.
    pub aborted: bool,
    /// Its process was silent at some time since the attempt took the delivery.
    pub was_silent: bool,
    /// An operator has discarded the delivery since the attempt took or claimed it.
    pub discarded: bool,
    /// The handler is told that the delivery is reprocessed (`Delivery::is_reprocessed`).
    pub told_reprocessed: bool,
}

/// `Take::number`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Take {
    /// The attempt has taken nothing.
    None,
    /// The number.
    Number(u8),
    /// A number that no row has any more.
    Past,
}

/// The transaction of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tx {
    /// There is no transaction.
    None,
    /// The attempt works in it.
    Open,
    /// The commit was sent, and nobody learns whether it succeeded.
    InDoubt,
    /// The process of the transaction was lost, but Postgres does not know that.
    Abandoned,
}

/// How far an attempt has come. Each phase is named after the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the steps say what they are")]
pub enum Phase {
    Accept,
    WriteAccepted,
    Resend,
    WriteResent,
    ResolveResent,
    /// The process has taken the delivery, and the delivery waits for a slot.
    Ahead,
    LookUp,
    /// The attempt checks whether the process has a handler for the event type.
    FindHandler,
    /// The handler runs, and the delivery is not claimed yet.
    BeforeClaim,
    Claim,
    Handler,
    Commit,
    /// An attempt reaches this phase only if the guard `EndInTheTransaction` is removed.
    EndLater,
    Record(Outcome),
    WriteFailed(Outcome),
    Answer(bool),
    /// The attempt is over, and only its transaction is left.
    Over,
}

/// The result of an attempt, as `Admitted::record` of `src/layer/request/record_result.rs` classifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The delivery was processed before.
    Duplicate,
    /// The delivery is tried again, according to the schedule.
    Failed,
    /// The handler reports that the delivery must not be tried again.
    Dead,
    /// The handler reports that the delivery must not be processed.
    Discarded,
    /// The delivery was not processed and the handler was not called, because somebody else was working on it.
    NotBegun,
    /// Like `NotBegun`: somebody else has taken or ended the delivery since the attempt took it.
    Superseded,
}

/// What retention has selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Selected {
    /// A row whose delivery is processed.
    Resolved,
    /// A claim that is old.
    Claim,
}

/// How often something may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Requests of the provider.
    pub requests: u8,
    /// Handlers that do not succeed.
    pub failures: u8,
    /// Processes that are killed.
    pub crashes: u8,
    /// Processes that send no heartbeat for a while.
    pub silences: u8,
    /// Answers of Postgres that are lost, and results that cannot be written.
    pub losses: u8,
    /// Actions of operators.
    pub actions: u8,
    /// Reconciliation rounds that find the event in the list.
    pub lists: u8,
    /// Processes that are restarted with the other version of the application.
    pub deploys: u8,
    /// Jumps of the clock of Postgres.
    pub clock_steps: u8,
}

impl State {
    /// The state before the first request.
    pub fn first(configuration: &Configuration) -> Self {
        Self {
            claim: Claim::None,
            row: None,
            set_aside: false,
            pruned: false,
            paused: false,
            clock: Clock::Right,
            processes: [true, !configuration.versions].map(|handles| Process {
                lives: true,
                silent: false,
                registered: true,
                handles,
            }),
            attempts: [None; SLOTS],
            retention: None,
            many: None,
            missing: false,
            left: configuration.budget,
            effects: 0,
            allowed: 1,
            acknowledged: false,
            ended: false,
            forgotten: false,
            broke: None,
        }
    }

    /// The attempt that holds the lock of the claim.
    pub fn holds_claim(&self) -> Option<usize> {
        self.attempts
            .iter()
            .position(|each| each.is_some_and(|attempt| attempt.tx != Tx::None))
    }

    /// Whether a transaction has changed the row and has not ended.
    pub fn is_row_locked(&self) -> bool {
        let mut attempts = self.attempts.iter().flatten();
        attempts.any(|attempt| attempt.tx != Tx::None && attempt.has_row)
    }

    /// Whether no living process has taken the row.
    pub fn is_free(&self, row: &Row) -> bool {
        match row.taken_by {
            TakenBy::Nobody | TakenBy::GivenUp => true,
            TakenBy::Process(number) => !self.processes[usize::from(number)].registered,
        }
    }

    /// Whether a request of the provider is under way.
    pub fn has_request(&self) -> bool {
        let mut attempts = self.attempts.iter().flatten();
        attempts.any(|attempt| attempt.is_request && attempt.phase != Phase::Over)
    }

    /// A request for the delivery came, and is written down (`last_received_at`, `sent_again`).
    pub fn came(&mut self) {
        self.many = self.many.map(|_| true);
    }

    /// Whether an attempt is due.
    pub fn is_due(&self) -> bool {
        self.row.is_some_and(|row| row.is == Is::Due)
    }

    /// Records the first property that a step violates.
    pub fn breaks(&mut self, property: Property) {
        self.broke.get_or_insert(property);
    }

    /// The row no longer belongs to the previous attempt, which is overtaken.
    pub fn overtake(&mut self) {
        let Some(row) = &mut self.row else { return };
        let Some(owner) = row.owner.take() else {
            return;
        };
        let owner = self.attempts[usize::from(owner)];
        if owner.is_some_and(|attempt| !attempt.was_silent && attempt.phase != Phase::Over) {
            self.breaks(Property::TheLivingAreNotOvertaken);
        }
    }

    /// `takes + 1`.
    pub fn count_take(&mut self) {
        let Some(row) = &mut self.row else { return };
        row.takes = (row.takes + 1) % TAKES;
        let number = Take::Number(row.takes);
        for attempt in self.attempts.iter_mut().flatten() {
            if attempt.take == number {
                attempt.take = Take::Past;
            }
        }
    }

    /// The attempt in a slot is over. A transaction in doubt stays.
    pub fn end(&mut self, slot: usize) {
        let Some(attempt) = &mut self.attempts[slot] else {
            return;
        };
        if matches!(attempt.tx, Tx::InDoubt | Tx::Abandoned) {
            attempt.phase = Phase::Over;
            return;
        }
        self.attempts[slot] = None;
        if let Some(row) = &mut self.row
            && row.owner == Some(slot as u8)
        {
            row.owner = None;
        }
    }
}
