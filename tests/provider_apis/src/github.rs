//! <https://docs.github.com/rest/repos/webhooks#list-deliveries-for-a-repository-webhook>

use axum::extract::{Path, Query, State};
use axum::http::header::LINK;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::{Api, Event, Parameters, Refused, after, bad_request, rfc3339};

/// Ids of attempts are beyond what a float can hold.
const FIRST_ID: u64 = 3_822_373_033_388_024_001;

pub fn router() -> Router<Api> {
    let path = "/repos/octocat/hello-world/hooks/1/deliveries";
    Router::new()
        .route("/repos/octocat/hello-world/hooks", get(hooks))
        .route(path, get(list))
        .route(&format!("{path}/{{id}}/attempts"), post(redeliver))
}

async fn list(
    State(api): State<Api>,
    query: Query<Vec<(String, String)>>,
) -> Result<(HeaderMap, Json<Value>), Refused> {
    let query = Parameters::of(query);
    let limit = query.number("per_page").unwrap_or(30).min(100);
    let cursor = query.get("cursor").map(|cursor| {
        let number = cursor.strip_prefix("v1_")?;
        number.parse().ok()
    });
    if cursor == Some(None) {
        return Err(bad_request("cursor"));
    }
    let mut events = after(api.newest_first(), cursor.flatten())?;
    let has_more = events.len() as u64 > limit;
    events.truncate(limit.try_into().unwrap());
    let mut headers = HeaderMap::new();
    if let Some(last) = events.last().filter(|_| has_more) {
        let path = "https://api.github.com/repositories/1/hooks/1/deliveries";
        let link = format!(
            "<{path}?per_page={limit}&cursor=v1_0>; rel=\"prev\", \
             <{path}?per_page={limit}&cursor=v1_{}>; rel=\"next\"",
            last.number
        );
        headers.insert(LINK, link.parse().unwrap());
    }
    let attempts: Vec<Value> = events.iter().map(attempt).collect();
    Ok((headers, Json(Value::from(attempts))))
}

fn attempt(event: &Event) -> Value {
    json!({
        "id": FIRST_ID + event.number,
        "guid": format!("github-{}", event.number),
        "delivered_at": rfc3339(event.time),
        "redelivery": false,
        "duration": 0.03,
        "status": "failed to connect to host",
        "status_code": 502,
        "event": "push",
        "action": null,
        "installation_id": null,
        "repository_id": 1,
        "throttled_at": null,
    })
}

async fn redeliver(State(api): State<Api>, Path(id): Path<u64>) -> Result<StatusCode, StatusCode> {
    let number = id.checked_sub(FIRST_ID).ok_or(StatusCode::NOT_FOUND)?;
    let mut shared = api.shared();
    if !shared.events.iter().any(|event| event.number == number) {
        return Err(StatusCode::NOT_FOUND);
    }
    shared.redeliveries.push(number);
    Ok(StatusCode::ACCEPTED)
}

/// <https://docs.github.com/rest/repos/webhooks#list-repository-webhooks>
async fn hooks(
    State(api): State<Api>,
    query: Query<Vec<(String, String)>>,
) -> Result<(HeaderMap, Json<Value>), Refused> {
    let query = Parameters::of(query);
    let limit = query.number("per_page").unwrap_or(30).min(100);
    let page = query.number("page").unwrap_or(1);
    if page == 0 {
        return Err(bad_request("page"));
    }
    let all = api.hooks();
    let (first, limit) = (((page - 1) * limit) as usize, limit as usize);
    let hooks = all.iter().skip(first).take(limit);
    let mut headers = HeaderMap::new();
    if all.len() > first + limit {
        let address = "https://api.github.com/repositories/1/hooks";
        let link = format!(
            "<{address}?per_page={limit}&page={}>; rel=\"next\", <{address}?per_page={limit}&page=9>; rel=\"last\"",
            page + 1
        );
        headers.insert(LINK, link.parse().unwrap());
    }
    let hook = |hook: &super::Hook| {
        json!({
            "type": "Repository",
            "id": hook.number,
            "name": "web",
            "active": hook.is_on,
            "events": hook.types,
            "config": {
                "content_type": "json", "insecure_ssl": "0", "secret": "********", "url": hook.url,
            },
            "updated_at": "2026-06-03T00:57:16Z",
            "created_at": "2026-06-03T00:57:16Z",
            "url": format!("https://api.github.com/repos/octocat/Hello-World/hooks/{}", hook.number),
            "last_response": {
                "code": hook.last_status, "status": "unused", "message": null,
            },
        })
    };
    let hooks: Vec<Value> = hooks.map(hook).collect();
    Ok((headers, Json(Value::from(hooks))))
}
