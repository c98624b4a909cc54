//! `PaddleSubscriptions`: the notification destinations of a Paddle account.

use serde::Deserialize;

use super::super::client::{Api, Http};
use super::super::pages::Pages;
use super::{Page, api};
use crate::provider::Secret;
use crate::provider_api::source_error::SourceError;
use crate::provider_api::subscriptions::{Subscription, SubscriptionSource};

/// [Notification destinations of Paddle Billing](https://developer.paddle.com/api-reference/notification-settings/list-notification-settings),
/// `GET /notification-settings`, for [`presets::paddle`](crate::presets::paddle).
///
/// - Rights: an API key with `notification_setting.read`. A key of the sandbox needs the address
///   `https://sandbox-api.paddle.com` ([`Http::base`]).
/// - Destinations that are e-mail addresses are left out, and so are destinations that are only for simulations.
/// - The version is a number, such as `1`.
/// - Paddle's answer contains the signing secret of each destination, which this crate does not read.
/// - Limits: 240 requests a minute per IP address. A comparison takes one request per 200 destinations.
#[derive(Clone, Debug)]
pub struct PaddleSubscriptions {
    api: Api,
}

#[derive(Deserialize)]
struct Setting {
    id: String,
    /// An HTTP URL, or an e-mail address.
    destination: String,
    active: bool,
    api_version: u64,
    subscribed_events: Vec<EventType>,
    /// `platform`, `simulation` or `all`.
    #[serde(default)]
    traffic_source: Option<String>,
}

#[derive(Deserialize)]
struct EventType {
    name: String,
}

impl PaddleSubscriptions {
    /// The destinations of the account to which the API key belongs.
    pub fn new(api_key: Secret) -> Self {
        Self { api: api(api_key) }
    }

    /// Sets how the API is called.
    #[must_use]
    pub fn http(mut self, http: Http) -> Self {
        self.api.http(http);
        self
    }
}

impl SubscriptionSource for PaddleSubscriptions {
    fn name(&self) -> String {
        "paddle".to_owned()
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, SourceError> {
        let (mut found, mut pages, mut cursor) = (Vec::new(), Pages::default(), None);
        loop {
            let mut parameters = vec![("per_page", "200".to_owned())];
            parameters.extend(cursor.map(|cursor| ("after", cursor)));
            let answer = self.api.get("/notification-settings", &parameters).await?;
            let page: Page<Setting> = answer.json()?;
            let has_more = page.meta.pagination.has_more;
            cursor = pages.behind(page.data.last().map(|one| &one.id), has_more)?;
            found.extend(page.data.into_iter().filter_map(read));
            if cursor.is_none() {
                return Ok(found);
            }
        }
    }

    fn leaves_out(&self) -> Option<&'static str> {
        Some(
            "destinations of the other system (live or sandbox), and destinations for simulations only",
        )
    }
}

fn read(setting: Setting) -> Option<Subscription> {
    if setting.traffic_source.as_deref() == Some("simulation") {
        return None;
    }
    let types = setting.subscribed_events.into_iter().map(|one| one.name);
    let subscription = Subscription::new(setting.id, setting.destination)
        .event_types(types)
        .api_version(setting.api_version.to_string());
    Some(match setting.active {
        true => subscription,
        false => subscription.switched_off(),
    })
}
