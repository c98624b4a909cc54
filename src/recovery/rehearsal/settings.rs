//! `Rehearsal`: which deliveries are rehearsed.

use crate::recovery::{Filter, KeptState};

/// Which deliveries [`Recovery::rehearse`](crate::Recovery::rehearse) runs.
///
/// ```
/// use idempotent_webhook::recovery::{Filter, KeptState, Rehearsal};
///
/// let archive = Filter::new().state(KeptState::Processed).event_type("invoice.paid");
/// let rehearsal = Rehearsal::new().only(archive).limit(10_000);
/// ```
#[derive(Clone, Debug)]
#[must_use = "`Recovery::rehearse` takes it"]
pub struct Rehearsal {
    filters: Vec<Filter>,
    pub(super) limit: usize,
    pub(super) concurrency: Option<usize>,
}

impl Rehearsal {
    /// The newest thousand of each endpoint: of the archive, and of what is not processed yet.
    pub fn new() -> Self {
        Self {
            filters: Vec::new(),
            limit: 1000,
            concurrency: None,
        }
    }

    /// Only those of this filter, which means the archive only with
    /// [`KeptState::Processed`]. Of several, those of any of them.
    pub fn only(mut self, filter: Filter) -> Self {
        self.filters.push(filter);
        self
    }

    /// How many of each endpoint, the newest first by the time of their first request. Default: 1000.
    ///
    /// All that the filters mean is looked at for it, a thousand rows at a time, without the bodies.
    pub fn limit(mut self, deliveries: usize) -> Self {
        self.limit = deliveries;
        self
    }

    /// How many run at the same time: at least 1, and at most half as many as the pool has connections. Default: a
    /// quarter of them.
    pub fn concurrency(mut self, deliveries: usize) -> Self {
        self.concurrency = Some(deliveries);
        self
    }

    pub(super) fn filters(&self) -> Vec<Filter> {
        if self.filters.is_empty() {
            return vec![Filter::new(), Filter::new().state(KeptState::Processed)];
        }
        self.filters.clone()
    }
}

impl Default for Rehearsal {
    fn default() -> Self {
        Self::new()
    }
}
