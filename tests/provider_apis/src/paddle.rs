//! <https://developer.paddle.com/api-reference/notifications/list-notifications>

use axum::extract::{Query, State};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::subscriptions::{SIGNING_SECRET, page};
use super::{Api, Event, Parameters, Refused, after, bad_request, rfc3339};

pub fn router() -> Router<Api> {
    Router::new()
        .route("/notifications", get(list))
        .route("/notification-settings", get(settings))
}

pub fn body(id: &str, event: Event) -> Value {
    json!({
        "event_id": id,
        "event_type": "transaction.completed",
        "occurred_at": rfc3339(event.time),
        "notification_id": format!("ntf_{}", event.number),
        "data": { "id": format!("txn_{}", event.number), "status": "completed" },
    })
}

async fn list(
    State(api): State<Api>,
    query: Query<Vec<(String, String)>>,
) -> Result<Json<Value>, Refused> {
    let query = Parameters::of(query);
    if query.get("notification_setting_id") != Some("ntfset_1") {
        return Err(bad_request("no such destination"));
    }
    // A larger number counts as the largest allowed one.
    let limit = query.number("per_page").unwrap_or(50).min(200);
    let events = match query.get("order_by") {
        Some("id[ASC]") => api.oldest_first(),
        None | Some("id[DESC]") => api.newest_first(),
        Some(_) => return Err(bad_request("order_by")),
    };
    let cursor = query.get("after");
    let cursor = cursor.and_then(|id| id.strip_prefix("ntf_")?.parse().ok());
    let from = query.get("from").map(humantime::parse_rfc3339);
    let from = from.transpose().map_err(|_| bad_request("from"))?;
    let mut events: Vec<Event> = after(events, cursor)?
        .into_iter()
        .filter(|event| {
            let time = humantime::parse_rfc3339(&rfc3339(event.time)).unwrap();
            from.is_none_or(|from| time >= from)
        })
        .collect();
    let has_more = events.len() as u64 > limit;
    events.truncate(limit.try_into().unwrap());
    let last = events.last().map_or(0, |event| event.number);
    let data: Vec<Value> = events.iter().map(|event| notification(*event)).collect();
    Ok(Json(json!({
        "data": data,
        "meta": {
            "request_id": "01",
            // This object is also on the last page.
            "pagination": {
                "per_page": limit,
                "next": format!("https://api.paddle.com/notifications?after=ntf_{last}"),
                "has_more": has_more,
                "estimated_total": 1000,
            },
        },
    })))
}

fn notification(event: Event) -> Value {
    json!({
        "id": format!("ntf_{}", event.number),
        "type": "transaction.completed",
        "status": "failed",
        "payload": body(&format!("paddle-{}", event.number), event),
        "occurred_at": rfc3339(event.time),
        "delivered_at": null,
        "replayed_at": null,
        "origin": "event",
        "last_attempt_at": rfc3339(event.time + 1),
        "retry_at": null,
        "times_attempted": 1,
        "notification_setting_id": "ntfset_1",
    })
}

/// <https://developer.paddle.com/api-reference/notification-settings/list-notification-settings>
async fn settings(
    State(api): State<Api>,
    query: Query<Vec<(String, String)>>,
) -> Result<Json<Value>, Refused> {
    let query = Parameters::of(query);
    let limit = query.number("per_page").unwrap_or(200).min(200);
    let (hooks, has_more) = page(&api, query.get("after"), "ntfset_", limit)?;
    let setting = |hook: &super::Hook| {
        let kind = if hook.url.contains('@') {
            "email"
        } else {
            "url"
        };
        let types = hook.types.iter().map(|name| {
            json!({ "name": name, "description": "", "group": "Transaction", "available_versions": [1] })
        });
        json!({
            "id": format!("ntfset_{}", hook.number),
            "description": "Webhooks",
            "type": kind,
            "destination": hook.url,
            "active": hook.is_on,
            "api_version": hook.version.map_or(1, |version| version.parse().unwrap()),
            "include_sensitive_fields": false,
            "traffic_source": "all",
            "subscribed_events": types.collect::<Vec<_>>(),
            "endpoint_secret_key": SIGNING_SECRET,
        })
    };
    let data: Vec<Value> = hooks.iter().map(setting).collect();
    let last = hooks.last().map_or(0, |hook| hook.number);
    Ok(Json(json!({
        "data": data,
        "meta": {
            "request_id": "01",
            "pagination": {
                "per_page": limit,
                "next": format!("https://api.paddle.com/notification-settings?after=ntfset_{last}"),
                "has_more": has_more,
                "estimated_total": 1000,
            },
        },
    })))
}
