//! The settings that a layer needs to verify a request, to choose the wanted events, and to answer.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use http::request::Parts;

use super::notices::Notices;
use crate::metrics::{Metrics, SenderWait};
use crate::provider::delivery::{Delivery, VerifiedDelivery, check_text};
use crate::provider::event_types::{EventTypes, Matched, Wanted, WantedEvents, add};
use crate::provider::{Provider, Unreadable};

/// The longest timeout. It is far below what Postgres and the clock can represent.
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The settings of a layer that are about requests, and the state that its clones share.
#[derive(Clone, Debug)]
pub(crate) struct Verification {
    pub(crate) endpoint: Arc<str>,
    pub(crate) provider: Provider,
    /// The table of event types: its handled types are wanted, and others are ignored. Set if the layer has such a
    /// table.
    events: Option<Arc<WantedEvents>>,
    /// The same table, shared by all clones, because `Reconcile` takes a clone of the layer before the table is set.
    events_of_clones: Arc<OnceLock<Arc<WantedEvents>>>,
    pub(super) notices: Arc<Notices>,
    pub(crate) body_timeout: Duration,
    /// The limit for the lookup of a tenant's secrets, and for the action of a handshake.
    pub(crate) lookup_timeout: Duration,
    pub(crate) retry_after: Duration,
    pub(crate) metrics: Metrics,
}

impl Verification {
    /// The default settings.
    ///
    /// # Panics
    ///
    /// If the endpoint is not a valid name, the signature scheme cannot use a secret, or the provider signs its URL and
    /// `Provider::public_url` is not set.
    #[track_caller]
    #[expect(clippy::panic, reason = "documented, and only at start")]
    pub(crate) fn new(endpoint: Arc<str>, provider: Provider) -> Self {
        if let Err(fault) = check_text(&endpoint) {
            panic!("not a usable endpoint name: {endpoint:?} is {fault}");
        }
        if let Err(error) = provider.check_secrets() {
            panic!("endpoint {endpoint:?}: {error}");
        }
        assert!(
            !provider.lacks_public_url(),
            "endpoint {endpoint:?}: {} signs the URL that it calls: set it with `Provider::public_url`",
            provider.name()
        );
        let metrics = Metrics::new(endpoint.clone(), provider.shared_name());
        metrics.has_secrets(provider.number_of_secrets());
        if !provider.expected_versions().is_empty() {
            // The counter starts at zero.
            metrics.other_version(0);
        }
        if provider.deadline_is_known {
            metrics.response_deadline(provider.response_deadline);
        }
        Self {
            events: None,
            events_of_clones: Arc::default(),
            notices: Arc::default(),
            body_timeout: Duration::from_secs(10),
            lookup_timeout: Duration::from_secs(3),
            retry_after: Duration::from_secs(5),
            metrics,
            endpoint,
            provider,
        }
    }

    /// Ignores events of other types.
    ///
    /// # Panics
    ///
    /// In the same cases as [`set_events`](Self::set_events), and if the list is empty, contains a name twice, or
    /// contains a name that is not valid.
    #[track_caller]
    #[expect(clippy::panic, reason = "it is a mistake in the program")]
    pub(crate) fn only<T: Into<String>>(&mut self, event_types: impl IntoIterator<Item = T>) {
        let none = EventTypes::new(Vec::<String>::new());
        let mut types = none.clone();
        for name in event_types {
            let name = name.into();
            if let Err(error) = add(&mut types, &none, name.clone()) {
                panic!("`only`, {name:?}: {error}");
            }
        }
        assert!(
            !types.names().is_empty(),
            "`only`: the list is empty, so that all events would be ignored"
        );
        self.set_events(WantedEvents::new(types, &none, true));
    }

    /// Sets the table of event types.
    ///
    /// # Panics
    ///
    /// If the provider has no event type, if no event of the provider can have one of the names, or if the layer or a
    /// clone of it already has another table.
    #[track_caller]
    #[expect(clippy::panic, reason = "it is a mistake in the program")]
    pub(crate) fn set_events(&mut self, wanted: WantedEvents) {
        assert!(
            self.provider.has_event_type(),
            "the provider {} has no event type: set `Provider::event_type`",
            self.provider.name()
        );
        for name in wanted.names() {
            if let Some(reason) = self.provider.never_matches(name) {
                panic!("{name:?} is not the name of an event: {reason}");
            }
        }
        let known = self
            .events_of_clones
            .get_or_init(|| Arc::new(wanted.clone()));
        assert!(
            **known == wanted,
            "the endpoint {} has another table of event types already, by `only` or `Events`: another table \
             needs another endpoint",
            self.endpoint
        );
        self.events = Some(known.clone());
    }

    /// The table of event types for the deliveries of the endpoint.
    pub(crate) fn listed_events(&self) -> Option<&Arc<WantedEvents>> {
        self.events_of_clones.get()
    }

    /// The name in the table of event types that an event has matched, if there is one.
    pub(crate) fn handled_name(&self, matched: Matched) -> Option<&str> {
        match matched {
            Matched::Type(place) => {
                let handled = self.events.as_ref()?.handled();
                handled.get(place).map(String::as_str)
            }
            Matched::Other => None,
        }
    }

    /// What the layer's table of event types decides for an event. `None` if the layer has no table.
    pub(crate) fn wanted(
        &self,
        event_type: Option<&str>,
        head: &Parts,
        body: &[u8],
    ) -> Option<Wanted> {
        let events = self.events.as_ref()?;
        let wanted = self.check(events, event_type, head, body);
        self.notices.wanted(&wanted, events);
        Some(wanted)
    }

    /// What `events` decides for an event. An event whose type cannot be read is not ignored.
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
                // A part of the type could not be read. If the part could be read, the event might be a wanted one.
                Wanted::Ignored(_) => Wanted::Yes(Matched::Other),
                wanted => wanted,
            },
        }
    }

    /// Counts an authentic delivery, even if its event is ignored.
    pub(super) fn note_authentic(
        &self,
        delivery: &VerifiedDelivery,
        tenant: Option<&Arc<str>>,
        now: SystemTime,
    ) {
        if let Some(signed_at) = delivery.signed_at {
            self.notices
                .signed_at(signed_at, now, self.provider.tolerance);
        }
        if let Some(place) = delivery.secret {
            self.metrics.verified_by_secret(place);
            self.notices.verified_by_secret(place, tenant);
        }
        if let Some(version) = &delivery.other_version {
            self.metrics.other_version(1);
            self.notices.other_version(version, &self.provider);
        }
    }

    /// Measures how long the sender of a delivery waits, if the signature contains a time.
    pub(crate) fn measure_wait(&self, delivery: &Delivery) -> Option<SenderWait<'_>> {
        let is_told = cfg!(feature = "metrics") && self.provider.signs_each_attempt();
        let signed_at = delivery.signed_at().filter(|_| is_told)?;
        Some(SenderWait {
            metrics: &self.metrics,
            signed_at,
        })
    }
}
