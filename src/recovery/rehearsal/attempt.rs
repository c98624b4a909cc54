//! The mark by which `request/rehearse.rs` recognises a rehearsal, and its result. `transaction/commit.rs` rolls it back.

use std::sync::{Arc, OnceLock};

use crate::delivery::Delivery;

/// In the extensions of a request that is rolled back whatever the handler answers. It was verified when it was kept. No
/// request from outside can have it: extensions do not come over the wire, and the type is private.
#[derive(Clone, Debug)]
pub(crate) struct RehearsalAttempt(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    delivery: Delivery,
    result: OnceLock<Result<RehearsalResult, Refused>>,
}

/// The result of a rehearsal, as the layer has it.
#[derive(Clone, Debug)]
pub(crate) enum RehearsalResult {
    /// It would be processed. With a mistake that looks like success, if the layer has seen one.
    Processed { suspicion: Option<String> },
    /// It would fail, for this reason.
    Failed(String),
    /// It says nothing of the handler, for this reason.
    NotRun(String),
}

/// Why no delivery of the endpoint is to be rehearsed.
#[derive(Clone, Debug)]
pub(crate) struct Refused(pub(crate) String);

impl RehearsalAttempt {
    pub(super) fn new(delivery: Delivery) -> Self {
        Self(Arc::new(Inner {
            delivery,
            result: OnceLock::new(),
        }))
    }

    pub(crate) fn delivery(&self) -> &Delivery {
        &self.0.delivery
    }

    /// The layer has reached the end of it.
    pub(crate) fn end(&self, result: Result<RehearsalResult, Refused>) {
        // There is one result.
        let _ = self.0.result.set(result);
    }

    /// `None` if no layer has ended it.
    pub(super) fn result(&self) -> Option<Result<RehearsalResult, Refused>> {
        self.0.result.get().cloned()
    }
}
