//! `WorkOsSubscriptions`: the webhook endpoints of a WorkOS environment.

use serde::Deserialize;

use super::super::client::{Api, Http};
use super::super::pages::Pages;
use super::{Page, api};
use crate::provider::Secret;
use crate::provider_api::source_error::SourceError;
use crate::provider_api::subscriptions::{Subscription, SubscriptionSource};

/// [Webhook endpoints of WorkOS](https://workos.com/docs/reference/webhooks), `GET /webhook_endpoints`, for
/// [`presets::workos`](crate::presets::workos).
///
/// - Rights: the API key of the environment.
/// - WorkOS' events have no versions. Its answer contains the signing secret of each endpoint, which this crate does
///   not read.
/// - It does not list endpoints of another environment.
/// - Limits: 6,000 requests a minute. A comparison takes one request per 100 endpoints.
#[derive(Clone, Debug)]
pub struct WorkOsSubscriptions {
    api: Api,
}

#[derive(Deserialize)]
struct Endpoint {
    id: String,
    endpoint_url: String,
    status: String,
    events: Vec<String>,
}

impl WorkOsSubscriptions {
    /// The endpoints of the environment to which the API key belongs.
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

impl SubscriptionSource for WorkOsSubscriptions {
    fn name(&self) -> String {
        "workos".to_owned()
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, SourceError> {
        let (mut found, mut pages, mut cursor) = (Vec::new(), Pages::default(), None);
        loop {
            let mut parameters = vec![("limit", "100".to_owned())];
            parameters.extend(cursor.map(|cursor| ("after", cursor)));
            let page: Page<Endpoint> = self
                .api
                .get("/webhook_endpoints", &parameters)
                .await?
                .json()?;
            cursor = pages.next(page.list_metadata.after)?;
            found.extend(page.data.into_iter().map(read));
            if cursor.is_none() {
                return Ok(found);
            }
        }
    }

    fn leaves_out(&self) -> Option<&'static str> {
        Some("endpoints of another environment")
    }
}

fn read(endpoint: Endpoint) -> Subscription {
    let subscription =
        Subscription::new(endpoint.id, endpoint.endpoint_url).event_types(endpoint.events);
    match &*endpoint.status {
        "enabled" => subscription,
        _ => subscription.switched_off(),
    }
}
