//! <https://apidocs.chargebee.com/docs/api/events/list-events>

use axum::extract::{Query, State};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::{Api, Event, Parameters, Refused, after, bad_request};

pub fn router() -> Router<Api> {
    Router::new().route("/api/v2/events", get(list))
}

pub fn body(id: &str, event: Event) -> Value {
    json!({
        "id": id,
        "occurred_at": event.time,
        "source": "api",
        "object": "event",
        "api_version": "v2",
        "event_type": "invoice_generated",
        "content": { "invoice": { "id": event.number.to_string(), "object": "invoice" } },
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
    if query.get("sort_by[asc]") != Some("occurred_at") {
        return Err(bad_request("the test knows one order"));
    }
    let cursor = match query.get("offset") {
        None => None,
        Some(offset) => {
            let parts: Vec<String> =
                serde_json::from_str(offset).map_err(|_| bad_request("offset"))?;
            Some(parts[1].parse().map_err(|_| bad_request("offset"))?)
        }
    };
    let since = query.number("occurred_at[after]").unwrap_or_default();
    let mut events: Vec<Event> = after(api.oldest_first(), cursor)?
        .into_iter()
        .filter(|event| event.time > since)
        .collect();
    let has_more = events.len() as u64 > limit;
    events.truncate(limit.try_into().unwrap());
    let list: Vec<Value> = events.iter().map(|event| item(*event)).collect();
    let mut page = json!({ "list": list });
    // This field is present only if there are more events.
    if let Some(last) = events.last().filter(|_| has_more) {
        let offset = json!([format!("{}000", last.time), last.number.to_string()]);
        page["next_offset"] = Value::from(offset.to_string());
    }
    Ok(Json(page))
}

fn item(event: Event) -> Value {
    let mut body = body(&format!("chargebee-{}", event.number), event);
    body["webhooks"] = json!([{ "id": "whv2_1", "webhook_status": "failed" }]);
    json!({ "event": body })
}
