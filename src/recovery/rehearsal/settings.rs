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
    endpoints: Option<Vec<String>>,
    refused: Vec<String>,
    ignored: Vec<(String, String)>,
    pub(super) concurrency: Option<usize>,
}

impl Rehearsal {
    /// The newest thousand of each endpoint: of the archive, and of what is not processed yet.
    pub fn new() -> Self {
        Self {
            filters: Vec::new(),
            limit: 1000,
            endpoints: None,
            refused: Vec::new(),
            ignored: Vec::new(),
            concurrency: None,
        }
    }

    /// Only those of this filter, which means the archive only with
    /// [`KeptState::Processed`]. Of several, those of any of them.
    pub fn only(mut self, filter: Filter) -> Self {
        self.filters.push(filter);
        self
    }

    /// Only these endpoints. Default: each endpoint of which something is kept, or whose layer holds the handle.
    ///
    /// An endpoint that is named and has no layer is [refused](crate::recovery::RehearsalReport::refused). One that comes
    /// later has to be added here: [`expect_refused`](Self::expect_refused) leaves endpoints out by name.
    pub fn endpoints<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let names = names.into_iter().map(Into::into);
        self.endpoints.get_or_insert_default().extend(names);
        self
    }

    /// Endpoints that are not rehearsed on purpose: their layer is not [`rehearsable`](crate::IdempotentWebhook::rehearsable),
    /// or another application has them. If they are refused, the report [passes](crate::recovery::RehearsalReport::passed)
    /// nevertheless.
    pub fn expect_refused<N: Into<String>>(
        mut self,
        endpoints: impl IntoIterator<Item = N>,
    ) -> Self {
        self.refused.extend(endpoints.into_iter().map(Into::into));
        self
    }

    /// Event types of an endpoint that the new version has no handler for on purpose. If they are ignored, the report
    /// [passes](crate::recovery::RehearsalReport::passed) nevertheless.
    pub fn expect_ignored<N: Into<String>>(
        mut self,
        endpoint: impl Into<String>,
        event_types: impl IntoIterator<Item = N>,
    ) -> Self {
        let endpoint = endpoint.into();
        let types = event_types.into_iter().map(Into::into);
        self.ignored
            .extend(types.map(|event_type| (endpoint.clone(), event_type)));
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

    /// Those that were named, if any were.
    pub(super) fn named(&self) -> Option<&[String]> {
        self.endpoints.as_deref()
    }

    pub(super) fn is_refusal_expected(&self, endpoint: &str) -> bool {
        self.refused.iter().any(|name| name == endpoint)
    }

    pub(super) fn is_ignored_on_purpose(&self, endpoint: &str, event_type: Option<&str>) -> bool {
        let mut ignored = self.ignored.iter();
        ignored.any(|(of, name)| of == endpoint && Some(name.as_str()) == event_type)
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
