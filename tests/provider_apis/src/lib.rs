//! Imitates the APIs of providers that list events and subscriptions, with the paging, the limits and the errors that
//! their documentation shows.

mod chargebee;
mod github;
mod paddle;
mod shopify;
mod source;
mod stripe;
mod subscriptions;
mod workos;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::extract::{Query, Request, State};
use axum::http::header::{AUTHORIZATION, RETRY_AFTER, USER_AGENT};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use idempotent_webhook::provider::signature::BasicCredentials;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Provider, Secret, presets};
use serde_json::Value;
use tokio::net::TcpListener;

pub use source::source;
pub use subscriptions::{Hook, SUBSCRIPTIONS, at, subscriptions};

pub const PROVIDERS: [&str; 5] = ["chargebee", "github", "paddle", "stripe", "workos"];

/// The API key of each API.
pub const KEY: &str = "sk_test_of_the_api";

/// An event. Its id contains its number, such as `stripe-7`.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub number: u64,
    /// The time of the event in Unix seconds.
    pub time: u64,
}

/// An answer of an API instead of a page.
#[derive(Clone, Copy, Debug)]
pub enum Refusal {
    /// 429, with `Retry-After` or without it.
    TooMany(Option<u64>),
    /// 403, in the form of GitHub's rate limit, until this Unix second.
    Exhausted(u64),
    Broken,
    Html,
    Unprocessable,
    /// The answer of a proxy that shows the request it got.
    Echo,
    /// JSON in an unexpected form.
    Malformed,
}

/// The API of one provider. Clones share their state.
#[derive(Clone)]
pub struct Api {
    provider: &'static str,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    events: Vec<Event>,
    hooks: Vec<Hook>,
    refusals: VecDeque<Option<Refusal>>,
    /// The paths and queries of the requests.
    requests: Vec<String>,
    /// The numbers of the events that GitHub is to deliver again.
    redeliveries: Vec<u64>,
    /// How long each answer is delayed.
    delay: Duration,
}

impl Api {
    /// Serves the API on loopback.
    pub async fn start(provider: &'static str) -> (Self, SocketAddr) {
        let api = Self {
            provider,
            shared: Arc::default(),
        };
        let router = match provider {
            "chargebee" => chargebee::router(),
            "github" => github::router(),
            "paddle" => paddle::router(),
            "shopify" => shopify::router(),
            "stripe" => stripe::router(),
            _ => workos::router(),
        };
        let router: Router = router
            .layer(middleware::from_fn_with_state(api.clone(), guard))
            .with_state(api.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        (api, address)
    }

    fn shared(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap()
    }

    pub fn add(&self, event: Event) {
        self.shared().events.push(event);
    }

    /// Replaces all subscriptions by these.
    pub fn set_hooks(&self, hooks: impl IntoIterator<Item = Hook>) {
        self.shared().hooks = hooks.into_iter().collect();
    }

    fn hooks(&self) -> Vec<Hook> {
        self.shared().hooks.clone()
    }

    /// Queues this refusal. Each request takes the next item from the queue.
    pub fn refuse(&self, refusal: Refusal) {
        self.shared().refusals.push_back(Some(refusal));
    }

    /// Queues a normal answer, in the same queue as refusals.
    pub fn pass(&self) {
        self.shared().refusals.push_back(None);
    }

    /// Delays each answer by this time.
    pub fn delay(&self, delay: Duration) {
        self.shared().delay = delay;
    }

    pub fn requests(&self) -> Vec<String> {
        self.shared().requests.clone()
    }

    pub fn take_redeliveries(&self) -> Vec<u64> {
        std::mem::take(&mut self.shared().redeliveries)
    }

    /// The events, newest first.
    fn newest_first(&self) -> Vec<Event> {
        let mut events = self.shared().events.clone();
        events.sort_by_key(|event| std::cmp::Reverse((event.time, event.number)));
        events
    }

    fn oldest_first(&self) -> Vec<Event> {
        let mut events = self.newest_first();
        events.reverse();
        events
    }
}

/// Refuses a request that is not authorized, and a request beyond the rate limit, as each of these providers does.
async fn guard(State(api): State<Api>, request: Request, next: Next) -> Response {
    let authorization = match api.provider {
        "shopify" => request.headers().get("x-shopify-access-token"),
        _ => request.headers().get(AUTHORIZATION),
    };
    let expected = match api.provider {
        "shopify" => KEY.to_owned(),
        // The key as the user, with an empty password.
        "chargebee" => "Basic c2tfdGVzdF9vZl90aGVfYXBpOg==".to_owned(),
        _ => format!("Bearer {KEY}"),
    };
    if authorization.is_none_or(|value| value != &*expected) {
        let masked = r#"{"error":{"type":"invalid_request_error","message":"Invalid API Key provided: sk_***"}}"#;
        return (StatusCode::UNAUTHORIZED, masked).into_response();
    }
    // GitHub requires this header.
    if !request.headers().contains_key(USER_AGENT) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let (refusal, delay) = {
        let mut shared = api.shared();
        shared.requests.push(request.uri().to_string());
        (shared.refusals.pop_front().flatten(), shared.delay)
    };
    tokio::time::sleep(delay).await;
    match refusal {
        None => next.run(request).await,
        Some(Refusal::TooMany(after)) => {
            let mut headers = HeaderMap::new();
            headers.extend(after.map(|seconds| (RETRY_AFTER, seconds.into())));
            let text = r#"{"error":{"code":"rate_limit","type":"invalid_request_error"}}"#;
            (StatusCode::TOO_MANY_REQUESTS, headers, text).into_response()
        }
        Some(Refusal::Exhausted(until)) => {
            let headers = [
                ("x-ratelimit-remaining", "0".to_owned()),
                ("x-ratelimit-reset", until.to_string()),
            ];
            (StatusCode::FORBIDDEN, headers, "API rate limit exceeded").into_response()
        }
        Some(Refusal::Broken) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Some(Refusal::Unprocessable) => StatusCode::UNPROCESSABLE_ENTITY.into_response(),
        Some(Refusal::Echo) => {
            let echo = format!("{:?}", request.headers());
            (StatusCode::BAD_GATEWAY, echo).into_response()
        }
        Some(Refusal::Malformed) => r#"{"data":[{"id":7}],"has_more":"no"}"#.into_response(),
        Some(Refusal::Html) => "<!DOCTYPE html><title>Maintenance</title>".into_response(),
    }
}

/// The parameters of a query.
#[derive(Clone)]
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn of(query: Query<Vec<(String, String)>>) -> Self {
        Self(query.0)
    }

    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }
}

type Refused = (StatusCode, String);

fn bad_request(reason: &str) -> Refused {
    (StatusCode::BAD_REQUEST, reason.to_owned())
}

/// The events after the position of a cursor, which must be known.
fn after(events: Vec<Event>, known: Option<u64>) -> Result<Vec<Event>, Refused> {
    let Some(number) = known else {
        return Ok(events);
    };
    let place = events.iter().position(|event| event.number == number);
    let place = place.ok_or_else(|| bad_request("no such cursor"))?;
    Ok(events[place + 1..].to_vec())
}

fn rfc3339(seconds: u64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    humantime::format_rfc3339_micros(time).to_string()
}

/// The API key, which is also the secret of providers that sign.
const CREDENTIALS: &str = "user:under fire";

/// The secret that the applications use.
pub fn secret() -> Secret {
    Secret::new(CREDENTIALS).unwrap()
}

pub fn preset(provider: &str) -> Provider {
    match provider {
        "chargebee" => presets::chargebee(CREDENTIALS.parse::<BasicCredentials>().unwrap()),
        "github" => presets::github(secret()),
        "paddle" => presets::paddle(secret()),
        "shopify" => presets::shopify(secret()),
        "stripe" => presets::stripe(secret()),
        _ => presets::workos(secret()),
    }
}

/// The body of the webhook of an event.
fn body(provider: &str, event: Event) -> Value {
    let id = format!("{provider}-{}", event.number);
    match provider {
        "chargebee" => chargebee::body(&id, event),
        "paddle" => paddle::body(&id, event),
        "stripe" => stripe::body(&id, event, 1),
        "workos" => workos::body(&id, event),
        _ => serde_json::json!({ "ref": "refs/heads/main" }),
    }
}

/// The signed webhook of an event.
pub fn webhook(provider: &str, event: Event) -> TestDelivery {
    let delivery = TestDelivery::new(&preset(provider)).body(body(provider, event).to_string());
    match provider {
        "github" => delivery
            .id(format!("github-{}", event.number))
            .event_type("push"),
        _ => delivery,
    }
}
