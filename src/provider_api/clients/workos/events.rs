//! `WorkOsEvents`: WorkOS' list of events, for reconciliation.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::client::{Api, Http, parse};
use super::super::items::{DAY, are_older, item};
use super::{Page, api};
use crate::provider::Secret;
use crate::provider::event_types::EventTypes;
use crate::provider_api::reconcile::{EventPage, EventSource, ListedEvent, PageQuery};
use crate::provider_api::source_error::SourceError;

/// [Events of WorkOS](https://workos.com/docs/events/data-syncing/events-api), `GET /events`, for
/// [`presets::workos`](crate::presets::workos).
///
/// - Listed for: 90 days. One round can cover 30 of these days ([`look_back`](crate::Reconcile::look_back)).
/// - Rights: the API key of the environment.
/// - It lists all events of the environment that have one of the given types. Pass the event types to which the webhook
///   is subscribed, each by its full name.
/// - Bodies: the event, with the same id as in the webhook. In the list, an event has `object` and `context`, which a
///   webhook may lack.
/// - Order: oldest first.
/// - Limits: 6,000 requests a minute.
#[derive(Clone, Debug)]
pub struct WorkOsEvents {
    api: Api,
    types: EventTypes,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Event {
    created_at: String,
}

impl WorkOsEvents {
    /// The events of these types, such as `user.created`.
    pub fn new<T: Into<String>>(api_key: Secret, types: impl IntoIterator<Item = T>) -> Self {
        Self {
            api: api(api_key),
            types: EventTypes::new(types),
            name: None,
        }
    }

    /// Sets another name for the list. If an endpoint has several lists, such as for two environments that send to one
    /// route, each list needs its own name. Default: `workos`.
    ///
    /// The name must not change, because the position of the list is stored under it. Under a new name, the list has no
    /// position, and starts with a first round.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets how the API is called.
    #[must_use]
    pub fn http(mut self, http: Http) -> Self {
        self.api.http(http);
        self
    }
}

impl EventSource for WorkOsEvents {
    fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| "workos".to_owned())
    }

    fn goes_back(&self) -> Option<Duration> {
        Some(30 * DAY)
    }

    async fn page(&self, query: &PageQuery) -> Result<EventPage, SourceError> {
        let mut parameters = vec![("limit", "100".to_owned()), ("order", "asc".to_owned())];
        parameters.push(("events", self.types.names().join(",")));
        // The query has either the cursor or the start time, because WorkOS refuses a query with both.
        parameters.push(match query.cursor() {
            Some(cursor) => ("after", cursor.to_owned()),
            None => {
                let since = humantime::format_rfc3339_millis(query.since());
                ("range_start", since.to_string())
            }
        });
        let page: Page<Box<RawValue>> = self.api.get("/events", &parameters).await?.json()?;
        let mut events = Vec::with_capacity(page.data.len());
        for raw in &page.data {
            events.push(item(query.since(), raw, |json| {
                let event: Event = parse(json)?;
                // Some times in WorkOS' documentation have neither `T` nor `Z`.
                let time = humantime::parse_rfc3339_weak(&event.created_at)?;
                Ok(ListedEvent::new(time, raw.get().to_owned()))
            }));
        }
        // WorkOS has been seen to ignore `order`. If the list is sorted newest first, all further pages are older.
        let is_older = are_older(&events, query.since());
        let next = page.list_metadata.after.filter(|_| !is_older);
        Ok(EventPage::new(events, next))
    }
}
