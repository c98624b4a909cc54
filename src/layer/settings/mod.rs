//! The settings of a layer, and the state that its clones share. The layer's service reads the settings and the state.

mod for_dashboard;
#[cfg(test)]
mod prose;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use sqlx::PgPool;

use crate::activity::Activity;
use crate::activity::counts::Counts;
use crate::activity::endpoint_name::EndpointName;
use crate::layer::verification::{MAX_TIMEOUT, Verification};
use crate::provider::delivery::Delivery;
use crate::provider::digest::{Sha256Digest, sha256_of};
use crate::provider::{self, Provider, Unreadable};
use crate::recovery::task::Recovery;
use crate::recovery::{
    DeadReport, JoinedLayer, Keep, Keeper, KeptRequest, ServedLayer, ServedSettings,
};
use crate::transaction::Store;
use crate::transaction::in_flight::InFlight;

/// The upper bound of [`Settings::longest_attempt`].
const MAX_ATTEMPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The settings of a layer, and the state that its clones share.
#[derive(Clone)]
pub(crate) struct Settings {
    /// The settings for everything before the claim.
    pub(crate) verification: Verification,
    _name: Arc<EndpointName>,
    pub(crate) store: Store,
    pub(crate) in_flight: InFlight,
    /// Whether an identical body under another id is a duplicate.
    pub(crate) guards_replays: bool,
    /// Set if deliveries are kept.
    pub(crate) keeper: Option<Arc<Keeper>>,
    /// Whether the handler claims the delivery itself.
    pub(crate) claims_late: bool,
    /// Where a request contains the object that it is about, if deliveries of one object run one at a time.
    pub(crate) serialized_by: Option<provider::Source>,
    pub(crate) allow_unused_transaction: bool,
    /// Whether a rollback undoes everything that the handler does in a rehearsal.
    pub(crate) is_rehearsable: bool,
    /// The longest time between two authentic requests of the provider, if it is known.
    pub(crate) expected_every: Option<Duration>,
    /// The version of the application, or an empty text.
    pub(crate) version: Arc<str>,
    pub(crate) counts: Counts,
    /// Writes the counts, unless that is switched off. Also reads the times of other processes' requests, for the
    /// metrics.
    pub(crate) activity: Activity,
    pub(crate) handler_timeout: Duration,
    pub(crate) in_flight_timeout: Duration,
}

impl Settings {
    /// The default settings.
    #[track_caller]
    pub(crate) fn new(pool: PgPool, endpoint: Arc<str>, provider: Provider) -> Self {
        let verification = Verification::new(endpoint.clone(), provider);
        let provider = &verification.provider;
        let in_flight_timeout = provider.response_deadline.saturating_mul(3) / 5;
        let name = Arc::new(EndpointName::hold(&endpoint, &pool));
        let timeout = verification.lookup_timeout;
        let store = Store::new(pool, timeout, provider.redelivery_window);
        let metrics = verification.metrics.clone();
        let activity = Activity::new(endpoint, &name, store.clone(), metrics.clone());
        Self {
            counts: Counts {
                metrics,
                activity: Some(activity.clone()),
            },
            activity,
            _name: name,
            store,
            in_flight: InFlight::default(),
            guards_replays: false,
            keeper: None,
            claims_late: false,
            serialized_by: None,
            allow_unused_transaction: false,
            is_rehearsable: false,
            expected_every: None,
            version: Arc::default(),
            handler_timeout: Duration::from_secs(30),
            in_flight_timeout: in_flight_timeout.min(MAX_TIMEOUT),
            verification,
        }
    }

    /// The digest of a delivery's event type and body, if the replay guard is on.
    pub(crate) fn fingerprint(&self, delivery: &Delivery, body: &[u8]) -> Option<Sha256Digest> {
        let event_type = delivery.event_type().unwrap_or_default();
        self.guards_replays
            .then(|| sha256_of([event_type.as_bytes(), body]))
    }

    /// The object of a delivery, if deliveries of one object run one at a time.
    pub(crate) fn object(&self, head: &Parts, body: &[u8]) -> Option<Arc<str>> {
        match self.serialized_by.as_ref()?.read_alone(head, body) {
            Ok(object) => object.map(Into::into),
            // Deliveries whose object cannot be read may belong to the same object. So they run one at a time, under
            // the empty name, which no object has.
            Err(Unreadable) => Some(Arc::default()),
        }
    }

    /// Sets the timeout of each step on the database.
    pub(crate) fn database_timeout(&mut self, timeout: Duration) {
        self.store.timeout = timeout;
        self.verification.lookup_timeout = timeout;
        self.activity.set_timeout(timeout);
    }

    /// Keeps deliveries. The endpoint is made known to recovery here. Doing this when a service is built would be too
    /// late, because a layer on a handler builds a service only when a request arrives.
    pub(crate) fn keep(&mut self, keep: Keep) {
        self.store.set_environment(keep.recovery.environment_of());
        let served = keep.recovery.serve(ServedLayer {
            endpoint: self.verification.endpoint.clone(),
            schedule: keep.schedule.clone(),
            breaker: keep.breaker,
            settings: self.served_settings(&keep),
        });
        self.join(&keep.recovery);
        self.keeper = Some(Arc::new(Keeper::new(keep, served)));
    }

    /// Makes this recovery wait for the layer when it stops.
    pub(crate) fn join(&mut self, recovery: &Recovery) {
        if self.keeper.is_none() {
            self.store.set_environment(recovery.environment_of());
        }
        recovery.join(self.joined());
    }

    /// What a shutdown waits for: the deliveries of this layer, and its counts.
    pub(crate) fn joined(&self) -> JoinedLayer {
        JoinedLayer {
            endpoint: self.verification.endpoint.clone(),
            in_flight: self.in_flight.clone(),
            activity: self.activity.clone(),
        }
    }

    /// The settings that recovery needs.
    pub(crate) fn served_settings(&self, keep: &Keep) -> ServedSettings {
        ServedSettings {
            longest_attempt: self.longest_attempt(),
            dead_report: self.dead_report(keep),
            is_rehearsable: self.is_rehearsable,
        }
    }

    /// How dead deliveries are reported, and to which hook.
    pub(crate) fn dead_report(&self, keep: &Keep) -> DeadReport {
        DeadReport {
            provider: self.verification.provider.shared_name(),
            counts: self.counts.clone(),
            store: self.store.clone(),
            hook: keep.on_dead.clone(),
        }
    }

    pub(crate) fn share_connections(&mut self, other: &Self) {
        self.store.share_connections(&other.store);
    }

    /// The longest time that an attempt can take.
    pub(crate) fn longest_attempt(&self) -> Duration {
        // Each step may take `store.timeout`: to begin, to claim, to commit or roll back, and to record the result.
        let steps = self.store.timeout.saturating_mul(8);
        // A late claim waits a second time.
        let waits = if self.claims_late { 2 } else { 1 };
        self.handler_timeout
            .saturating_add(self.in_flight_timeout.saturating_mul(waits))
            .saturating_add(steps)
            .min(MAX_ATTEMPT)
    }

    /// The kept form of a request, if requests are kept and this one is not too large.
    pub(crate) fn kept_request(&self, head: &Parts, body: &Bytes) -> Option<KeptRequest> {
        let keep = &self.keeper.as_ref()?.settings;
        let object = self
            .serialized_by
            .iter()
            .flat_map(provider::Source::headers);
        let headers = keep.headers.iter().chain(object);
        keep.body_limit
            .is_none_or(|limit| limit > 0 && body.len() <= limit)
            .then(|| {
                KeptRequest::new(
                    head,
                    body,
                    &self.verification.provider,
                    headers,
                    keep.archived_for,
                )
            })
    }
}
