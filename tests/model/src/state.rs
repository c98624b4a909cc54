//! What Postgres, the processes and the attempts know at a moment.

use crate::configuration::Configuration;
use crate::properties::Property;

/// The most attempts that are under way at once.
pub const SLOTS: usize = 3;

/// Takes are counted up to this number, and then from 0 again. An attempt that is so far behind never matches again.
pub const TAKES: u8 = 4;

/// A moment.
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
    /// The clock of Postgres, beside those of the processes.
    pub clock: Clock,
    /// The processes that serve the endpoint.
    pub processes: [Process; 2],
    /// The attempts, and the transactions that outlive them.
    pub attempts: [Option<Attempt>; SLOTS],
    /// Retention has selected the row, or the claim, and has not deleted it yet.
    pub retention: Option<Selected>,
    /// An operator discards many, and has not come to this one yet: whether it came again since that began
    /// (`last_received_at`).
    pub many: Option<bool>,
    /// Reconciliation has found that the delivery is missing, and has not kept it yet.
    pub missing: bool,
    /// What may still happen.
    pub left: Budget,
    /// How many transactions with the handler's effect are committed.
    pub effects: u8,
    /// How many may be: one, and one more for each reprocess, and for each forget that a request comes after.
    pub allowed: u8,
    /// The sender has got a 2xx.
    pub acknowledged: bool,
    /// It has ended without an effect, as a handler or an operator wanted, or dead for longer than the retention.
    pub ended: bool,
    /// An operator has forgotten it, and no request came after that.
    pub forgotten: bool,
    /// What a step has broken.
    pub broke: Option<Property>,
}

/// The row of `deliveries`, once it is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Claim {
    /// There is none.
    None,
    /// Its provider may deliver again.
    Young,
    /// It is older than the redelivery window.
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
    /// The attempt that has taken it last, if nobody has freed it since. It is not in the table.
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
    /// It runs as those of the processes.
    Right,
    /// It was set forward. By it, each time of a process was long ago.
    Ahead,
    /// It was set back. By it, the last time of a process is still to come.
    Behind,
}

/// A process with the layer and `Recovery`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// It was not killed.
    pub lives: bool,
    /// It has not been heard of for a while.
    pub silent: bool,
    /// Its number is in `processes`.
    pub registered: bool,
    /// Its version has a handler for the type of the delivery. Otherwise it ignores that type.
    pub handles: bool,
}

/// An attempt at the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// The process in which it runs.
    pub process: u8,
    /// Whether a sender waits for the answer.
    pub is_request: bool,
    /// `Take::number`, if it has one.
    pub take: Take,
    /// Whether the take was one of the schedule.
    pub is_retry: bool,
    /// Where it is.
    pub phase: Phase,
    /// The transaction of its claim.
    pub tx: Tx,
    /// That transaction has ended the row, and holds its lock.
    pub has_row: bool,
    /// A statement of the handler has failed in the transaction.
    pub aborted: bool,
    /// Its process was silent since the take.
    pub was_silent: bool,
    /// An operator has discarded the delivery since the attempt has taken or claimed it.
    pub discarded: bool,
    /// The handler is told that the delivery is reprocessed (`Delivery::is_reprocessed`).
    pub told_reprocessed: bool,
}

/// `Take::number`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Take {
    /// It has taken nothing.
    None,
    /// The number.
    Number(u8),
    /// One that no row has any more.
    Past,
}

/// The transaction of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tx {
    /// There is none.
    None,
    /// The attempt works in it.
    Open,
    /// Its commit is sent, and nobody hears what becomes of it.
    InDoubt,
    /// Its process was lost, and Postgres does not know.
    Abandoned,
}

/// Where an attempt is: before the step of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the steps say what they are")]
pub enum Phase {
    Accept,
    WriteAccepted,
    Resend,
    WriteResent,
    ResolveResent,
    /// Its delivery is taken, and it waits for a slot.
    Ahead,
    LookUp,
    /// It is decided whether the process has a handler for the type.
    FindHandler,
    /// The handler runs, and the delivery is not claimed yet.
    BeforeClaim,
    Claim,
    Handler,
    Commit,
    /// Without the guard `EndInTheTransaction`.
    EndLater,
    Record(Outcome),
    WriteFailed(Outcome),
    Answer(bool),
    /// Only its transaction is left.
    Over,
}

/// What `Admitted::record` of `src/layer/request/record_result.rs` makes of the end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was processed before.
    Duplicate,
    /// It is tried again, as the schedule says.
    Failed,
    /// The handler says that it is not to be tried again.
    Dead,
    /// The handler says that it is not to be processed.
    Discarded,
    /// It was not processed, and the handler was not called: somebody else was working on it.
    NotBegun,
    /// The same: somebody else has taken or ended it since.
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
    /// Processes that are not heard of for a while.
    pub silences: u8,
    /// Answers of Postgres that are lost, and results that cannot be written.
    pub losses: u8,
    /// Actions of operators.
    pub actions: u8,
    /// Rounds of reconciliation that find the event in the list.
    pub lists: u8,
    /// Processes that are started anew with the other version of the application.
    pub deploys: u8,
    /// Steps of the clock of Postgres.
    pub clock_steps: u8,
}

impl State {
    /// Nothing has come yet.
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

    /// Whether no process that lives has taken the row.
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

    /// A request of it came, and is written down (`last_received_at`, `sent_again`).
    pub fn came(&mut self) {
        self.many = self.many.map(|_| true);
    }

    /// Whether something is to be run.
    pub fn is_due(&self) -> bool {
        self.row.is_some_and(|row| row.is == Is::Due)
    }

    /// Notes the first thing that a step breaks.
    pub fn breaks(&mut self, property: Property) {
        self.broke.get_or_insert(property);
    }

    /// Another attempt has the row from now on: the one that had it is overtaken.
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

    /// The attempt in a slot is over. A transaction in doubt is not.
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
