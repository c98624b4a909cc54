//! What must hold.

use crate::state::{Is, State};

/// A property of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Property {
    /// G3: at most one transaction with an effect commits for a delivery id. One more for each reprocess. One more for
    /// a forget, if a request was under way then or comes after it.
    OneEffect,
    /// G5, R14, R15: a 2xx leaves only after the effect is committed, or while the delivery is kept, or after it has
    /// ended as a handler or an operator wanted.
    AcknowledgedIsSafe,
    /// R1, R5: what is kept goes only with its effect, or as a handler, an operator or retention of what is dead wants.
    KeptIsNotLost,
    /// What is kept ends as processed only with the effect of its handler: not since a process has no handler for its
    /// type.
    ProcessedByItsHandler,
    /// R14: `kept` is answered only while the delivery is kept, or after it was discarded.
    KeptIsTrue,
    /// K3: what the handler is told is what the claim has found: whether an operator has it processed again.
    TheToldIsTrue,
    /// What an attempt writes to a row has no effect once somebody has taken or changed the row.
    TheOvertakenWriteNothing,
    /// R6: nobody overtakes an attempt whose process was heard of all the time.
    TheLivingAreNotOvertaken,
    /// R13: after a discard that has found something, no attempt commits that had taken or claimed it before.
    DiscardedDoesNotCommit,
    /// N2: what was discarded or forgotten is not taken for missing.
    SetAsideIsNotMissing,
    /// R10: no attempt of recovery begins while the endpoint is paused. One whose delivery was taken before may: within a
    /// quarter of a second.
    PausedDoesNotBegin,
    /// Q4: if nothing goes wrong, a hook is told the same once.
    ToldOnce,
    /// Growth 3: the pool has no more connections than places, with those for which Postgres works on.
    BackendsAreBounded,
    /// Growth 3: what is committed is not visible before it is replicated, where the commit waits for that.
    VisibleIsReplicated,
    /// What is due has a next step, if nothing more goes wrong. So has what is to be told (Q4, R12): the last word of the hook
    /// becomes the true one. So has a connection that was given up (G10): its place comes back.
    Stuck,
    /// What is due ends, if nothing more goes wrong: it does not run in a circle. So does what is to be told.
    Livelock,
}

impl State {
    /// The property that does not hold here, of those of a single state.
    pub fn broken(&self) -> Option<Property> {
        let is_kept = self.row.is_some_and(|row| row.is != Is::Recorded);
        if self.broke.is_some() {
            self.broke
        } else if self.effects > self.allowed {
            Some(Property::OneEffect)
        } else if self.acknowledged && self.effects == 0 && !is_kept && !self.ended {
            Some(Property::AcknowledgedIsSafe)
        } else {
            None
        }
    }
}
