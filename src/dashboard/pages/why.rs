//! What happened to a delivery, from receipt to effect, for programs. `src/documentation/stability.md` promises its
//! format.

use serde::Serialize;

use super::super::error::PageError;
use super::super::html::Timestamp;
use super::super::params::Params;
use super::super::rows::{self, Key};
use super::super::{Access, Shared};
use super::delivery::stored::{Attempt, Delivery, Kept};
use super::lookup::{Discarded, KnownOf, Rejected, known_of};
use super::settings::{self, Told};

/// The largest number of deliveries reported for an id. Reading each of them takes several statements.
const MAX_DELIVERIES: usize = 20;

#[derive(Serialize)]
pub(in crate::dashboard) struct Why {
    now: Timestamp,
    /// Whether the id is known and each of its deliveries is processed or discarded.
    well: bool,
    deliveries: Vec<Story>,
    /// Whether the id has more deliveries than are reported.
    cut: bool,
    /// The time before which deliveries may have been deleted.
    deleted_before: Option<Timestamp>,
    /// Rejected requests. They are not authentic, so they belong to no known delivery. Shown only to readers who may
    /// see all tenants.
    rejected: Option<Rejected>,
}

/// What happened to a delivery.
#[derive(Serialize)]
struct Story {
    #[serde(flatten)]
    key: Key,
    tenant_name: Option<String>,
    event_type: Option<String>,
    state: String,
    /// A sentence for people.
    meaning: &'static str,
    /// Who acts next. `None` if the delivery is done.
    waits_for: Option<WaitsFor>,
    /// The number of the process that runs an attempt.
    process: Option<i64>,
    first_received: Option<Timestamp>,
    processed: Option<Timestamp>,
    discarded: Option<Timestamp>,
    next_attempt: Option<Timestamp>,
    attempts: Option<i32>,
    /// The last failed attempts, latest first, at most 20. For an attempt `by` the provider, the status is the status
    /// of the handler's response, or of the response that the layer sent in its place.
    failed_attempts: Vec<Attempt>,
    /// When the last recovery attempt reached no layer. `unreached_status` is the status of the response that it
    /// received.
    unreached: Option<Timestamp>,
    unreached_status: Option<i16>,
    /// Whether the delivery came from the provider's list of events (reconciliation), and not in a request.
    reconciled: bool,
    /// Whether the provider sends the delivery again by itself. `None` if this is not known.
    provider_sends_again: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum WaitsFor {
    /// A process that runs an attempt.
    Process,
    /// Recovery, which runs the delivery at the time of its next attempt.
    Recovery,
    Operator,
    /// The provider: the delivery runs again only if the provider sends it again.
    Provider,
}

impl WaitsFor {
    fn of(state: &str) -> Option<Self> {
        match state {
            "in flight" | "running" => Some(Self::Process),
            "due" => Some(Self::Recovery),
            "paused" | "dead" => Some(Self::Operator),
            "recorded" => Some(Self::Provider),
            _ => None,
        }
    }
}

pub(in crate::dashboard) async fn read(
    shared: &Shared,
    access: &Access,
    params: &Params,
) -> Result<Why, PageError> {
    const NO_ID: PageError = PageError::bad_request("An id is needed.");
    let id = params.get("id").ok_or(NO_ID)?.to_owned();
    let access = match params.get("endpoint") {
        // A delivery that may not be seen is treated like one that does not exist.
        Some(name) => {
            let seen = Some(name).filter(|name| access.sees_endpoint(name));
            access.clone().of_endpoints(seen)
        }
        None => access.clone(),
    };
    let mut reading = shared.database.read().await?;
    let now = Timestamp(rows::now(&mut reading).await?);
    let mut known = known_of(&mut reading, &access, &[id]).await?;
    if let Some(tenant) = params.get("tenant") {
        known.found.retain(|key, _| key.tenant == tenant);
        known.discarded.retain(|one| one.key.tenant == tenant);
    }
    let KnownOf {
        found,
        cut,
        discarded,
        deleted_before,
        rejected,
    } = known;
    let is_cut = !cut.is_empty() || found.len() > MAX_DELIVERIES;
    let mut deliveries = Vec::new();
    for key in found.into_keys().take(MAX_DELIVERIES) {
        let delivery = Delivery::read(&mut reading, &key, &access).await?;
        let told = settings::told(&mut reading, &key.endpoint).await?;
        deliveries.push(Story::of(key, delivery, told.as_ref(), now));
    }
    reading.end();
    deliveries.extend(discarded.into_iter().map(Story::from));
    let is_done = |story: &Story| matches!(&*story.state, "processed" | "discarded");
    Ok(Why {
        now,
        well: !deliveries.is_empty() && deliveries.iter().all(is_done),
        deliveries,
        cut: is_cut,
        deleted_before,
        rejected,
    })
}

impl Story {
    fn of(key: Key, delivery: Delivery, told: Option<&Told>, now: Timestamp) -> Self {
        let state = delivery.state().to_owned();
        let provider_sends_again = told.and_then(|told| sends_again(&delivery, told, now));
        let meaning = delivery.meaning();
        let reconciled = delivery.is_reconciled();
        let (event_type, processed) = (delivery.event_type, delivery.processed);
        let mut story = Self {
            waits_for: WaitsFor::of(&state),
            state,
            meaning,
            event_type,
            processed,
            reconciled,
            provider_sends_again,
            ..Self::unknown(key)
        };
        if let Some(kept) = delivery.kept {
            let waits = matches!(story.waits_for, Some(WaitsFor::Recovery));
            story.next_attempt = kept.next_attempt.filter(|_| waits);
            story.unreached = kept.unreached.filter(|_| waits);
            story.unreached_status = kept.unreached_status.filter(|_| waits);
            story.tenant_name = kept.tenant_name;
            story.process = kept.process;
            story.first_received = Some(kept.first_received);
            story.attempts = Some(kept.attempts);
            story.failed_attempts = kept.failed_attempts;
        }
        story
    }

    fn unknown(key: Key) -> Self {
        Self {
            key,
            tenant_name: None,
            event_type: None,
            state: "unknown".to_owned(),
            meaning: "",
            waits_for: None,
            process: None,
            first_received: None,
            processed: None,
            discarded: None,
            next_attempt: None,
            attempts: None,
            failed_attempts: Vec::new(),
            unreached: None,
            unreached_status: None,
            reconciled: false,
            provider_sends_again: None,
        }
    }
}

impl From<Discarded> for Story {
    fn from(Discarded { key, at }: Discarded) -> Self {
        Self {
            state: "discarded".to_owned(),
            meaning: "Its handler or an operator has discarded it, or an operator has made the layer forget it. It is \
                      processed if the provider sends it again.",
            discarded: Some(at),
            ..Self::unknown(key)
        }
    }
}

/// Whether the provider sends a delivery again by itself, judged by the last response that it received.
fn sends_again(delivery: &Delivery, told: &Told, now: Timestamp) -> Option<bool> {
    let kept = delivery.kept.as_ref();
    let is_over = || {
        let ends = kept?.first_received.0 + told.redelivery_window()?;
        Some(now.0 > ends)
    };
    let hears_of_failures = !told.acknowledges() && told.keeps() != Some("accepted");
    if delivery.is_reconciled() {
        // It is not known whether the provider has also sent a request, or which response the provider received.
        return None;
    }
    if !hears_of_failures || told.redelivers() == Some(false) || is_over() == Some(true) {
        return Some(false);
    }
    match delivery.state() {
        // There is no response yet, or recovery runs the delivery.
        "in flight" | "running" => None,
        "processed" => {
            let has_heard_of_none = match kept {
                Some(kept) => kept.has_only_succeeded(),
                None => told.keeps().is_none(),
            };
            // If an attempt has failed, it is not known whether recovery or a provider retry then processed the
            // delivery.
            has_heard_of_none.then_some(false)
        }
        _ => told.redelivers(),
    }
}

impl Kept {
    /// Whether all attempts are known, and none of the provider's attempts has failed.
    fn has_only_succeeded(&self) -> bool {
        let failed = self.failed_attempts.len();
        let all_are_known = usize::try_from(self.attempts).is_ok_and(|all| all <= failed + 1);
        all_are_known
            && self
                .failed_attempts
                .iter()
                .all(|attempt| attempt.by != "provider")
    }
}
