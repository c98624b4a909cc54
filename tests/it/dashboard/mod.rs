//! Guarantees D1 to D5: the dashboard, over HTTP. `tests/browser` tests it in a browser.

mod actions;
mod api;
mod authorization;
mod cost;
mod delivery;
mod environments;
mod erasure;
mod lists;
mod overview;
mod places;
mod programs;
mod reconciliation;
#[expect(dead_code, reason = "the menu is for the dashboard")]
#[path = "../../../src/dashboard/page_list.rs"]
mod page_list;
mod sites;

use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, Method, Request, StatusCode};
use axum::routing::post;
use http_body_util::BodyExt;
use idempotent_webhook::dashboard::{Access, Dashboard};
use idempotent_webhook::recovery::{Filter, KeptState};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    DedupeTx, Delivery, Endpoint, Events, HandlerError, IdempotentWebhook, Keep, Secret, Secrets,
    presets,
};
use serde_json::Value;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{PgPool, Postgres, Transaction};
use tower::ServiceExt;

pub use self::authorization::TWO_OF_ALL;
use self::page_list::{PAGES, Page, Right, Takes};
use crate::support::{
    Database, Failing, NOTHING_KEPT, SOON, TestApp, assert_rows, endpoint, gated, github,
    github_delivery, insert_effect, logged, recover, secret, soon, spawn_send, write_effect,
};

/// The addresses of each page, on a database with a dead delivery `a`, and with an action if the
/// page needs one.
const fn addresses(page: Page) -> &'static [&'static str] {
    match page {
        Page::Overview => &["overview"],
        Page::Endpoint => &["endpoint?endpoint=test"],
        Page::Deliveries => &[
            "deliveries?state=processed",
            "deliveries",
            "deliveries?state=due",
        ],
        Page::Delivery => &["delivery?endpoint=test&id=a"],
        Page::Payload => &["payload?endpoint=test&id=a"],
        Page::Capture => &["capture?endpoint=test&id=a"],
        Page::Rejected => &["rejected"],
        Page::Lookup => &["lookup", "lookup?ids=a"],
        Page::Actions => &["actions"],
        Page::Action => &["action?id=1"],
        Page::Confirm => &["confirm?action=discard&endpoint=test&id=a"],
        Page::Act => &["act?action=retry&endpoint=test&id=a"],
        Page::Cancel => &["cancel?id=1"],
        Page::Status => &["status", "status?endpoint=test"],
        Page::Why => &["why?id=a", "why?id=unknown"],
    }
}

/// The pages that an operator without access to payloads sees before any action exists.
fn pages() -> impl Iterator<Item = &'static str> {
    PAGES
        .iter()
        .filter(|entry| entry.takes != Takes::Post && entry.needs != Right::SeePayloads)
        .filter(|entry| entry.page != Page::Action && !entry.is_for_programs)
        .flat_map(|entry| addresses(entry.page).iter().copied())
}

/// The pages that exist only as JSON.
fn for_programs() -> impl Iterator<Item = String> {
    let entries = PAGES.iter().filter(|entry| entry.is_for_programs);
    entries
        .flat_map(|entry| addresses(entry.page))
        .map(|address| format!("api/{address}"))
}

/// A response of the dashboard.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    #[track_caller]
    fn shows(&self, text: &str) {
        assert!(self.text().contains(text), "{text}: {}", self.text());
    }

    #[track_caller]
    fn hides(&self, text: &str) {
        assert!(!self.text().contains(text), "{text}: {}", self.text());
    }
}

/// A dashboard, as a user with certain rights sees it.
struct Board(Router);

impl Board {
    fn of(pool: &PgPool, access: Access) -> Self {
        let dashboard = Dashboard::new(pool.clone()).authorize(move |_| access.clone());
        Self(dashboard.into_router())
    }

    fn operator(pool: &PgPool) -> Self {
        Self::of(pool, Access::operate().with_payloads().named("ada"))
    }

    async fn send(&self, request: Request<Body>) -> Answer {
        let (head, body) = self.0.clone().oneshot(request).await.unwrap().into_parts();
        Answer {
            status: head.status,
            headers: head.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    async fn get(&self, page: &str) -> Answer {
        // A browser sends `none` if the user has typed the address.
        let request = Request::get(format!("/{page}")).header("sec-fetch-site", "none");
        self.send(request.body(Body::empty()).unwrap()).await
    }

    /// Gets a page that must exist.
    async fn page(&self, page: &str) -> Answer {
        let answer = self.get(page).await;
        assert_eq!(answer.status, 200, "{page}: {}", answer.text());
        answer
    }

    /// Gets the JSON form of a page, as a program does.
    async fn json(&self, page: &str) -> Value {
        let request = Request::get(format!("/api/{page}")).body(Body::empty());
        let answer = self.send(request.unwrap()).await;
        assert_eq!(answer.status, 200, "{page}: {}", answer.text());
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(answer.header("cache-control"), "no-store");
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// Posts a form, as a page of the dashboard does.
    async fn post(&self, page: &str, form: &str) -> Answer {
        let headers = [("sec-fetch-site", "same-origin")];
        self.post_from(page, form, &headers).await
    }

    async fn post_from(&self, page: &str, form: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::post(format!("/{page}")).header("host", "ops.example");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Body::from(form.to_owned());
        self.send(request.body(body).unwrap()).await
    }
}

/// The header of a request that a program posts.
const JSON: [(&str, &str); 1] = [("content-type", "application/json; charset=utf-8")];

impl Board {
    async fn order(&self, page: &str, order: &Value, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::post(format!("/api/{page}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Body::from(order.to_string());
        self.send(request.body(body).unwrap()).await
    }
}

/// An application with a dead delivery `a`.
async fn with_a_dead_delivery() -> TestApp {
    let set = |keep: Keep| keep.retry_delays([]);
    let app = TestApp::keeping(set, Failing::times(1).handler()).await;
    let dead = github_delivery()
        .id("a")
        .event_type("push")
        .uri("/?token=geheim")
        .body(r#"{"id":12345678901234567890}"#);
    assert_eq!(app.send(dead.request()).await.outcome, "kept");
    app
}

/// A recorded action of an operator.
#[derive(Debug, PartialEq, Eq, sqlx::FromRow)]
struct Done {
    action: String,
    /// `None` if the action was on an endpoint or on several deliveries.
    delivery_id: Option<String>,
    operator: Option<String>,
    /// How many deliveries the action has changed.
    changed: i64,
    has_ended: bool,
}

/// The recorded actions, in order.
async fn actions(database: &Database) -> Vec<Done> {
    sqlx::query_as(
        "select action, delivery_id, operator, changed, ended_at is not null as has_ended
         from idempotent_webhook.operator_actions
         order by id",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

/// A finished action of the operator Ada.
fn action(action: &str, delivery: Option<&str>, changed: i64) -> Done {
    Done {
        action: action.to_owned(),
        delivery_id: delivery.map(str::to_owned),
        operator: Some("ada".to_owned()),
        changed,
        has_ended: true,
    }
}

/// The id of a reason's group, as URLs contain it. Similar reasons have the same group.
async fn group_of(database: &Database, reason: &str) -> String {
    sqlx::query_scalar("select idempotent_webhook.reason_group($1)::text")
        .bind(reason)
        .fetch_one(&database.pool)
        .await
        .unwrap()
}

/// Visits every page and takes an action of each kind, on a database with a dead delivery `a`.
pub async fn works_on(database: &Database, pool: &PgPool) {
    let board = Board::operator(pool);
    for page in pages() {
        board.page(page).await;
    }
    let before = unix_now(database).await;
    for form in [
        "action=pause&endpoint=test".to_owned(),
        "action=resume&endpoint=test".to_owned(),
        "action=retry&endpoint=test&id=a".to_owned(),
        "action=forget&endpoint=test&id=a".to_owned(),
        "action=discard&endpoint=test&id=a".to_owned(),
        format!("action=retry&endpoint=test&state=dead&before={before}"),
    ] {
        let answer = board.post("act", &form).await;
        assert_eq!(answer.status, 303, "{form}: {}", answer.text());
    }
    database
        .until(
            "not exists (
                select from idempotent_webhook.operator_actions
                where ended_at is null or note like 'The database%'
            )",
        )
        .await;
    database.until(NOTHING_KEPT).await;
}

/// A database on which the dashboard [works](works_on).
pub async fn database_with_a_dead_delivery() -> Database {
    with_a_dead_delivery().await.database
}

const MANY_DEAD: &str = "
    insert into idempotent_webhook.kept_deliveries
        (endpoint, delivery_id, state, attempts, last_received_at, first_failed_at, last_failed_at, reason)
    select
        endpoint, number::text, 'dead', 1, now() - interval '1 min', now(), now() - interval '1 min',
        'it broke ' || number
    from generate_series(1, 5000) as number
    cross join unnest(array['test', 'other']) as endpoint;
    insert into idempotent_webhook.kept_requests
        (endpoint, delivery_id, format, method, uri, headers, body)
    select endpoint, delivery_id, 1, 'POST', '/', '', '{}'
    from idempotent_webhook.kept_deliveries
";

async fn unix_now(database: &Database) -> f64 {
    sqlx::query_scalar("select extract(epoch from now())::float8")
        .fetch_one(&database.pool)
        .await
        .unwrap()
}

/// All actions have finished.
const ALL_ENDED: &str = "not exists (
    select from idempotent_webhook.operator_actions where ended_at is null
) and exists (select from idempotent_webhook.operator_actions)";
