//! `EventSource`: a provider's list of its events.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::event_types::{EventTypes, WantedEvents};
use crate::source_error::SourceError;

/// A list of the events that a provider has, by its API.
///
/// This is one for an API of your own:
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
    /// The name of the list, such as `stripe`. Lists of one endpoint need different names, unless they are of
    /// different tenants. A name must not change: the position of the list is stored under it. So it must not
    /// depend on a key, which is rotated.
    fn name(&self) -> String;

    /// The headers of the webhook that the list gives. Default: none.
    fn headers(&self) -> Vec<HeaderName> {
        Vec::new()
    }

    /// Whether the list gives the bodies of the webhooks. If it does not, missing deliveries are asked for
    /// again: [`redeliver`](Self::redeliver). Default: `true`.
    fn has_bodies(&self) -> bool {
        true
    }

    /// For how long the list has an event. No round looks further back. Default: `None`, for as long as
    /// [`look_back`](crate::Reconcile::look_back) may be.
    fn goes_back(&self) -> Option<Duration> {
        None
    }

    /// A page of the events of a time, in any order. Events of other times are left out, so a list
    /// that has no filter by time may give them.
    ///
    /// It is given up after 2 minutes. It may be called again for the same page.
    fn page(
        &self,
        query: &PageQuery,
    ) -> impl Future<Output = Result<EventPage, SourceError>> + Send;

    /// Asks the provider to send a webhook again, by what the list has given for that
    /// ([`ListedEvent::to_redeliver`]). Default: an error.
    fn redeliver(&self, redelivery: &str) -> impl Future<Output = Result<(), SourceError>> + Send {
        let _ = redelivery;
        std::future::ready(Err(SourceError::new("it cannot be asked to send again")))
    }
}

/// Which page of a list.
#[derive(Clone, Debug)]
pub struct PageQuery {
    pub(super) since: SystemTime,
    pub(super) until: SystemTime,
    pub(super) cursor: Option<String>,
    pub(super) events: Option<Arc<WantedEvents>>,
    pub(super) versions: Vec<Arc<str>>,
}

impl PageQuery {
    /// Events of this time and after it.
    pub fn since(&self) -> SystemTime {
        self.since
    }

    /// The same in whole Unix seconds, rounded down.
    pub fn since_unix(&self) -> u64 {
        let since = self.since.duration_since(SystemTime::UNIX_EPOCH);
        since.unwrap_or_default().as_secs()
    }

    /// Events of this time and before it. Younger ones may still be under way.
    pub fn until(&self) -> SystemTime {
        self.until
    }

    /// The event types and groups, such as `invoice.*`, that the layer is for, if it ignores others by
    /// [`only`](crate::IdempotentWebhook::only) or `Events`. Others need not be listed.
    pub fn event_types(&self) -> Option<&[String]> {
        self.events.as_ref()?.types().map(EventTypes::names)
    }

    /// Whether the layer expects payloads of this version: it does if it expects none in particular, by
    /// [`expect_version`](crate::Provider::expect_version).
    pub fn expects_version(&self, version: &str) -> bool {
        self.versions.is_empty() || self.versions.iter().any(|known| **known == *version)
    }

    /// What the page before has given as the next one. `None` for the first page.
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
    /// A page. `next` is how [`EventSource::page`] finds the next one, `None` if this is the last. Another
    /// process may go on with it. No two pages of a list have the same.
    pub fn new(events: impl IntoIterator<Item = ListedEvent>, next: Option<String>) -> Self {
        Self {
            events: events.into_iter().collect(),
            next,
        }
    }
}

/// An event as a provider's list has it.
#[derive(Clone, Debug)]
pub struct ListedEvent {
    pub(crate) occurred_at: SystemTime,
    pub(super) headers: HeaderMap,
    pub(super) content: Content,
    pub(super) action: Option<String>,
    pub(crate) unusable: Option<String>,
}

/// What can be run of an event.
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

    /// An event that can only be asked for again: [`EventSource::redeliver`] gets this text. The time is that
    /// of the last attempt to deliver it.
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

    /// A header of its webhook, which is one of [`EventSource::headers`] or `content-type`.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// What qualifies its type, such as `opened` for GitHub's `pull_request`, where the list has no body that says it.
    /// Without it, an event is asked for if the layer has a handler for any action of its type.
    #[must_use]
    pub fn event_action(mut self, action: impl Into<String>) -> Self {
        self.action = Some(action.into());
        self
    }

    /// The event cannot be run, for this reason: its body is not that of the webhook, for example. If it is
    /// missing, that is told to the operator.
    #[must_use]
    pub fn unusable(mut self, reason: impl Into<String>) -> Self {
        self.unusable = Some(reason.into());
        self
    }
}
