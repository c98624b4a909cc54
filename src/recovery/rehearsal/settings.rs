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
    /// The newest thousand deliveries of each endpoint, whether they are archived or not processed yet.
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

    /// Only deliveries that match this filter. A filter includes the archive only with [`KeptState::Processed`]. If you
    /// call this several times, deliveries that match any of the filters are rehearsed.
    pub fn only(mut self, filter: Filter) -> Self {
        self.filters.push(filter);
        self
    }

    /// Only these endpoints. Default: each endpoint that has kept deliveries, or whose layer holds the handle.
    ///
    /// A named endpoint without a layer is [refused](crate::recovery::RehearsalReport::refused). Endpoints that you
    /// create later must be added here. If you want to list the endpoints to leave out, use
    /// [`expect_refused`](Self::expect_refused).
    pub fn endpoints<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let names = names.into_iter().map(Into::into);
        self.endpoints.get_or_insert_default().extend(names);
        self
    }

    /// Endpoints that you leave out on purpose, because their layer is not
    /// [`rehearsable`](crate::IdempotentWebhook::rehearsable), or another application serves them. If they are refused,
    /// the report still [passes](crate::recovery::RehearsalReport::passed).
    pub fn expect_refused<N: Into<String>>(
        mut self,
        endpoints: impl IntoIterator<Item = N>,
    ) -> Self {
        self.refused.extend(endpoints.into_iter().map(Into::into));
        self
    }

    /// Event types of an endpoint for which the new version intentionally has no handler. If they are ignored, the
    /// report still [passes](crate::recovery::RehearsalReport::passed).
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

    /// How many deliveries of each endpoint are rehearsed, newest first by the time of their first request.
    /// Default: 1000.
    ///
    /// To choose these deliveries, one statement reads all rows that the filters match, without the bodies.
    pub fn limit(mut self, deliveries: usize) -> Self {
        self.limit = deliveries;
        self
    }

    /// How many deliveries run at the same time: at least 1, and at most half of the pool's connections. Default: a
    /// quarter of the connections.
    pub fn concurrency(mut self, deliveries: usize) -> Self {
        self.concurrency = Some(deliveries);
        self
    }

    /// The named endpoints, if any were named.
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
