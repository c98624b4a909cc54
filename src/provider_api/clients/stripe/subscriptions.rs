//! `StripeSubscriptions`: the webhook endpoints of a Stripe account.

use serde::Deserialize;

use super::super::client::{Api, Http};
use super::super::pages::Pages;
use super::{Page, api};
use crate::provider::Secret;
use crate::provider_api::source_error::SourceError;
use crate::provider_api::subscriptions::{Subscription, SubscriptionSource};

/// [Webhook endpoints of Stripe](https://docs.stripe.com/api/webhook_endpoints/list), `GET /v1/webhook_endpoints`, for
/// [`presets::stripe`](crate::presets::stripe).
///
/// - Rights: a restricted key with the permission to read webhook endpoints. The key determines the mode, live or test.
/// - Stripe switches off an endpoint that has not answered with 2xx for some days.
/// - `*` means all types except the ones that Stripe requires to be selected by name. The API does not say which types
///   must be selected by name. So if such a type has a handler, it is not reported as missing.
/// - An endpoint without its own version follows the account's default version.
/// - An endpoint for connected accounts looks like an endpoint of the account. If you have both at one address, set
///   [`several`](crate::subscriptions::Subscriptions::several).
/// - It does not list event destinations of version 2 of the API, nor the endpoints of other accounts, such as
///   connected ones.
/// - Limits: 25 requests a second. A comparison takes one request per 100 endpoints.
#[derive(Clone, Debug)]
pub struct StripeSubscriptions {
    api: Api,
}

#[derive(Deserialize)]
struct Endpoint {
    id: String,
    url: String,
    status: String,
    enabled_events: Vec<String>,
    api_version: Option<String>,
}

impl StripeSubscriptions {
    /// The endpoints of the account to which the API key belongs.
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

impl SubscriptionSource for StripeSubscriptions {
    fn name(&self) -> String {
        "stripe".to_owned()
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, SourceError> {
        let (mut found, mut pages, mut cursor) = (Vec::new(), Pages::default(), None);
        loop {
            let mut parameters = vec![("limit", "100".to_owned())];
            parameters.extend(cursor.map(|cursor| ("starting_after", cursor)));
            let answer = self.api.get("/v1/webhook_endpoints", &parameters).await?;
            let page: Page<Endpoint> = answer.json()?;
            cursor = pages.behind(page.data.last().map(|one| &one.id), page.has_more)?;
            found.extend(page.data.into_iter().map(read));
            if cursor.is_none() {
                return Ok(found);
            }
        }
    }

    fn leaves_out(&self) -> Option<&'static str> {
        Some(
            "event destinations of version 2, and endpoints of the other mode or of another account",
        )
    }
}

fn read(endpoint: Endpoint) -> Subscription {
    let subscription =
        Subscription::new(endpoint.id, endpoint.url).event_types(endpoint.enabled_events);
    let subscription = match endpoint.api_version {
        Some(version) => subscription.api_version(version),
        None => subscription.default_api_version(),
    };
    match &*endpoint.status {
        "enabled" => subscription,
        _ => subscription.switched_off(),
    }
}
