//! The settings of a layer, and the state that its clones share. Its service reads both.

mod endpoint_name;
mod for_dashboard;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use sqlx::PgPool;

use self::endpoint_name::EndpointName;
use crate::activity::{Activity, Source};
use crate::delivery::Delivery;
use crate::digest::sha256_of;
use crate::event_types::{Matched, Wanted, WantedEvents};
use crate::in_flight::InFlight;
use crate::metrics::Metrics;
use crate::provider::{self, Provider, Unreadable};
use crate::recovery::{DeadReport, Keep, Keeper, KeptRequest, Quota, ServedLayer, ServedSettings};
use crate::transaction::{Fingerprint, Store};

/// The longest timeout, far below what Postgres and the clock can hold.
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest wait for an attempt.
const MAX_ATTEMPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What is done with the bodies of deliveries besides verifying them.
#[derive(Clone, Copy)]
pub(crate) enum Bodies {
    Ignored,
    Compared,
    Guarded,
}

/// The settings of a layer, and the state that its clones share.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) endpoint: Arc<str>,
    _name: Arc<EndpointName>,
    pub(crate) provider: Provider,
    /// If only some events are wanted, or there are handlers by their types.
    events: Option<Arc<WantedEvents>>,
    /// The same of any clone: `Reconcile` takes one before there are handlers.
    events_of_clones: Arc<OnceLock<Arc<WantedEvents>>>,
    pub(crate) store: Store,
    pub(crate) in_flight: InFlight,
    pub(crate) bodies: Bodies,
    /// If deliveries are kept.
    pub(crate) keeper: Option<Arc<Keeper>>,
    /// How many failures are recorded, if failures are recorded and nothing is kept.
    pub(crate) recorded: Option<Quota>,
    /// Whether the handler claims the delivery.
    pub(crate) claims_late: bool,
    /// Where it is what a delivery is about, if those of one object run one at a time.
    pub(crate) serialized_by: Option<provider::Source>,
    pub(crate) allow_unused_transaction: bool,
    pub(crate) metrics: Metrics,
    /// That of the application, or an empty text.
    pub(crate) version: Arc<str>,
    /// `None` if it is not counted.
    pub(crate) activity: Option<Activity>,
    pub(crate) refused_a_method: Arc<AtomicBool>,
    pub(crate) body_timeout: Duration,
    pub(crate) handler_timeout: Duration,
    pub(crate) in_flight_timeout: Duration,
    pub(crate) retry_after: Duration,
    pub(crate) also_commit_on: Option<Arc<dyn Fn(StatusCode) -> bool + Send + Sync>>,
}

impl Settings {
    /// The defaults.
    pub(crate) fn new(pool: PgPool, endpoint: Arc<str>, provider: Provider) -> Self {
        let name = Arc::new(EndpointName::hold(&endpoint, &pool));
        let in_flight_timeout = provider.response_deadline.saturating_mul(3) / 5;
        let store = Store::new(pool, Duration::from_secs(3), provider.redelivery_window);
        Self {
            activity: Some(Activity::new(endpoint.clone())),
            _name: name,
            events: None,
            events_of_clones: Arc::default(),
            store,
            in_flight: InFlight::default(),
            bodies: Bodies::Ignored,
            keeper: None,
            recorded: None,
            claims_late: false,
            serialized_by: None,
            allow_unused_transaction: false,
            metrics: Metrics::new(endpoint.clone(), provider.shared_name()),
            version: Arc::default(),
            refused_a_method: Arc::default(),
            body_timeout: Duration::from_secs(10),
            handler_timeout: Duration::from_secs(30),
            in_flight_timeout: in_flight_timeout.min(MAX_TIMEOUT),
            retry_after: Duration::from_secs(5),
            also_commit_on: None,
            endpoint,
            provider,
        }
    }

    /// Takes the table of event types. Returns whether the layer and its clones have no other one.
    pub(crate) fn set_events(&mut self, wanted: WantedEvents) -> bool {
        let known = self
            .events_of_clones
            .get_or_init(|| Arc::new(wanted.clone()));
        let is_known = **known == wanted;
        self.events = Some(known.clone());
        is_known
    }

    /// The table of event types that the deliveries of the endpoint go by.
    pub(crate) fn listed_events(&self) -> Option<&Arc<WantedEvents>> {
        self.events_of_clones.get()
    }

    /// What becomes of an event by its type, if the layer has a table of types.
    pub(crate) fn wanted(
        &self,
        event_type: Option<&str>,
        head: &Parts,
        body: &[u8],
    ) -> Option<Wanted> {
        let events = self.events.as_ref()?;
        Some(self.check(events, event_type, head, body))
    }

    /// What becomes of an event by its type. One whose type cannot be read is not ignored.
    pub(crate) fn check(
        &self,
        events: &WantedEvents,
        event_type: Option<&str>,
        head: &Parts,
        body: &[u8],
    ) -> Wanted {
        let Some(event_type) = event_type else {
            return Wanted::Yes(Matched::Other);
        };
        if !events.qualify(event_type) {
            return events.check(event_type, None);
        }
        match self.provider.qualified_type(event_type, head, body) {
            Ok(qualified) => events.check(event_type, qualified.as_deref()),
            Err(Unreadable) => match events.check(event_type, None) {
                // It may be one that is wanted.
                Wanted::Ignored => Wanted::Yes(Matched::Other),
                wanted => wanted,
            },
        }
    }

    /// The fingerprint of a delivery, unless bodies are ignored.
    pub(crate) fn fingerprint(&self, delivery: &Delivery, body: &[u8]) -> Option<Fingerprint> {
        let guarded = match self.bodies {
            Bodies::Ignored => return None,
            Bodies::Compared => false,
            Bodies::Guarded => true,
        };
        let event_type = delivery.event_type().unwrap_or_default();
        Some(Fingerprint {
            digest: sha256_of([event_type.as_bytes(), body]),
            guarded,
        })
    }

    /// What a delivery is about, if those of one object run one at a time.
    pub(crate) fn object(&self, head: &Parts, body: &[u8]) -> Option<Arc<str>> {
        match self.serialized_by.as_ref()?.read_alone(head, body) {
            Ok(object) => object.map(Into::into),
            // They may be about one object. No object has an empty name.
            Err(Unreadable) => Some(Arc::default()),
        }
    }

    /// Counts the outcome of a request, or of an attempt at a kept delivery.
    pub(crate) fn count(&self, source: Source, outcome: &'static str) {
        if let Some(activity) = &self.activity {
            activity.count(&self.store, source, outcome);
        }
    }

    /// Counts an event that is ignored, by its type.
    pub(crate) fn count_ignored(&self, event_type: &str) {
        let Some(activity) = &self.activity else {
            return;
        };
        // Whoever has captured a request could fill the activity with names, and so could a tenant.
        let is_trusted = self.provider.signs_event_type() && !self.provider.has_tenants();
        let name = is_trusted.then_some(event_type);
        activity.count_ignored(&self.store, name);
    }

    /// Counts a call of the handler by the time that it took.
    pub(crate) fn count_handler(&self, took: Duration) {
        if let Some(activity) = &self.activity {
            activity.count_handler(&self.store, took);
        }
    }

    /// Counts a rejected request. The reason must have nothing of the request.
    pub(crate) fn count_rejection(&self, cause: &'static str, reason: impl FnOnce() -> String) {
        if let Some(activity) = &self.activity {
            activity.count_rejection(&self.store, cause, &reason());
        }
    }

    /// Keeps deliveries. Recovery knows of the endpoint from now on. It does not wait for a service, because
    /// a layer on a handler makes one for each request.
    pub(crate) fn keep(&mut self, keep: Keep) {
        let served = keep.recovery.serve(ServedLayer {
            endpoint: self.endpoint.clone(),
            schedule: keep.schedule.clone(),
            breaker: keep.breaker,
            settings: self.served_settings(&keep),
        });
        self.keeper = Some(Arc::new(Keeper::new(keep, served)));
    }

    /// The settings that recovery needs.
    pub(crate) fn served_settings(&self, keep: &Keep) -> ServedSettings {
        ServedSettings {
            longest_attempt: self.longest_attempt(),
            dead_report: self.dead_report(keep),
        }
    }

    /// Who hears of dead deliveries.
    pub(crate) fn dead_report(&self, keep: &Keep) -> DeadReport {
        DeadReport {
            provider: self.provider.shared_name(),
            metrics: self.metrics.clone(),
            activity: self.activity.clone(),
            store: self.store.clone(),
            hook: keep.on_dead.clone(),
        }
    }

    /// How much is kept or recorded, if anything is.
    pub(crate) fn quota(&self) -> Option<&Quota> {
        let keeper = self.keeper.as_ref();
        keeper.map_or(self.recorded.as_ref(), |keeper| Some(&keeper.quota))
    }

    /// For how long the request of a processed delivery stays, if it stays.
    pub(crate) fn archived_for(&self) -> Option<Duration> {
        self.keeper.as_ref()?.settings.archived_for
    }

    /// Marks a refusal for the method. Returns whether there was one before.
    pub(crate) fn note_refused_method(&self) -> bool {
        self.refused_a_method.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn share_connections(&mut self, other: &Self) {
        self.store.share_connections(&other.store);
    }

    /// The longest time that an attempt takes.
    pub(crate) fn longest_attempt(&self) -> Duration {
        // To begin, to claim, to commit or roll back, and to record the result.
        let steps = self.store.timeout.saturating_mul(8);
        // A late claim waits once more.
        let waits = if self.claims_late { 2 } else { 1 };
        self.handler_timeout
            .saturating_add(self.in_flight_timeout.saturating_mul(waits))
            .saturating_add(steps)
            .min(MAX_ATTEMPT)
    }

    /// What is kept of a request, if requests are kept and this one is not too large.
    pub(crate) fn kept_request(&self, head: &Parts, body: &Bytes) -> Option<KeptRequest> {
        let keep = &self.keeper.as_ref()?.settings;
        let object = self
            .serialized_by
            .iter()
            .flat_map(provider::Source::headers);
        let headers = keep.headers.iter().chain(object);
        (body.len() <= keep.body_limit)
            .then(|| KeptRequest::new(head, body, &self.provider, headers, keep.archived_for))
    }

    /// Whether a response with this status commits.
    pub(crate) fn commits(&self, status: StatusCode) -> bool {
        status.is_success()
            || self
                .also_commit_on
                .as_ref()
                .is_some_and(|also| also(status))
    }
}
