//! Facts about requests that a layer and its clones log only once, because a line for each request would hide other
//! lines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use tracing::{info, warn};

use crate::provider::Provider;
use crate::provider::event_types::{Ignored, Matched, Wanted, WantedEvents};
use crate::provider::signature::Tolerance;
use crate::tasks_and_errors::log_once::LogOnce;

/// How many events are ignored before the log reports that no event has matched a name in the table of event types.
/// Some providers send fifty unwanted events for each wanted event.
const MANY_IGNORED: u32 = 100;

/// The largest number of unexpected payload versions that are logged. If the version is not signed, anyone who has
/// captured a request can invent versions.
const MAX_VERSIONS: usize = 10;

/// How often the use of an older secret is logged for each tenant, or for an endpoint without tenants.
const OLDER_SECRET_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// The largest number of tenants for which the use of an older secret is logged per `OLDER_SECRET_INTERVAL`.
const MAX_TENANTS: usize = 100;

/// A signature from further in the future than this shows that the clock of this machine is behind. The limit applies
/// even if the tolerance for old signatures is longer than this.
const LONGEST_AHEAD: Duration = Duration::from_secs(5 * 60);

/// How many characters of a sender's text are logged.
const MAX_CHARS: usize = 100;

#[derive(Debug)]
pub(super) struct Notices {
    refused_method: LogOnce,
    /// By tenant. `None` if there are no tenants.
    older_secret: LogOnce<Option<Arc<str>>>,
    other_version: LogOnce<String>,
    slow_clock: LogOnce,
    /// The warning that no name has matched. It is no longer logged once a name has matched.
    no_match: LogOnce,
    /// How many events were ignored while no name had matched.
    ignored: AtomicU32,
}

impl Default for Notices {
    fn default() -> Self {
        Self {
            refused_method: LogOnce::of(1),
            older_secret: LogOnce::of(MAX_TENANTS).again_after(OLDER_SECRET_INTERVAL),
            other_version: LogOnce::of(MAX_VERSIONS),
            slow_clock: LogOnce::of(1),
            no_match: LogOnce::of(1),
            ignored: AtomicU32::default(),
        }
    }
}

impl Notices {
    /// Whether this is the first request that is refused because of its method.
    pub(super) fn is_first_refused_method(&self) -> bool {
        self.refused_method.is_first(())
    }

    /// Notes which secret has verified a delivery. `place` is the secret's position in the list, and 0 is the newest.
    /// An older secret shows that a rotation is not finished.
    pub(super) fn verified_by_secret(&self, place: usize, tenant: Option<&Arc<str>>) {
        if place > 0 && self.older_secret.is_first(tenant.cloned()) {
            info!(
                secret = place,
                tenant = tenant.map(|tenant| &**tenant),
                "webhook verified by an older secret, which is still in use (logged once a day)"
            );
        }
    }

    /// Notes that the payload of a delivery has an unexpected version.
    pub(super) fn other_version(&self, version: &str, provider: &Provider) {
        let version = beginning(version);
        if self.other_version.is_first(version.clone()) {
            warn!(
                version,
                expected = provider.expected_versions().join(", "),
                is_signed = provider.signs_payload_version(),
                "webhook of another version or mode than the expected one, but still handled (logged once)"
            );
        }
    }

    /// Notes when a delivery was signed, and warns if the clock of this machine seems to be behind. The tolerance has
    /// already accepted the time of the signature, but it may have no limit for times in the future. If this machine's
    /// clock is behind, signatures are valid for longer than the tolerance says, and nothing else would show that.
    pub(super) fn signed_at(&self, signed_at: SystemTime, now: SystemTime, tolerance: Tolerance) {
        let limit = tolerance.past();
        let limit = limit.map_or(LONGEST_AHEAD, |past| past.min(LONGEST_AHEAD));
        let ahead = signed_at.duration_since(now).unwrap_or_default();
        if ahead > limit && self.slow_clock.is_first(()) {
            warn!(
                ahead_seconds = ahead.as_secs(),
                limit_seconds = limit.as_secs(),
                "webhook signed in the future: is this clock behind? Signatures are valid for longer than the tolerance \
                 says (logged once)"
            );
        }
    }

    /// Notes what the table of event types has decided for an event. If all names of the table were misspelled, every
    /// event would be ignored and answered with success, and nothing else would show that.
    pub(super) fn wanted(&self, wanted: &Wanted, events: &WantedEvents) {
        if self.no_match.is_over() {
            return;
        }
        match wanted {
            Wanted::Yes(Matched::Type(_)) => self.no_match.end(),
            Wanted::Ignored(Ignored::Other(event_type)) => self.ignored(event_type, events),
            Wanted::Ignored(Ignored::Named(_)) | Wanted::Yes(Matched::Other) => {}
        }
    }

    fn ignored(&self, event_type: &str, events: &WantedEvents) {
        let ignored = self
            .ignored
            .fetch_add(1, Ordering::Relaxed)
            .saturating_add(1);
        let similar = events.similar_to(event_type);
        if (similar.is_none() && ignored < MANY_IGNORED) || !self.no_match.is_first(()) {
            return;
        }
        let event_type = beginning(event_type);
        match similar {
            Some(similar) => warn!(
                event_type,
                "webhook ignored, and no name of the table has matched yet: `{similar}` has another spelling (logged \
                 once)"
            ),
            None => warn!(
                event_type,
                ignored,
                "webhook ignored, and no name of the table has matched yet: are they spelled as the provider spells \
                 them? (logged once)"
            ),
        }
    }
}

fn beginning(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}
