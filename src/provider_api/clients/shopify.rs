//! `ShopifySubscriptions`: the webhook subscriptions of a Shopify shop.

use http::HeaderName;
use serde::Deserialize;

use super::client::{Api, Authorization, Http};
use super::pages::Pages;
use crate::provider::Secret;
use crate::provider_api::source_error::SourceError;
use crate::provider_api::subscriptions::{Subscription, SubscriptionSource};

/// The version of the API that is called, not of the events.
const API_VERSION: &str = "2026-10";

/// Privacy topics, to which each app must subscribe in its configuration.
const MANDATORY: [&str; 3] = ["customers/data_request", "customers/redact", "shop/redact"];

const QUERY: &str = "query($after: String) { webhookSubscriptions(first: 100, after: $after) { \
                     nodes { id topic uri apiVersion { handle } } \
                     pageInfo { hasNextPage endCursor } } }";

/// [Webhook subscriptions of a Shopify shop](https://shopify.dev/docs/api/admin-graphql/latest/queries/webhookSubscriptions),
/// read with the query `webhookSubscriptions` of the GraphQL Admin API, for
/// [`presets::shopify`](crate::presets::shopify). The older REST API is not used, because it does not list the
/// subscriptions of new apps.
///
/// - Rights: an access token of the app for the shop.
/// - Each topic is a separate subscription. The API writes `orders/create` as `ORDERS_CREATE`.
/// - The version is the version of the events, such as `2026-10`, as in the header `x-shopify-api-version` of a
///   delivery.
/// - Shopify deletes a subscription that has failed 8 times in a row.
/// - **It does not list the app's own subscriptions in `shopify.app.toml`**, nor the subscriptions of other apps. The
///   three mandatory topics, `customers/data_request`, `customers/redact` and `shop/redact`, are subscribed only in
///   `shopify.app.toml`. If one of them has a handler, the report contains a hint that the API does not list it, and no
///   error.
/// - Limits: by the cost of queries. A comparison takes one query per 100 topics.
#[derive(Clone, Debug)]
pub struct ShopifySubscriptions {
    api: Api,
    shop: String,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    data: Option<Data>,
    #[serde(default)]
    errors: Vec<GraphQlError>,
}

#[derive(Deserialize)]
struct GraphQlError {
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    webhook_subscriptions: Connection,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Connection {
    nodes: Vec<Node>,
    page_info: PageInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageInfo {
    has_next_page: bool,
    end_cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    id: String,
    topic: String,
    uri: String,
    api_version: ApiVersion,
}

#[derive(Deserialize)]
struct ApiVersion {
    handle: String,
}

impl ShopifySubscriptions {
    /// The subscriptions of a shop, such as `acme.myshopify.com`, read with the app's access token for the shop.
    pub fn new(shop: impl Into<String>, access_token: Secret) -> Self {
        let shop = shop.into();
        let header = HeaderName::from_static("x-shopify-access-token");
        Self {
            api: Api::new(
                format!("https://{shop}"),
                Authorization::In(header, access_token),
            ),
            shop,
        }
    }

    /// Sets how the API is called.
    #[must_use]
    pub fn http(mut self, http: Http) -> Self {
        self.api.http(http);
        self
    }

    async fn page(&self, after: Option<&str>) -> Result<Connection, SourceError> {
        let query = serde_json::json!({ "query": QUERY, "variables": { "after": after } });
        let path = format!("/admin/api/{API_VERSION}/graphql.json");
        let answer: Answer = self.api.query(&path, query.to_string()).await?.json()?;
        // GraphQL reports errors with the status 200.
        if let Some(error) = answer.errors.first() {
            let message = self.api.shown(&error.message);
            return Err(SourceError::new(format_args!("{path}: {message}")));
        }
        let data = answer.data.ok_or_else(|| {
            SourceError::new(format_args!(
                "{path}: the answer has neither data nor errors"
            ))
        })?;
        Ok(data.webhook_subscriptions)
    }
}

impl SubscriptionSource for ShopifySubscriptions {
    fn name(&self) -> String {
        format!("shopify {}", self.shop)
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, SourceError> {
        let (mut found, mut pages, mut after) = (Vec::new(), Pages::default(), None);
        loop {
            let page = self.page(after.as_deref()).await?;
            found.extend(page.nodes.into_iter().map(read));
            let info = page.page_info;
            after = pages.behind(info.end_cursor.as_ref(), info.has_next_page)?;
            if after.is_none() {
                return Ok(found);
            }
        }
    }

    fn leaves_out(&self) -> Option<&'static str> {
        Some("subscriptions in shopify.app.toml, and subscriptions of other apps")
    }

    fn types_not_listed(&self) -> &'static [&'static str] {
        &MANDATORY
    }
}

fn read(node: Node) -> Subscription {
    let mut subscription = Subscription::new(node.id, node.uri)
        .event_types([node.topic])
        .api_version(node.api_version.handle);
    subscription.are_types_in_capitals = true;
    subscription
}
