//! What a rehearsal has found.

use std::collections::BTreeMap;

use super::attempt::RehearsalResult;
use crate::delivery::Delivery;

/// What [`Recovery::rehearse`](crate::Recovery::rehearse) has found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RehearsalReport {
    /// Each event type of each endpoint of which something was rehearsed, by name.
    pub types: Vec<RehearsedType>,
    /// The endpoints that were not rehearsed to the end.
    pub refused: Vec<RefusedEndpoint>,
}

/// What was rehearsed of an event type of an endpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RehearsedType {
    /// The endpoint.
    pub endpoint: String,
    /// The event type, if the deliveries have one.
    pub event_type: Option<String>,
    /// How many were processed before, and would be now.
    pub processed_again: usize,
    /// Those that were processed before, and would fail now.
    pub fails_now: Vec<RehearsedDelivery>,
    /// How many were not processed yet, and would be now.
    pub processed_now: usize,
    /// Those that were not processed yet, and would fail now.
    pub fails_again: Vec<RehearsedDelivery>,
    /// Those of which it says nothing: Postgres was away, another attempt was running, or no layer was reached.
    pub not_run: Vec<RehearsedDelivery>,
    /// Those of the ones above that would be processed, and whose handler has done what the layer warns of. One that has
    /// not taken its transaction may have written past it.
    pub suspicious: Vec<RehearsedDelivery>,
}

/// A delivery that was rehearsed, and why it is listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct RehearsedDelivery {
    /// The delivery id.
    pub delivery_id: String,
    /// The tenant, where there is one.
    pub tenant: Option<String>,
    /// Why it is listed. It may quote the request, as the reason of any failure may.
    pub reason: String,
}

/// An endpoint that was not rehearsed to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedEndpoint {
    /// The endpoint.
    pub endpoint: String,
    /// Why not.
    pub reason: String,
}

impl RehearsalReport {
    /// Whether something that was processed before would fail now.
    pub fn has_broken(&self) -> bool {
        self.types.iter().any(|of| !of.fails_now.is_empty())
    }

    /// How many deliveries were run.
    pub fn rehearsed(&self) -> usize {
        self.types.iter().map(RehearsedType::rehearsed).sum()
    }
}

/// What has been found so far, by endpoint and event type.
#[derive(Debug, Default)]
pub(super) struct Findings {
    types: BTreeMap<(String, Option<String>), RehearsedType>,
    refused: Vec<RefusedEndpoint>,
}

impl Findings {
    /// Adds the result of a delivery.
    pub(super) fn add(
        &mut self,
        delivery: &Delivery,
        was_processed: bool,
        result: RehearsalResult,
    ) {
        let endpoint = delivery.endpoint().to_owned();
        let event_type = delivery.event_type().map(str::to_owned);
        let key = (endpoint.clone(), event_type.clone());
        let new = || RehearsedType::new(endpoint, event_type);
        let of_type = self.types.entry(key).or_insert_with(new);
        let because = |reason| RehearsedDelivery {
            delivery_id: delivery.id().to_string(),
            tenant: delivery.tenant().map(str::to_owned),
            reason,
        };
        match result {
            RehearsalResult::Processed { suspicion } => {
                match was_processed {
                    true => of_type.processed_again += 1,
                    false => of_type.processed_now += 1,
                }
                of_type.suspicious.extend(suspicion.map(because));
            }
            RehearsalResult::Failed(reason) => match was_processed {
                true => of_type.fails_now.push(because(reason)),
                false => of_type.fails_again.push(because(reason)),
            },
            RehearsalResult::NotRun(reason) => of_type.not_run.push(because(reason)),
        }
    }

    /// The endpoint is not rehearsed to the end.
    pub(super) fn refuse(&mut self, endpoint: &str, reason: String) {
        self.refused.push(RefusedEndpoint {
            endpoint: endpoint.to_owned(),
            reason,
        });
    }

    pub(super) fn into_report(self) -> RehearsalReport {
        RehearsalReport {
            types: self.types.into_values().collect(),
            refused: self.refused,
        }
    }
}

impl RehearsedType {
    fn new(endpoint: String, event_type: Option<String>) -> Self {
        Self {
            endpoint,
            event_type,
            processed_again: 0,
            fails_now: Vec::new(),
            processed_now: 0,
            fails_again: Vec::new(),
            not_run: Vec::new(),
            suspicious: Vec::new(),
        }
    }

    /// How many deliveries were run.
    pub fn rehearsed(&self) -> usize {
        self.processed_again + self.fails_now.len() + self.processed_now + self.fails_again.len()
    }
}
