//! <https://workos.com/docs/reference/events/list>

use axum::extract::{Query, State};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::subscriptions::{SIGNING_SECRET, page};
use super::{Api, Event, Parameters, Refused, after, bad_request, rfc3339};

pub fn router() -> Router<Api> {
    Router::new()
        .route("/events", get(list))
        .route("/webhook_endpoints", get(endpoints))
}

pub fn body(id: &str, event: Event) -> Value {
    json!({
        "object": "event",
        "id": id,
        "event": "user.created",
        "data": { "object": "user", "id": format!("user_{}", event.number) },
        "created_at": rfc3339(event.time),
        "context": {},
    })
}

async fn list(
    State(api): State<Api>,
    query: Query<Vec<(String, String)>>,
) -> Result<Json<Value>, Refused> {
    let query = Parameters::of(query);
    let types = query.get("events").unwrap_or_default();
    if !types.split(',').any(|name| name == "user.created") {
        return Err(bad_request("events"));
    }
    let limit = query.number("limit").unwrap_or(10);
    if !(1..=100).contains(&limit) {
        return Err(bad_request("limit"));
    }
    if query.get("after").is_some() && query.get("range_start").is_some() {
        return Err(bad_request("`after` and `range_start`"));
    }
    let since = query.get("range_start").map(humantime::parse_rfc3339);
    let since = since.transpose().map_err(|_| bad_request("range_start"))?;
    let cursor = query.get("after");
    let cursor = cursor.and_then(|id| id.strip_prefix("workos-")?.parse().ok());
    let mut events: Vec<Event> = after(api.oldest_first(), cursor)?
        .into_iter()
        .filter(|event| {
            let time = humantime::parse_rfc3339(&rfc3339(event.time)).unwrap();
            since.is_none_or(|since| time > since)
        })
        .collect();
    let has_more = events.len() as u64 > limit;
    events.truncate(limit.try_into().unwrap());
    let last = events.last().filter(|_| has_more);
    let data: Vec<Value> = events
        .iter()
        .map(|event| body(&format!("workos-{}", event.number), *event))
        .collect();
    Ok(Json(json!({
        "object": "list",
        "data": data,
        "list_metadata": { "after": last.map(|event| format!("workos-{}", event.number)) },
    })))
}

/// <https://workos.com/docs/reference/webhooks>
async fn endpoints(
    State(api): State<Api>,
    query: Query<Vec<(String, String)>>,
) -> Result<Json<Value>, Refused> {
    let query = Parameters::of(query);
    let limit = query.number("limit").unwrap_or(10);
    if !(1..=100).contains(&limit) {
        return Err(bad_request("limit"));
    }
    let (hooks, has_more) = page(&api, query.get("after"), "we_", limit)?;
    let endpoint = |hook: &super::Hook| {
        json!({
            "object": "webhook_endpoint",
            "id": format!("we_{}", hook.number),
            "endpoint_url": hook.url,
            "secret": SIGNING_SECRET,
            "status": if hook.is_on { "enabled" } else { "disabled" },
            "events": hook.types,
            "created_at": "2026-01-15T12:00:00.000Z",
            "updated_at": "2026-01-15T12:00:00.000Z",
        })
    };
    let data: Vec<Value> = hooks.iter().map(endpoint).collect();
    let last = hooks.last().filter(|_| has_more);
    Ok(Json(json!({
        "object": "list",
        "data": data,
        "list_metadata": { "before": null, "after": last.map(|hook| format!("we_{}", hook.number)) },
    })))
}
