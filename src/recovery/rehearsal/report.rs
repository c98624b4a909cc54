//! The report of a rehearsal.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use super::attempt::RehearsalResult;
use super::comparison::add;
use super::settings::Rehearsal;
use crate::provider::delivery::Delivery;
use crate::recovery::masked;
use crate::transaction::{RowsByTable, RowsWritten};

/// The report of [`Recovery::rehearse`](crate::Recovery::rehearse).
///
/// `Display` is for a terminal: a line for each event type, below it the listed deliveries by reason, and at the
/// end whether the rehearsal [passes](Self::passed), and if not, why.
///
/// With `serde`, a report is written as JSON and read back, so that the job of another version can
/// [`compare`](Self::compare) its own report with this one. In the JSON, quoted texts, digits and mail addresses in
/// reasons are masked, because reasons may quote requests. Ids are not masked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RehearsalReport {
    /// Each rehearsed event type of each endpoint, in the order of names.
    pub types: Vec<RehearsedType>,
    /// The endpoints that were not rehearsed, or not to the end.
    pub refused: Vec<RefusedEndpoint>,
    /// The Postgres error that has ended the rehearsal early.
    #[serde(serialize_with = "write_masked_if_any")]
    pub error: Option<String>,
}

/// The rehearsed deliveries of an event type of an endpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RehearsedType {
    /// The endpoint.
    pub endpoint: String,
    /// The event type, if the deliveries have one.
    pub event_type: Option<String>,
    /// How many deliveries were processed before, and would be processed now.
    pub processed_again: usize,
    /// Deliveries that were processed before, and would fail now.
    pub fails_now: Vec<RehearsedDelivery>,
    /// How many deliveries were not processed yet, and would be processed now.
    pub processed_now: usize,
    /// Deliveries that were not processed yet, and would fail now.
    pub fails_again: Vec<RehearsedDelivery>,
    /// Deliveries for whose type the new version has no handler.
    pub ignored_now: Vec<RehearsedDelivery>,
    /// Whether it is [expected](crate::recovery::Rehearsal::expect_ignored) that deliveries of this type are ignored.
    pub is_ignored_on_purpose: bool,
    /// Deliveries that were not run, because Postgres was unreachable, another attempt was running, or no layer was
    /// reached.
    pub not_run: Vec<RehearsedDelivery>,
    /// Deliveries that would be processed, but with a warning from the layer: the handler has not taken its
    /// transaction, so it may have written outside of it.
    pub suspicious: Vec<RehearsedDelivery>,
    /// The writes of the deliveries that would be processed.
    pub effects: Vec<RehearsedEffects>,
    /// How many of the deliveries that were not run have reached no layer.
    unreached: usize,
}

/// The writes of a delivery that would be processed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RehearsedEffects {
    /// The delivery id.
    pub delivery_id: String,
    /// The tenant, if there is one.
    pub tenant: Option<String>,
    /// The rows that its handler has written, by the name of the table with its schema, as Postgres counts them. Rows
    /// that triggers and cascades write count, and so do rows that were rolled back to a savepoint. Rows of a partition
    /// count for its partitioned table. Temporary tables and the tables of this crate do not count. `None` if the rows
    /// are not known, because `track_counts` is off.
    pub written: Option<BTreeMap<String, RowsWritten>>,
}

/// A delivery that was rehearsed, and why it is listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RehearsedDelivery {
    /// The delivery id.
    pub delivery_id: String,
    /// The tenant, if there is one.
    pub tenant: Option<String>,
    /// Why it is listed. It may quote the request, as the reason of any failure may.
    #[serde(serialize_with = "write_masked")]
    pub reason: String,
}

/// An endpoint that was not rehearsed, or not to the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RefusedEndpoint {
    /// The endpoint.
    pub endpoint: String,
    /// Why it was not rehearsed.
    pub reason: String,
    /// Whether the refusal is [expected](crate::recovery::Rehearsal::expect_refused).
    pub is_expected: bool,
}

impl RehearsalReport {
    /// Whether the new version may be deployed, as far as a rehearsal can say:
    ///
    /// - no delivery that was processed before would fail now;
    /// - each endpoint was rehearsed, unless its refusal is [expected](crate::recovery::Rehearsal::expect_refused);
    /// - no type is ignored, unless that is [expected](crate::recovery::Rehearsal::expect_ignored);
    /// - each delivery has reached the layer of its endpoint;
    /// - if deliveries of a type were not run, because Postgres was unreachable or other transactions held their rows,
    ///   other deliveries of the type were run;
    /// - no error has ended the rehearsal.
    ///
    /// If nothing is kept, as before a first deploy, the rehearsal passes. If it has not passed, the last lines of
    /// the report say why.
    pub fn passed(&self) -> bool {
        self.objections().is_empty()
    }

    /// Whether a delivery that was processed before would fail now.
    pub fn has_broken(&self) -> bool {
        self.types.iter().any(|of| !of.fails_now.is_empty())
    }

    /// How many deliveries were run.
    pub fn rehearsed(&self) -> usize {
        self.types.iter().map(RehearsedType::rehearsed).sum()
    }

    /// The reasons against a deploy.
    pub(super) fn objections(&self) -> Vec<String> {
        let mut objections = Vec::new();
        for of in &self.types {
            let mut object = |count: usize, what: &str| {
                if count > 0 {
                    objections.push(format!("{} of {} {what}", count, of.name()));
                }
            };
            object(of.fails_now.len(), "would fail, and were processed before");
            if !of.is_ignored_on_purpose {
                object(
                    of.ignored_now.len(),
                    "would be ignored, which is not expected",
                );
            }
            object(of.unreached, "reached no layer of their endpoint");
            if of.rehearsed() == 0 {
                let not_run = of.not_run.len() - of.unreached;
                object(not_run, "were not run, and no other one was");
            }
        }
        for refused in self.refused.iter().filter(|of| !of.is_expected) {
            objections.push(format!("`{}` was not rehearsed", refused.endpoint));
        }
        if self.error.is_some() {
            objections.push("an error ended it".to_owned());
        }
        objections
    }
}

/// The results so far, by endpoint and event type.
#[derive(Debug)]
pub(super) struct Findings<'a> {
    rehearsal: &'a Rehearsal,
    types: BTreeMap<(String, Option<String>), RehearsedType>,
    refused: Vec<RefusedEndpoint>,
    error: Option<String>,
}

impl<'a> Findings<'a> {
    pub(super) fn new(rehearsal: &'a Rehearsal) -> Self {
        Self {
            rehearsal,
            types: BTreeMap::new(),
            refused: Vec::new(),
            error: None,
        }
    }

    /// Whether no delivery was rehearsed.
    pub(super) fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

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
        let is_ignored_on_purpose = self
            .rehearsal
            .is_ignored_on_purpose(&endpoint, event_type.as_deref());
        let new = || RehearsedType {
            endpoint,
            event_type,
            processed_again: 0,
            fails_now: Vec::new(),
            processed_now: 0,
            fails_again: Vec::new(),
            ignored_now: Vec::new(),
            is_ignored_on_purpose,
            not_run: Vec::new(),
            suspicious: Vec::new(),
            effects: Vec::new(),
            unreached: 0,
        };
        let of_type = self.types.entry(key).or_insert_with(new);
        let because = |reason| RehearsedDelivery {
            delivery_id: delivery.id().to_string(),
            tenant: delivery.tenant().map(str::to_owned),
            reason,
        };
        match result {
            RehearsalResult::Processed { suspicion, written } => {
                match was_processed {
                    true => of_type.processed_again += 1,
                    false => of_type.processed_now += 1,
                }
                of_type.suspicious.extend(suspicion.map(because));
                of_type.effects.push(RehearsedEffects {
                    delivery_id: delivery.id().to_string(),
                    tenant: delivery.tenant().map(str::to_owned),
                    written,
                });
            }
            RehearsalResult::Failed(reason) => match was_processed {
                true => of_type.fails_now.push(because(reason)),
                false => of_type.fails_again.push(because(reason)),
            },
            RehearsalResult::Ignored(reason) => of_type.ignored_now.push(because(reason)),
            RehearsalResult::NotRun {
                reason,
                is_unreached,
            } => {
                of_type.unreached += usize::from(is_unreached);
                of_type.not_run.push(because(reason));
            }
            RehearsalResult::Interrupted(reason) => of_type.not_run.push(because(reason)),
            RehearsalResult::Changed => {}
        }
    }

    /// Notes that the endpoint is not rehearsed, or not to the end.
    pub(super) fn refuse(&mut self, endpoint: &str, reason: String) {
        self.refused.push(RefusedEndpoint {
            endpoint: endpoint.to_owned(),
            reason,
            is_expected: self.rehearsal.is_refusal_expected(endpoint),
        });
    }

    /// Notes that an error has ended the rehearsal.
    pub(super) fn end(&mut self, error: &impl ToString) {
        self.error = Some(error.to_string());
    }

    pub(super) fn into_report(self) -> RehearsalReport {
        RehearsalReport {
            types: self.types.into_values().collect(),
            refused: self.refused,
            error: self.error,
        }
    }
}

impl RehearsedType {
    /// How many deliveries were run.
    pub fn rehearsed(&self) -> usize {
        self.processed_again + self.fails_now.len() + self.processed_now + self.fails_again.len()
    }

    /// The rows that the handlers have written for all deliveries together, by the name of the table with its schema.
    /// `None` if no delivery would be processed, or if Postgres has not counted the rows of one of these deliveries.
    pub fn written(&self) -> Option<BTreeMap<String, RowsWritten>> {
        if self.effects.is_empty() {
            return None;
        }
        let mut total = RowsByTable::new();
        for effects in &self.effects {
            add(&mut total, effects.written.as_ref()?);
        }
        Some(total)
    }

    /// The endpoint and the type.
    pub(super) fn name(&self) -> String {
        name(&self.endpoint, self.event_type.as_deref())
    }
}

/// An endpoint and an event type of it.
pub(super) fn name(endpoint: &str, event_type: Option<&str>) -> String {
    match event_type {
        Some(event_type) => format!("{endpoint} {event_type}"),
        None => endpoint.to_owned(),
    }
}

fn write_masked<S: Serializer>(reason: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&masked(reason))
}

fn write_masked_if_any<S: Serializer>(
    reason: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    reason.as_deref().map(masked).serialize(serializer)
}
