//! `ChargebeeEvents`: Chargebee's list of events, for reconciliation.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::client::{Api, Authorization, Http, parse};
use super::items::item;
use crate::provider::Secret;
use crate::provider::event_types::EventTypes;
use crate::provider_api::reconcile::{EventPage, EventSource, ListedEvent, PageQuery};
use crate::provider_api::source_error::SourceError;
use crate::transaction::pg_time::from_unix_time;

/// [Events of Chargebee](https://apidocs.chargebee.com/docs/api/events/list-events), `GET /api/v2/events`, for
/// [`presets::chargebee`](crate::presets::chargebee). Chargebee itself recommends polling this list.
///
/// - Listed for: not documented for the API; Chargebee's own pages show 90 days.
/// - Rights: an API key of the site.
/// - It lists all events of the site, regardless of which webhook they were for. So pass the event types to which the
///   webhook is subscribed.
/// - Bodies: the event, as in the webhook, except that `webhooks` shows the current state. The list uses version 2 of
///   the API; a webhook of version 1 has a different `content`.
/// - Order: oldest first.
/// - Limits: 150 requests a minute or more, depending on the plan.
#[derive(Clone, Debug)]
pub struct ChargebeeEvents {
    api: Api,
    site: String,
    types: EventTypes,
}

#[derive(Deserialize)]
struct Page {
    list: Vec<Box<RawValue>>,
    next_offset: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    event: Box<RawValue>,
}

#[derive(Deserialize)]
struct Event {
    occurred_at: u64,
    event_type: String,
}

impl ChargebeeEvents {
    /// The events of a site, such as `acme-test`.
    ///
    /// `types` are the event types to which the webhook is subscribed, such as `subscription_created`,
    /// `subscription_*`, or `*` for all.
    pub fn new<T: Into<String>>(
        site: impl Into<String>,
        api_key: Secret,
        types: impl IntoIterator<Item = T>,
    ) -> Self {
        let site = site.into();
        let address = format!("https://{site}.chargebee.com");
        Self {
            api: Api::new(address, Authorization::User(api_key)),
            site,
            types: EventTypes::new(types),
        }
    }

    /// Sets how the API is called.
    #[must_use]
    pub fn http(mut self, http: Http) -> Self {
        self.api.http(http);
        self
    }
}

impl EventSource for ChargebeeEvents {
    fn name(&self) -> String {
        format!("chargebee {}", self.site)
    }

    async fn page(&self, query: &PageQuery) -> Result<EventPage, SourceError> {
        // Chargebee does not document whether `after` includes the given second, so the query starts one second
        // earlier.
        let after = query.since_unix().saturating_sub(1);
        let mut parameters = vec![
            ("limit", "100".to_owned()),
            ("sort_by[asc]", "occurred_at".to_owned()),
            ("occurred_at[after]", after.to_string()),
        ];
        parameters.extend(query.cursor().map(|cursor| ("offset", cursor.to_owned())));
        let page: Page = self.api.get("/api/v2/events", &parameters).await?.json()?;
        let mut events = Vec::with_capacity(page.list.len());
        for raw in &page.list {
            let mut is_of_type = true;
            let event = item(query.since(), raw, |json| {
                let Item { event: raw } = parse(json)?;
                let event: Event = parse(raw.get().as_bytes())?;
                is_of_type = self.types.have(&event.event_type);
                let time = from_unix_time(event.occurred_at as f64);
                Ok(ListedEvent::new(time, raw.get().to_owned()))
            });
            events.extend(is_of_type.then_some(event));
        }
        Ok(EventPage::new(events, page.next_offset))
    }
}
