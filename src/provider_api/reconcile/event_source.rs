//! `EventSource`: a provider's list of its events.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::provider::event_types::{EventTypes, WantedEvents};
use crate::provider_api::source_error::SourceError;

/// A provider's list of events, read from its API.
///
/// A source for an API of your own:
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use idempotent_webhook::reconcile::{EventPage, EventSource, ListedEvent, PageQuery, SourceError};
///
/// struct Orders(reqwest::Client);
///
/// #[derive(serde::Deserialize)]
/// struct Page {
///     events: Vec<serde_json::Value>,
///     next: Option<String>,
/// }
///
/// impl EventSource for Orders {
///     fn name(&self) -> String {
///         "orders".to_owned()
///     }
///
///     async fn page(&self, query: &PageQuery) -> Result<EventPage, SourceError> {
///         let (since, page) = (query.since_unix(), query.cursor().unwrap_or_default());
///         let url = format!("https://api.example.com/events?since={since}&page={page}");
///         let page: Page = self.0.get(url).send().await?.error_for_status()?.json().await?;
///         let events = page.events.iter().map(|event| {
///             let created = Duration::from_secs(event["created"].as_u64().unwrap_or_default());
///             ListedEvent::new(SystemTime::UNIX_EPOCH + created, event.to_string())
///         });
///         Ok(EventPage::new(events, page.next))
///     }
/// }
/// ```
pub trait EventSource: Send + Sync + 'static {
    /// The name of the list, such as `stripe`. Lists of one endpoint need different names, unless they belong to
    /// different tenants. A name must not change, because the position of the list is stored under it. So it must not
    /// depend on a key that you rotate.
    fn name(&self) -> String;

    /// The webhook headers that the list contains. Default: none.
    fn headers(&self) -> Vec<HeaderName> {
        Vec::new()
    }

    /// Whether the list contains the bodies of the webhooks. If not, the round asks the provider to send missing
    /// deliveries again, with [`redeliver`](Self::redeliver). Default: `true`.
    fn has_bodies(&self) -> bool {
        true
    }

    /// For how long the list shows an event. No round looks further back. Default: `None`, so that only
    /// [`look_back`](crate::Reconcile::look_back) limits a round.
    fn goes_back(&self) -> Option<Duration> {
        None
    }

    /// A page of the events in the query's period, in any order. Events outside of the period are ignored, so a list
    /// that cannot filter by time may return them.
    ///
    /// A call is cancelled after 2 minutes. The same page may be asked for again.
    fn page(
        &self,
        query: &PageQuery,
    ) -> impl Future<Output = Result<EventPage, SourceError>> + Send;

    /// Asks the provider to send a webhook again. `redelivery` is the text that the list gave to
    /// [`ListedEvent::to_redeliver`]. Default: an error.
    fn redeliver(&self, redelivery: &str) -> impl Future<Output = Result<(), SourceError>> + Send {
        let _ = redelivery;
        std::future::ready(Err(SourceError::new(
            "this list cannot ask for a redelivery",
        )))
    }
}

/// Which page of a list to read.
#[derive(Clone, Debug)]
pub struct PageQuery {
    pub(super) since: SystemTime,
    pub(super) until: SystemTime,
    pub(super) cursor: Option<String>,
    pub(super) events: Option<Arc<WantedEvents>>,
    pub(super) versions: Vec<Arc<str>>,
}

impl PageQuery {
    /// The list should contain events from this time on.
    pub fn since(&self) -> SystemTime {
        self.since
    }

    /// [`since`](Self::since) in whole Unix seconds, rounded down.
    pub fn since_unix(&self) -> u64 {
        let since = self.since.duration_since(SystemTime::UNIX_EPOCH);
        since.unwrap_or_default().as_secs()
    }

    /// The list should contain events up to this time. The webhooks of later events may still be on their way.
    pub fn until(&self) -> SystemTime {
        self.until
    }

    /// The event types and groups that the layer handles, such as `invoice.*`. The list may leave out all other types.
    /// `None` if the layer handles other types as well: [`only`](crate::IdempotentWebhook::only) and `Events` set which
    /// types it ignores.
    pub fn event_types(&self) -> Option<&[String]> {
        self.events.as_ref()?.types().map(EventTypes::names)
    }

    /// Whether the layer expects payloads of this version. Without [`expect_version`](crate::Provider::expect_version),
    /// it expects any version.
    pub fn expects_version(&self, version: &str) -> bool {
        self.versions.is_empty() || self.versions.iter().any(|known| **known == *version)
    }

    /// The `next` of the previous page. `None` for the first page.
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }
}

/// A page of a list.
#[derive(Clone, Debug)]
pub struct EventPage {
    pub(super) events: Vec<ListedEvent>,
    pub(super) next: Option<String>,
}

impl EventPage {
    /// A page of events. `next` is the cursor with which [`EventSource::page`] finds the next page, or `None` if this
    /// is the last one. Another process may continue with this cursor. No two pages of a list may have the same `next`.
    pub fn new(events: impl IntoIterator<Item = ListedEvent>, next: Option<String>) -> Self {
        Self {
            events: events.into_iter().collect(),
            next,
        }
    }
}

/// An event in a provider's list.
#[derive(Clone, Debug)]
pub struct ListedEvent {
    pub(crate) occurred_at: SystemTime,
    pub(super) headers: HeaderMap,
    pub(super) content: Content,
    pub(super) action: Option<String>,
    pub(crate) unusable: Option<String>,
}

/// How an event can be run: from its body, or by a redelivery.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Body(Bytes),
    Redelivery(String),
}

impl ListedEvent {
    /// An event with the body of its webhook, in JSON unless a [header](Self::header) says otherwise.
    pub fn new(occurred_at: SystemTime, body: impl Into<Bytes>) -> Self {
        Self::with(occurred_at, Content::Body(body.into()))
    }

    /// An event that only the provider can send again. [`EventSource::redeliver`] gets the text `redelivery`.
    /// `attempted_at` is the time of the last delivery attempt.
    pub fn to_redeliver(attempted_at: SystemTime, redelivery: impl Into<String>) -> Self {
        Self::with(attempted_at, Content::Redelivery(redelivery.into()))
    }

    fn with(occurred_at: SystemTime, content: Content) -> Self {
        Self {
            occurred_at,
            headers: HeaderMap::new(),
            content,
            action: None,
            unusable: None,
        }
    }

    /// Adds a header of the event's webhook: one of [`EventSource::headers`], or `content-type`.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Sets the action that qualifies the event type, such as `opened` for GitHub's `pull_request`, if the list has no
    /// body that contains it. If the action is missing, the provider is asked to send the event again, provided that
    /// the layer handles at least one action of its type.
    #[must_use]
    pub fn event_action(mut self, action: impl Into<String>) -> Self {
        self.action = Some(action.into());
        self
    }

    /// Marks the event as one that cannot be run, for this reason: for example, its body differs from the webhook's. If
    /// the event is missing, the reason is reported to the operator.
    #[must_use]
    pub fn unusable(mut self, reason: impl Into<String>) -> Self {
        self.unusable = Some(reason.into());
        self
    }
}
