//! Answers of an API that differ from its documentation, or that come from somewhere else.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::Uri;
use axum::response::Redirect;
use axum::routing::post;
use idempotent_webhook::reconcile::{
    EventSource, GitHubDeliveries, Http, PaddleNotifications, StripeEvents, WorkOsEvents,
};
use idempotent_webhook::{
    Events, IdempotentWebhook, Keep, Provider, Reconcile, Recovery, Secret, presets,
};
use provider_apis::{Api, Event, KEY};
use serde_json::{Value, json};
use sqlx::PgPool;

use super::{List, MINUTE, Process};
use crate::support::{Database, now, recovery, secret};

async fn serve(router: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn at(address: SocketAddr) -> Http {
    Http::new().base(format!("http://{address}"))
}

/// Starts an API that gives these answers one after the other. Returns its address and the requests
/// that it gets.
async fn answers(
    answers: impl IntoIterator<Item = Value>,
) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let answers: Vec<Value> = answers.into_iter().collect();
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let asked = requests.clone();
    let router = Router::new().fallback(async move |uri: Uri| {
        let mut asked = asked.lock().unwrap();
        asked.push(uri.to_string());
        axum::Json(answers[asked.len() - 1].clone())
    });
    (serve(router).await, requests)
}

fn key() -> Secret {
    Secret::new(KEY).unwrap()
}

fn layer(pool: &PgPool, recovery: &Recovery, provider: Provider) -> IdempotentWebhook {
    IdempotentWebhook::new(pool.clone(), "test", provider).keep(Keep::failed(recovery))
}

/// Runs one round with a list of its own.
async fn round(database: &Database, provider: Provider, source: impl EventSource) -> String {
    let recovery = recovery(&database.pool);
    let reconcile = Reconcile::new(&layer(&database.pool, &recovery, provider), source, "/");
    let reconcile = reconcile.unwrap().grace(Duration::ZERO);
    let reconcile = reconcile.since(std::time::UNIX_EPOCH);
    match reconcile.run_once().await {
        Ok(round) => format!("{} missed, {} unusable", round.missed, round.unusable),
        Err(error) => error.to_string(),
    }
}

fn stripe_event(id: &str) -> Value {
    json!({ "id": id, "created": now() - 60, "type": "invoice.paid", "data": {} })
}

fn notification(id: &str) -> Value {
    let time = humantime::format_rfc3339(std::time::SystemTime::now() - MINUTE).to_string();
    json!({
        "id": id, "occurred_at": time,
        "payload": { "event_id": id, "event_type": "transaction.completed" }
    })
}

fn stripe_page(data: &[Value], has_more: bool) -> Value {
    json!({ "object": "list", "data": data, "has_more": has_more })
}

fn paddle_page(data: &[Value], has_more: bool) -> Value {
    json!({ "data": data, "meta": { "pagination": { "has_more": has_more } } })
}

/// A page that has more, but gives no position to continue from, used to be taken for the end of
/// the list.
#[tokio::test]
async fn n4_a_page_that_has_more_and_nothing_to_go_on_behind_is_an_error() {
    let unreadable = json!({ "created": "yesterday" });
    for data in [&[][..], &[unreadable]] {
        let database = Database::new().await;
        let (address, _) = answers([stripe_page(data, true)]).await;
        let events = StripeEvents::new(key(), ["*"]).http(at(address));
        let stripe = round(&database, presets::stripe(secret()), events).await;
        let (address, _) = answers([paddle_page(data, true)]).await;
        let notifications = PaddleNotifications::new(key(), "ntfset_1").http(at(address));
        let paddle = round(&database, presets::paddle(secret()), notifications).await;
        for failure in [stripe, paddle] {
            assert!(
                failure.contains("this page has no item to continue after"),
                "{failure}"
            );
        }
    }
}

/// If a page gives no position to continue from, a later round must start at the first page. It
/// would otherwise request the same page again and again.
#[tokio::test]
async fn n4_a_list_that_gives_nothing_to_go_on_behind_is_read_from_its_first_page() {
    let database = Database::new().await;
    let first = stripe_page(&[stripe_event("evt_1")], true);
    let last = stripe_page(&[stripe_event("evt_1")], false);
    let (address, requests) = answers([first, stripe_page(&[], true), last]).await;
    let recovery = recovery(&database.pool);
    let layer = layer(&database.pool, &recovery, presets::stripe(secret()));
    let events = StripeEvents::new(key(), ["*"]).http(at(address));
    let reconcile = Reconcile::new(&layer, events, "/").unwrap();
    let reconcile = reconcile
        .grace(Duration::ZERO)
        .every(Duration::from_secs(1));
    let task = reconcile.since(std::time::UNIX_EPOCH).spawn();
    database
        .until("exists (select from idempotent_webhook.reconciliations where reconciled_until is not null)")
        .await;
    task.stop().await;
    let requests = requests.lock().unwrap();
    let goes_on = |request: &String| request.contains("starting_after");
    let goes_on: Vec<bool> = requests.iter().take(3).map(goes_on).collect();
    assert_eq!(goes_on, [false, true, false]);
}

/// If the list gives a cursor with an empty page, it says that there are more pages.
#[tokio::test]
async fn n4_an_empty_page_with_a_next_one_is_not_the_end() {
    let database = Database::new().await;
    let time = humantime::format_rfc3339(std::time::SystemTime::now() - MINUTE).to_string();
    let event = json!({ "id": "evt_1", "event": "user.created", "created_at": time });
    let unreadable = json!({ "id": "evt_0", "event": "user.created" });
    let (address, _) = answers([
        json!({ "data": [], "list_metadata": { "after": "a" } }),
        json!({ "data": [unreadable], "list_metadata": { "after": "b" } }),
        json!({ "data": [event], "list_metadata": {} }),
    ])
    .await;
    let events = WorkOsEvents::new(key(), ["user.created"]).http(at(address));
    let round = round(&database, presets::workos(secret()), events).await;
    assert_eq!(round, "1 missed, 1 unusable");
}

/// An item whose id cannot be read used to make its page fail, and with it every round.
#[tokio::test]
async fn n4_a_list_goes_on_behind_the_last_item_whose_id_can_be_read() {
    let unreadable = json!({ "created": "yesterday" });
    let database = Database::new().await;
    let (address, requests) = answers([
        stripe_page(
            &[
                stripe_event("evt_1"),
                stripe_event("evt_2"),
                unreadable.clone(),
            ],
            true,
        ),
        stripe_page(&[unreadable.clone(), stripe_event("evt_3")], false),
    ])
    .await;
    let events = StripeEvents::new(key(), ["*"]).http(at(address));
    let stripe = round(&database, presets::stripe(secret()), events).await;
    assert_eq!(stripe, "3 missed, 2 unusable");
    assert!(requests.lock().unwrap()[1].contains("starting_after=evt_2"));

    let (address, requests) = answers([
        paddle_page(&[notification("ntf_1"), unreadable], true),
        paddle_page(&[notification("ntf_2")], false),
    ])
    .await;
    let notifications = PaddleNotifications::new(key(), "ntfset_1").http(at(address));
    let paddle = round(&database, presets::paddle(secret()), notifications).await;
    assert_eq!(paddle, "2 missed, 1 unusable");
    assert!(requests.lock().unwrap()[1].contains("after=ntf_1"));
}

/// Events from another host's list used to be run as authentic.
#[tokio::test]
async fn n3_a_redirect_to_another_origin_is_not_followed() {
    let database = Database::new().await;
    let (elsewhere, requests) = answers([stripe_page(&[stripe_event("forged")], false)]).await;
    let target = format!("http://{elsewhere}/v1/events");
    let router = Router::new().fallback(async move || Redirect::temporary(&target));
    let http = at(serve(router).await);
    let events = || StripeEvents::new(key(), ["*"]);
    let own = round(
        &database,
        presets::stripe(secret()),
        events().http(http.clone()),
    )
    .await;
    assert!(own.contains("was answered with 307"), "{own}");
    assert!(requests.lock().unwrap().is_empty());

    // Even if the client follows the redirect, no event runs.
    let client = reqwest::Client::new();
    let given = events().http(http.client(client));
    let given = round(&database, presets::stripe(secret()), given).await;
    assert!(
        given.contains("was redirected to another origin"),
        "{given}"
    );
    database
        .until("not exists (select from idempotent_webhook.kept_deliveries)")
        .await;

    // GitHub redirects like this after a repository was renamed.
    let page = stripe_page(&[stripe_event("evt_1")], false);
    let router = Router::new()
        .route(
            "/v2/events",
            axum::routing::get(async move || axum::Json(page)),
        )
        .fallback(async || Redirect::temporary("/v2/events"));
    let http = at(serve(router).await);
    let renamed = round(&database, presets::stripe(secret()), events().http(http)).await;
    assert_eq!(renamed, "1 missed, 0 unusable");
}

/// The answer of an API used to be logged with its escapes escaped a second time.
#[tokio::test]
async fn n4_the_answer_of_an_api_is_shown_as_it_is() {
    let database = Database::new().await;
    let router = Router::new().fallback(async || {
        let answer = "{\"error\": {\n\t\"message\": \"no \\\"rights\\\"\"\n}}\n";
        (axum::http::StatusCode::BAD_REQUEST, answer)
    });
    let http = at(serve(router).await);
    let events = StripeEvents::new(key(), ["*"]).http(http);
    let failure = round(&database, presets::stripe(secret()), events).await;
    assert_eq!(
        failure,
        "the provider's list: GET /v1/events was answered with 400 Bad Request: \
         {\"error\": {  \"message\": \"no \\\"rights\\\"\" }}"
    );
}

/// Each of the two accounts used to continue from the position of the other.
#[tokio::test]
async fn n1_two_accounts_of_one_route_have_a_position_each() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let mut lists = Vec::new();
    for numbers in [1..=40, 41..=80] {
        let (api, address) = Api::start("stripe").await;
        for number in numbers {
            api.add(Event {
                number,
                time: now() - 100 * number,
            });
        }
        let http = at(address);
        lists.push(StripeEvents::new(key(), ["invoice.*"]).http(http));
    }
    let [one, other] = lists.try_into().unwrap();
    let unnamed = Reconcile::new(&process.layer, one.clone(), "/").unwrap();
    let refused = Reconcile::new(&process.layer, other.clone(), "/").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the list \"stripe\" of the endpoint is reconciled already: give another list a name of its own, \
         or clone the `Reconcile` to use the same list again"
    );
    let clone = unnamed.clone();
    drop(unnamed);
    assert!(Reconcile::new(&process.layer, other.clone(), "/elsewhere").is_err());
    drop(clone);

    let tasks = [one.named("stripe de"), other.named("stripe fr")].map(|list| {
        let reconcile = Reconcile::new(&process.layer, list, "/").unwrap();
        reconcile.since(std::time::UNIX_EPOCH).grace(MINUTE).spawn()
    });
    database
        .until("(select count(*) = 80 from idempotent_webhook.kept_deliveries)")
        .await;
    database
        .until(
            "(select array_agg(source || ' ' || missed order by source) = '{stripe de 40,stripe fr 40}'
              from idempotent_webhook.reconciliations)",
        )
        .await;
    for task in tasks {
        task.stop().await;
    }
    // The names can be used again.
    assert!(Reconcile::new(&process.layer, List::empty(), "/").is_ok());
}

/// An ignored event leaves no record. If reconciliation did not know what the layer ignores, it
/// would request these deliveries from GitHub in each round.
#[tokio::test]
async fn e2_github_is_not_asked_for_actions_that_the_layer_ignores() {
    let database = Database::new().await;
    let attempt = |id: u64, event: &str, action: Option<&str>| {
        json!({
            "id": id, "guid": format!("guid-{id}"), "event": event, "action": action,
            "delivered_at": humantime::format_rfc3339(std::time::SystemTime::now() - MINUTE).to_string(),
        })
    };
    let (address, _) = answers([json!([
        attempt(1, "pull_request", Some("opened")),
        attempt(2, "pull_request", Some("closed")),
        attempt(3, "push", None),
        attempt(4, "star", Some("created")),
    ])])
    .await;
    let recovery = recovery(&database.pool);
    let layer = layer(&database.pool, &recovery, presets::github(secret()));
    let deliveries = GitHubDeliveries::repository(key(), "a/b", 1).http(at(address));
    let reconcile = Reconcile::new(&layer, deliveries, "/").unwrap();
    let reconcile = reconcile.grace(Duration::ZERO).since(std::time::UNIX_EPOCH);
    // The table of types is made after the reconciliation was set up, and the reconciliation still
    // uses it.
    let events = Events::new()
        .on("pull_request.opened", super::handle)
        .on("push", super::handle)
        .ignore_others();
    let _: Router = Router::new().route("/", post(events.layer(layer)));
    let mut missing: Vec<_> = reconcile.dry_run().await.unwrap();
    missing.sort_by(|a, b| a.id.as_str().cmp(b.id.as_str()));
    let missing: Vec<_> = missing.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(missing, ["guid-1", "guid-3"]);
}

#[tokio::test]
async fn e2_a_list_that_takes_types_is_asked_for_those_of_the_layer() {
    let database = Database::new().await;
    let (address, requests) = answers([stripe_page(&[], false)]).await;
    let recovery = recovery(&database.pool);
    let layer = layer(&database.pool, &recovery, presets::stripe(secret()));
    let events = StripeEvents::new(key(), ["*"]).http(at(address));
    let reconcile = Reconcile::new(&layer, events, "/").unwrap();
    let reconcile = reconcile.since(std::time::UNIX_EPOCH);
    let table = Events::new()
        .on("invoice.paid", super::handle)
        .on("charge.failed", super::handle)
        .ignore_others();
    let _: Router = Router::new().route("/", post(table.layer(layer)));
    reconcile.run_once().await.unwrap();
    let asked = requests.lock().unwrap().join(" ");
    for event_type in ["invoice.paid", "charge.failed"] {
        assert!(
            asked.contains(&format!("types%5B%5D={event_type}")),
            "{asked}"
        );
    }
}
