//! <https://shopify.dev/docs/api/admin-graphql/latest/queries/webhookSubscriptions>

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::subscriptions::page;
use super::{Api, Hook, Refused, bad_request};

pub fn router() -> Router<Api> {
    Router::new().route("/admin/api/2026-10/graphql.json", post(query))
}

/// As GraphQL APIs do, this API answers errors with the status 200.
async fn query(State(api): State<Api>, Json(asked): Json<Value>) -> Result<Json<Value>, Refused> {
    let text = asked["query"].as_str().unwrap_or_default();
    if !text.starts_with("query") || text.contains("mutation") {
        return Err(bad_request("it only reads"));
    }
    let Some(name) = text
        .split_whitespace()
        .find(|word| word.starts_with("webhookSubscriptions"))
    else {
        return Ok(Json(json!({
            "errors": [{ "message": "Field does not exist", "extensions": { "code": "undefinedField" } }],
        })));
    };
    assert!(name.contains("first:"), "a connection needs a limit");
    let (hooks, has_more) = page(&api, asked["variables"]["after"].as_str(), "cursor_", 100)?;
    // At Shopify, each topic has its own subscription, so each topic is one node.
    let node = |hook: &Hook| {
        assert_eq!(hook.types.len(), 1, "a subscription has one topic");
        json!({
            "id": format!("gid://shopify/WebhookSubscription/{}", hook.number),
            "topic": hook.types[0],
            "uri": hook.url,
            "apiVersion": { "handle": hook.version.unwrap_or("2026-10") },
        })
    };
    let nodes: Vec<Value> = hooks.iter().map(node).collect();
    let last = hooks.last().map(|hook| format!("cursor_{}", hook.number));
    Ok(Json(json!({
        "data": { "webhookSubscriptions": {
            "nodes": nodes,
            "pageInfo": { "hasNextPage": has_more, "endCursor": last },
        } },
        "extensions": { "cost": { "requestedQueryCost": 102, "actualQueryCost": 3 } },
    })))
}
