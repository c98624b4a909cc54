//! The properties that must hold. Their letters and numbers refer to the guarantees in the documentation.

use crate::state::{Is, State};

/// A property of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Property {
    /// G3: for each delivery id, at most one transaction with an effect commits. Each reprocess allows one more effect.
    /// A forget also allows one more, if a request was under way at that time or comes afterwards.
    OneEffect,
    /// G5, R14, R15: the provider gets a 2xx only after the effect is committed, or while the delivery is kept, or
    /// after a handler or an operator has ended the delivery.
    AcknowledgedIsSafe,
    /// R1, R5: a kept delivery disappears only with its effect, or because a handler or an operator wants that, or
    /// because retention deletes dead deliveries.
    KeptIsNotLost,
    /// A kept delivery ends as processed only with the effect of its handler. It does not end because a process has no
    /// handler for its event type.
    ProcessedByItsHandler,
    /// R14: `kept` is answered only while the delivery is kept, or after it was discarded.
    KeptIsTrue,
    /// K3: the handler learns whether an operator has ordered the delivery to be reprocessed, and this value is the one
    /// that the claim has found.
    TheToldIsTrue,
    /// An attempt can no longer write to a row once somebody else has taken or changed the row.
    TheOvertakenWriteNothing,
    /// R6: no other attempt overtakes an attempt whose process has sent its heartbeat all the time.
    TheLivingAreNotOvertaken,
    /// R13: once a discard has found the delivery, an attempt that took or claimed the delivery before the discard does
    /// not commit.
    DiscardedDoesNotCommit,
    /// N2: a discarded or forgotten delivery does not count as missing.
    SetAsideIsNotMissing,
    /// R10: no recovery attempt starts while the endpoint is paused. An attempt whose delivery was taken before the
    /// pause may still start, within a quarter of a second.
    PausedDoesNotBegin,
    /// Q4: if nothing goes wrong, a hook is called once for the same report.
    ToldOnce,
    /// Growth 3: the pool never has more connections than places, including connections whose backend is still working.
    BackendsAreBounded,
    /// Growth 3: if the commit waits for replication, nothing is visible before it is replicated.
    VisibleIsReplicated,
    /// If nothing else goes wrong, everything that is due has a next step. The same holds for reports (Q4, R12): the
    /// last call of the hook reports the true state. A connection that was given up also has a next step (G10), until
    /// its permit of the pool is freed.
    Stuck,
    /// If nothing else goes wrong, everything that is due finishes, and does not run in a cycle. The same holds for
    /// reports.
    Livelock,
}

impl State {
    /// The property that this state alone violates, if any.
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
