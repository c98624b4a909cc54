//! <https://docs.stripe.com/api/events/list>

use axum::extract::{Query, State};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::subscriptions::page;
use super::{Api, Event, Parameters, Refused, after, bad_request};

pub fn router() -> Router<Api> {
    Router::new()
        .route("/v1/events", get(list))
        .route("/v1/webhook_endpoints", get(endpoints))
}

pub fn body(id: &str, event: Event, pending_webhooks: u32) -> Value {
    json!({
        "id": id,
        "object": "event",
        "api_version": if event.number % 100 == 99 { "2019-02-19" } else { "2024-06-20" },
        "created": event.time,
        "data": { "object": { "id": format!("in_{}", event.number), "object": "invoice" } },
        "livemode": false,
        "pending_webhooks": pending_webhooks,
        "request": { "id": null, "idempotency_key": null },
        "type": "invoice.paid",
    })
}

async fn list(
    State(api): State<Api>,
    query: Query<Vec<(String, String)>>,
) -> Result<Json<Value>, Refused> {
    let query = Parameters::of(query);
    let limit = query.number("limit").unwrap_or(10);
    if !(1..=100).contains(&limit) {
        return Err(bad_request("limit"));
    }
    if let Some(event_type) = query.get("types[]")
        && event_type != "invoice.paid"
    {
        return Err(bad_request("the test knows one type"));
    }
    let events = api.newest_first();
    let cursor = query.get("starting_after");
    let cursor = cursor.and_then(|id| id.strip_prefix("stripe-")?.parse().ok());
    let created = |name| query.number(name);
    let mut events: Vec<Event> = after(events, cursor)?
        .into_iter()
        .filter(|event| created("created[gte]").is_none_or(|since| event.time >= since))
        .filter(|event| created("created[lte]").is_none_or(|until| event.time <= until))
        .collect();
    let has_more = events.len() as u64 > limit;
    events.truncate(limit.try_into().unwrap());
    let data: Vec<Value> = events
        .into_iter()
        .map(|event| body(&format!("stripe-{}", event.number), event, 0))
        .collect();
    Ok(Json(json!({
        "object": "list", "url": "/v1/events", "has_more": has_more, "data": data,
    })))
}

/// <https://docs.stripe.com/api/webhook_endpoints/list>
async fn endpoints(
    State(api): State<Api>,
    query: Query<Vec<(String, String)>>,
) -> Result<Json<Value>, Refused> {
    let query = Parameters::of(query);
    let limit = query.number("limit").unwrap_or(10);
    if !(1..=100).contains(&limit) {
        return Err(bad_request("limit"));
    }
    let (hooks, has_more) = page(&api, query.get("starting_after"), "we_", limit)?;
    let endpoint = |hook: &super::Hook| {
        json!({
            "id": format!("we_{}", hook.number),
            "object": "webhook_endpoint",
            "api_version": hook.version,
            "application": null,
            "created": 1680122196,
            "description": null,
            "enabled_events": hook.types,
            "livemode": false,
            "metadata": {},
            "status": if hook.is_on { "enabled" } else { "disabled" },
            "url": hook.url,
        })
    };
    let data: Vec<Value> = hooks.iter().map(endpoint).collect();
    Ok(Json(json!({
        "object": "list", "url": "/v1/webhook_endpoints", "has_more": has_more, "data": data,
    })))
}
