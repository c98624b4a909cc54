//! `PaddleNotifications`: Paddle's list of notifications, for reconciliation.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::client::{Api, Http, parse};
use super::super::items::{DAY, item, last_id};
use super::{Page, api};
use crate::provider::Secret;
use crate::provider_api::reconcile::{EventPage, EventSource, ListedEvent, PageQuery};
use crate::provider_api::source_error::SourceError;

/// [Notifications of Paddle Billing](https://developer.paddle.com/api-reference/notifications/list-notifications),
/// `GET /notifications`, for [`presets::paddle`](crate::presets::paddle).
///
/// - Listed for: 90 days.
/// - Rights: an API key with `notification.read`. A key of the sandbox needs the address
///   `https://sandbox-api.paddle.com` ([`Http::base`]).
/// - It lists the notifications for one notification destination, delivered or not.
/// - Bodies: the webhook's body, with its `notification_id`. The members may be in a different order.
/// - Order: oldest first.
/// - It does not list events that occurred while the destination did not exist, or was not subscribed to them.
/// - Limits: 240 requests a minute per IP address. A 429 has `Retry-After`.
#[derive(Clone, Debug)]
pub struct PaddleNotifications {
    api: Api,
    destination: String,
}

#[derive(Deserialize)]
struct Notification {
    occurred_at: String,
    payload: Box<RawValue>,
}

impl PaddleNotifications {
    /// The notifications for a destination, such as `ntfset_01gkpjp8bkm3tm53kdgkx6sms7`.
    pub fn new(api_key: Secret, destination: impl Into<String>) -> Self {
        Self {
            api: api(api_key),
            destination: destination.into(),
        }
    }

    /// Sets how the API is called.
    #[must_use]
    pub fn http(mut self, http: Http) -> Self {
        self.api.http(http);
        self
    }
}

impl EventSource for PaddleNotifications {
    fn name(&self) -> String {
        format!("paddle {}", self.destination)
    }

    fn goes_back(&self) -> Option<Duration> {
        Some(90 * DAY)
    }

    async fn page(&self, query: &PageQuery) -> Result<EventPage, SourceError> {
        // The query has no upper bound: Paddle may compare the bound with the time of the notification, which is later
        // than the time of the event.
        let since = humantime::format_rfc3339_micros(query.since()).to_string();
        let mut parameters = vec![
            ("notification_setting_id", self.destination.clone()),
            ("per_page", "200".to_owned()),
            ("order_by", "id[ASC]".to_owned()),
            ("from", since),
        ];
        parameters.extend(query.cursor().map(|cursor| ("after", cursor.to_owned())));
        let page: Page<Box<RawValue>> =
            self.api.get("/notifications", &parameters).await?.json()?;
        let mut events = Vec::with_capacity(page.data.len());
        for raw in &page.data {
            events.push(item(query.since(), raw, |json| {
                let notification: Notification = parse(json)?;
                let time = humantime::parse_rfc3339(&notification.occurred_at)?;
                Ok(ListedEvent::new(
                    time,
                    notification.payload.get().to_owned(),
                ))
            }));
        }
        let has_more = page.meta.pagination.has_more;
        let next = has_more.then(|| last_id(&page.data)).transpose()?;
        Ok(EventPage::new(events, next))
    }
}
