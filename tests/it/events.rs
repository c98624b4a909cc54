//! Only some event types have a handler: `Events` and `only`.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::http::StatusCode;
use axum::routing::{any, post};
use axum::{Json, Router};
use idempotent_webhook::recovery::{Reprocessed, Retried};
use idempotent_webhook::testing::{TestDelivery, assert_idempotent};
use idempotent_webhook::{
    DedupeTx, Delivery, Events, HandlerError, IdempotentWebhook, Keep, Provider, Recovery, Secret,
    Source, TenantSecrets, presets,
};
use serde::Deserialize;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use crate::support::{
    Answer, Database, NOTHING_KEPT, TestApp, answer, assert_kept, assert_rows, endpoint,
    insert_effect, keep, keep_accepted, keep_all, logged, recovery, secret, send, soon,
    stripe_delivery, write_effect,
};

/// An event of GitHub.
fn event(id: &str, event_type: &str, action: &str) -> TestDelivery {
    TestDelivery::new(&presets::github(secret()))
        .id(id)
        .event_type(event_type)
        .body(format!(r#"{{"action":"{action}"}}"#))
}

fn layer_of(pool: &PgPool) -> IdempotentWebhook {
    IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()))
        .database_timeout(Duration::from_secs(20))
}

fn ignored() -> Answer {
    answer(200, "ignored", "")
}

#[tokio::test]
async fn e1_an_ignored_event_leaves_nothing_and_a_forged_one_is_refused() {
    let set = |layer: IdempotentWebhook| layer.only(["push", "release"]);
    let app = TestApp::github_with(set, write_effect).await;
    let star = event("a", "star", "created");
    assert_eq!(app.send(star.request()).await, ignored());
    for forged in [star.tampered(), star.unsigned()] {
        assert_eq!(
            app.send(forged.request()).await,
            answer(401, "rejected", "signature missing or not valid")
        );
    }
    // An ignored event is answered with success even if its id is not usable.
    assert_eq!(app.send(event(" ", "star", "").request()).await, ignored());
    assert_eq!(app.send(event(" ", "push", "").request()).await.status, 400);
    assert_eq!(app.runs(), 0);
    assert_rows!(app.database, claims: 0, effects: 0);

    // The ignored event has not claimed its id.
    assert_eq!(
        app.send(event("a", "push", "").request()).await,
        answer(200, "processed", "done")
    );
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn e1_an_ignored_event_needs_no_connection_and_no_postgres() {
    let database = Database::new().await;
    let pool = database.another_pool(1).await;
    let layer = layer_of(&pool)
        .database_timeout(Duration::from_millis(200))
        .only(["push"]);
    let router = Router::new().route("/", post(write_effect).layer(layer));
    let star = || event("a", "star", "created").request();

    let in_use = pool.acquire().await.unwrap();
    assert_eq!(soon(send(&router, star())).await, ignored());
    let push = send(&router, event("a", "push", "").request()).await;
    assert_eq!((push.status, &*push.outcome), (503, "failed"));
    drop(in_use);
    pool.close().await;
    assert_eq!(soon(send(&router, star())).await, ignored());

    // The database does not exist, or accepts no writes.
    let nowhere = PgPool::connect_lazy("postgres://127.0.0.1:1/none").unwrap();
    let read_only = database
        .options()
        .options([("default_transaction_read_only", "on")]);
    let read_only = PgPoolOptions::new().connect_lazy_with(read_only);
    for pool in [nowhere, read_only] {
        let layer = layer_of(&pool)
            .database_timeout(Duration::from_millis(200))
            .only(["push"]);
        let router = Router::new().route("/", post(write_effect).layer(layer));
        assert_eq!(soon(send(&router, star())).await, ignored());
        let push = send(&router, event("a", "push", "").request()).await;
        assert_eq!((push.status, &*push.outcome), (503, "failed"));
    }
    assert_rows!(database, claims: 0, effects: 0);
}

#[tokio::test]
async fn e1_nothing_of_an_ignored_event_is_kept_in_any_way() {
    let ways: [fn(&Recovery) -> Keep; 3] = [keep, keep_all, keep_accepted];
    for way in ways {
        let set = |layer: IdempotentWebhook, recovery: &Recovery| {
            layer.keep(way(recovery)).only(["push"])
        };
        let provider = presets::github(secret());
        let app = TestApp::recovered(provider, set, write_effect).await;
        assert_eq!(app.send(event("a", "star", "").request()).await, ignored());
        app.database.until(NOTHING_KEPT).await;
        assert_eq!(app.runs(), 0);
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

#[tokio::test]
async fn e1_an_ignored_event_has_the_providers_success() {
    let provider = presets::github(secret()).acknowledgement_status(StatusCode::NO_CONTENT);
    let set = |layer: IdempotentWebhook| layer.only(["push"]);
    let app = TestApp::with(provider, set, write_effect).await;
    let sent = app.send(event("a", "star", "").request()).await;
    assert_eq!(sent, answer(204, "ignored", ""));
}

/// Writes an effect, and answers with the name of the handler that has run.
async fn ran(mut tx: DedupeTx, delivery: Delivery, name: &str) -> Result<String, HandlerError> {
    insert_effect(&mut tx, &delivery).await?;
    Ok(name.to_owned())
}

#[tokio::test]
async fn e3_an_event_goes_to_the_handler_of_its_name_or_of_the_longest_group() {
    #[derive(Deserialize)]
    struct Opened {
        action: String,
    }
    let database = Database::new().await;
    let events = Events::new()
        .on("pull_request", |tx: DedupeTx, delivery: Delivery| async {
            ran(tx, delivery, "any pull request").await
        })
        .on(
            "pull_request.opened",
            |State(name): State<&'static str>,
             tx: DedupeTx,
             delivery: Delivery,
             Json(opened): Json<Opened>| async move {
                ran(tx, delivery, &format!("{name} {}", opened.action)).await
            },
        )
        .on("issues.*", |tx: DedupeTx, delivery: Delivery| async {
            ran(tx, delivery, "issues").await
        })
        .ignore_others();
    assert_eq!(
        events.event_types().collect::<Vec<_>>(),
        ["pull_request", "pull_request.opened", "issues.*"]
    );
    let router: Router = Router::new()
        .route("/", post(events.layer(layer_of(&database.pool))))
        .with_state("of the state:");
    for (id, event_type, action, expected) in [
        ("a", "pull_request", "opened", "of the state: opened"),
        ("b", "pull_request", "closed", "any pull request"),
        ("c", "issues", "opened", "issues"),
    ] {
        let sent = send(&router, event(id, event_type, action).request()).await;
        assert_eq!(sent, answer(200, "processed", expected));
        let again = send(&router, event(id, event_type, action).request()).await;
        assert_eq!(again, answer(200, "duplicate", ""));
    }
    let other = |event_type| event("d", event_type, "").body("{}");
    for event_type in ["issue", "issues", "pull_requests", "Pull_request"] {
        let sent = send(&router, other(event_type).request()).await;
        assert_eq!(sent, ignored(), "{event_type}");
    }
    assert_rows!(database, claims: 3, effects: 3);
}

#[tokio::test]
async fn e3_types_with_odd_characters_are_names_like_others() {
    let database = Database::new().await;
    let any_name = presets::stripe(secret()).event_names_like::<String>([]);
    let stripe_layer = IdempotentWebhook::new(database.pool.clone(), "test", any_name)
        .database_timeout(Duration::from_secs(20));
    let events = Events::new()
        .on("ein Ereignis, ☃", write_effect)
        .ignore_others();
    let router: Router = Router::new().route("/", post(events.layer(stripe_layer)));
    let sent = |id: &str, event_type: &str| {
        let body = serde_json::json!({"id": id, "type": event_type}).to_string();
        send(&router, stripe_delivery(body).request())
    };
    assert_eq!(
        sent("a", "ein Ereignis, ☃").await,
        answer(200, "processed", "done")
    );
    for other in ["ein Ereignis", "*", "'; drop table", "ein Ereignis, ☃.b"] {
        assert_eq!(sent("b", other).await, ignored(), "{other}");
    }
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test]
async fn e3_an_event_whose_type_cannot_be_read_is_not_ignored() {
    let database = Database::new().await;
    let stripe_layer =
        IdempotentWebhook::new(database.pool.clone(), "test", presets::stripe(secret()))
            .database_timeout(Duration::from_secs(20));
    let events = Events::new()
        .on("invoice.paid", write_effect)
        .ignore_others();
    let only = stripe_layer.clone().only(["invoice.paid"]);
    let router: Router = Router::new()
        .route("/events", post(events.layer(stripe_layer)))
        .route("/only", post(write_effect).layer(only));
    let to = |path: &str| stripe_delivery(r#"{"id":"1"}"#).uri(path).request();
    let log = logged(async {
        let sent = send(&router, to("/events")).await;
        assert_eq!((sent.status, &*sent.outcome), (422, "failed"));
    })
    .await;
    assert!(
        log.contains("the event type or action cannot be read"),
        "{log}"
    );
    assert_rows!(database, claims: 0, effects: 0);
    assert_eq!(
        send(&router, to("/only")).await,
        answer(200, "processed", "done")
    );
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test]
async fn e3_an_event_whose_action_cannot_be_read_is_not_ignored() {
    let set = |layer: IdempotentWebhook| layer.only(["pull_request.opened"]);
    let app = TestApp::github_with(set, write_effect).await;
    // One body is what GitHub sends with the content type of a form. The other body has the action
    // twice.
    for (id, body) in [
        ("a", "payload=%7B%22action%22%3A%22opened%22%7D"),
        ("b", r#"{"action":"opened","action":"closed"}"#),
    ] {
        let sent = app
            .send(event(id, "pull_request", "").body(body).request())
            .await;
        assert_eq!(sent, answer(200, "processed", "done"), "{body}");
        let star = app.send(event(id, "star", "").body(body).request()).await;
        assert_eq!(star, ignored());
    }
    let closed = app
        .send(event("c", "pull_request", "closed").request())
        .await;
    assert_eq!(closed, ignored());
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn e2_a_layer_that_has_the_table_takes_it_again() {
    let database = Database::new().await;
    let events = Events::new().on("push", write_effect).ignore_others();
    let layer = layer_of(&database.pool).only(events.event_types());
    let router: Router = Router::new().route("/", post(events.layer(layer)));
    let sent = send(&router, event("a", "push", "").request()).await;
    assert_eq!(sent, answer(200, "processed", "done"));
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test]
async fn otherwise_takes_all_other_events() {
    let database = Database::new().await;
    let events = Events::new()
        .on("push", |tx: DedupeTx, delivery: Delivery| async {
            ran(tx, delivery, "push").await
        })
        .otherwise(|tx: DedupeTx, delivery: Delivery| async { ran(tx, delivery, "other").await });
    let router: Router = Router::new().route("/", post(events.layer(layer_of(&database.pool))));
    for (id, event_type, expected) in [("a", "push", "push"), ("b", "star", "other")] {
        let sent = send(&router, event(id, event_type, "").request()).await;
        assert_eq!(sent, answer(200, "processed", expected));
    }
    assert_rows!(database, claims: 2, effects: 2);
}

async fn fails(_: DedupeTx) -> StatusCode {
    StatusCode::CONFLICT
}

/// A version of the application in which only pushes have a handler.
fn deployed(pool: &PgPool, way: fn(&Recovery) -> Keep) -> (Recovery, Router) {
    let recovery = recovery(pool);
    let events = Events::new().on("push", write_effect).ignore_others();
    let layer = layer_of(pool).keep(way(&recovery));
    let router = Router::new().route("/", post(events.layer(layer)));
    (recovery, router)
}

/// Makes the attempts that are due, and returns their outcomes in order.
async fn run_due(recovery: &Recovery, router: &Router) -> Vec<&'static str> {
    let attempts = recovery.run_due(router).await.unwrap();
    let mut outcomes: Vec<_> = attempts
        .iter()
        .map(|attempt| attempt.outcome.unwrap().as_str())
        .collect();
    outcomes.sort_unstable();
    outcomes
}

const MAKE_OLD: &str = "update idempotent_webhook.kept_deliveries
    set first_received_at = now() - interval '61 minutes'";

/// A process of the previous or the next version could have a handler for the delivery.
#[tokio::test]
async fn e2_what_is_kept_waits_in_a_process_that_has_no_handler_and_runs_in_one_that_has() {
    let app = TestApp::keeping(|keep| keep, fails).await;
    // More failures than are needed to open the breaker.
    for id in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"] {
        let sent = app.send(event(id, "star", "created").request()).await;
        assert_eq!((sent.status, &*sent.outcome), (409, "kept"));
    }
    let (recovery, router) = deployed(&app.database.pool, keep);
    app.database.make_due().await;
    assert_eq!(run_due(&recovery, &router).await, ["kept"; 11]);
    // An attempt of a version without a handler is counted, but not as a failure of the handler.
    let have_failed = "(
        select bool_and(
            state = 'due' and taken_by is null and attempts = 2 and retries = 1 and status = 503
            and reason like 'this process has no handler for the type `star`%'
        )
        from idempotent_webhook.kept_deliveries
    ) and not exists (select from idempotent_webhook.kept_endpoints where failed_ids <> '{}')";
    app.database.until(have_failed).await;
    assert_rows!(app.database, claims: 0, effects: 0);

    let (other, other_recovery) = app.elsewhere_keeping(|keep| keep, write_effect).await;
    app.database.make_due().await;
    assert_eq!(run_due(&other_recovery, &other).await, ["processed"; 11]);
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 11, effects: 11);
}

#[tokio::test]
async fn e2_what_is_acknowledged_is_never_ended_without_its_handler() {
    let ways: [fn(&Recovery) -> Keep; 3] = [keep, keep_all, keep_accepted];
    for way in ways {
        let set = |layer: IdempotentWebhook, recovery: &Recovery| layer.keep(way(recovery));
        let app = TestApp::recovered(presets::github(secret()), set, fails).await;
        app.send(event("a", "star", "created").request()).await;
        let has_failed = "exists (
            select from idempotent_webhook.kept_deliveries
            where state = 'due' and taken_by is null and status = 409
        )";
        app.database.until(has_failed).await;
        // A version without a handler takes the delivery again and again until the delivery is
        // dead.
        let (recovery, router) = deployed(&app.database.pool, way);
        for _ in 0..3 {
            app.database.run(MAKE_OLD).await;
            app.database.make_due().await;
            assert_eq!(run_due(&recovery, &router).await, ["kept"]);
        }
        assert_kept!(app.database, "dead", attempts: 4, retries: 3);
        assert_rows!(app.database, claims: 0, effects: 0);

        // The deploy is rolled back.
        assert_eq!(endpoint(&app).retry("a").await.unwrap(), Retried::Due);
        let (before, recovery) = app.elsewhere_keeping(|keep| keep, write_effect).await;
        assert_eq!(run_due(&recovery, &before).await, ["processed"]);
        app.database.until(NOTHING_KEPT).await;
        assert_rows!(app.database, claims: 1, effects: 1);
    }
}

#[tokio::test]
async fn e2_what_is_reprocessed_waits_for_a_handler() {
    fn all_archived(recovery: &Recovery) -> Keep {
        keep_all(recovery).processed_for(Duration::from_secs(3600))
    }
    let set = |layer: IdempotentWebhook, recovery: &Recovery| layer.keep(all_archived(recovery));
    let app = TestApp::recovered(presets::github(secret()), set, write_effect).await;
    let sent = app.send(event("a", "star", "created").request()).await;
    assert_eq!(sent, answer(200, "processed", "done"));

    let (recovery, router) = deployed(&app.database.pool, all_archived);
    let reprocessed = endpoint(&app).reprocess("a").await.unwrap();
    assert_eq!(reprocessed, Reprocessed::Due);
    app.database.run(MAKE_OLD).await;
    assert_eq!(run_due(&recovery, &router).await, ["kept"]);
    assert_rows!(app.database, claims: 0, effects: 1);

    // A version that handles the type runs again.
    app.database.make_due().await;
    assert_eq!(run_due(&app.recovery, &app.router).await, ["processed"]);
    assert_kept!(app.database, "processed", attempts: 3, retries: 2);
    assert_rows!(app.database, claims: 1, effects: 2);
}

#[tokio::test]
async fn e2_what_is_kept_and_was_processed_meanwhile_ends_as_a_duplicate() {
    let app = TestApp::keeping(|keep| keep, fails).await;
    app.send(event("a", "star", "created").request()).await;
    app.database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, tenant, delivery_id)
             select endpoint, tenant, delivery_id from idempotent_webhook.kept_deliveries",
        )
        .await;
    let (recovery, router) = deployed(&app.database.pool, keep);
    app.database.make_due().await;
    app.database.run(MAKE_OLD).await;
    assert_eq!(run_due(&recovery, &router).await, ["duplicate"]);
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 1, effects: 0);
}

/// GitHub can send forms. The action of a form cannot be read where JSON has it.
#[tokio::test]
async fn e3_an_event_whose_action_cannot_be_read_goes_to_the_handler_of_its_type() {
    let database = Database::new().await;
    let events = Events::new()
        .on("pull_request", write_effect)
        .on("pull_request.closed", fails)
        .ignore_others();
    let router: Router = Router::new().route("/", post(events.layer(layer_of(&database.pool))));
    let form = event("a", "pull_request", "").body("payload=%7B%22action%22%3A%22closed%22%7D");
    let sent = send(&router, form.request()).await;
    assert_eq!(sent, answer(200, "processed", "done"));
    assert_rows!(database, claims: 1, effects: 1);
}

/// A kept request has only some headers. The header with the action must be one of them.
#[tokio::test]
async fn e3_an_action_in_a_header_is_kept() {
    let database = Database::new().await;
    let action = || Source::header("x-action".parse().unwrap());
    let process = |pool: PgPool, answer: StatusCode| {
        let recovery = recovery(&pool);
        let provider = presets::github(secret()).event_action(action());
        let handler = async move |_: DedupeTx| answer;
        let events = Events::new().on("order.paid", handler).ignore_others();
        let layer = IdempotentWebhook::new(pool, "test", provider).keep(keep(&recovery));
        (
            recovery,
            Router::new().route("/", post(events.layer(layer))),
        )
    };
    let (_, failing) = process(database.pool.clone(), StatusCode::CONFLICT);
    let (recovery, succeeding) = process(database.another_pool(5).await, StatusCode::OK);
    let order = event("a", "order", "").header("x-action".parse().unwrap(), "paid");
    assert_eq!(send(&failing, order.request()).await.outcome, "kept");
    database.make_due().await;
    assert_eq!(run_due(&recovery, &succeeding).await, ["processed"]);
    assert_rows!(database, claims: 1, effects: 0);
}

#[tokio::test]
#[should_panic(expected = "is not in a request that is kept")]
async fn e3_an_action_of_a_signature_is_refused() {
    let _ = presets::github(secret()).event_action(Source::signed_time());
}

/// Some providers check an endpoint with GET or HEAD. On a route with `post`, axum would refuse
/// these requests before they reach the layer.
#[tokio::test]
async fn a_provider_that_checks_by_get_or_head_is_answered_on_a_route_of_any_method() {
    let database = Database::new().await;
    let pool = &database.pool;
    let meta = presets::meta(secret()).verify_token(Secret::new("token").unwrap());
    let meta = IdempotentWebhook::new(pool.clone(), "meta", meta);
    let trello = presets::trello(secret()).public_url("https://example.com".parse().unwrap());
    let trello = IdempotentWebhook::new(pool.clone(), "trello", trello);
    let events = || Events::new().on("page", write_effect).ignore_others();
    let router: Router = Router::new()
        .route("/meta", any(events().layer(meta)))
        .route("/trello", any(events().layer(trello)));
    let check =
        Request::get("/meta?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=token");
    let sent = send(&router, check.body(Body::empty()).unwrap()).await;
    assert_eq!(sent, answer(200, "handshake", "1158201444"));
    let check = Request::head("/trello").body(Body::empty()).unwrap();
    assert_eq!(send(&router, check).await, answer(200, "handshake", ""));
    let other = Request::get("/trello").body(Body::empty()).unwrap();
    assert_eq!(send(&router, other).await.status, 405);
    assert_rows!(database, claims: 0, effects: 0);
}

#[tokio::test]
async fn e3_a_copy_with_another_type_does_not_change_the_handler_of_what_is_kept() {
    let app = TestApp::keeping(|keep| keep, fails).await;
    for event_type in ["push", "issues"] {
        let sent = app.send(event("a", event_type, "").request()).await;
        assert_eq!((sent.status, &*sent.outcome), (409, "kept"));
    }
    app.database
        .until("(select event_type = 'push' from idempotent_webhook.kept_deliveries)")
        .await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn e2_tenants_have_one_table() {
    let database = Database::new().await;
    let tenants = TenantSecrets::new(
        |head| Some(head.uri.path().to_owned()),
        |_| async { Ok(Some(secret())) },
    )
    .separate_ids();
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(tenants))
        .database_timeout(Duration::from_secs(20));
    let events = Events::new().on("push", write_effect).ignore_others();
    let router: Router = Router::new().route("/{tenant}", post(events.layer(layer)));
    for tenant in ["/a", "/b"] {
        let sent = |event_type| send(&router, event("1", event_type, "").uri(tenant).request());
        assert_eq!(sent("star").await, ignored());
        assert_eq!(sent("push").await, answer(200, "processed", "done"));
    }
    assert_rows!(database, claims: 2, effects: 2);
}

#[tokio::test]
async fn what_is_ignored_is_counted_by_type() {
    let database = Database::new().await;
    let pool = &database.pool;
    let stripe_layer = IdempotentWebhook::new(pool.clone(), "stripe", presets::stripe(secret()))
        .only(["invoice.*"]);
    let github = layer_of(pool).only(["push"]);
    let router = Router::new()
        .route("/stripe", post(write_effect).layer(stripe_layer.clone()))
        .route("/github", post(write_effect).layer(github.clone()));
    for (id, event_type) in [
        ("a", "charge.failed"),
        ("b", "charge.failed"),
        ("c", "x\0y"),
    ] {
        let body = serde_json::json!({"id": id, "type": event_type}).to_string();
        let sent = send(&router, stripe_delivery(body).uri("/stripe").request()).await;
        // NUL cannot be part of an event type.
        let outcome = if id == "c" { "processed" } else { "ignored" };
        assert_eq!(sent.outcome, outcome, "{id}");
    }
    for event_type in ["chosen by whoever has captured a body", "star"] {
        let delivery = event("a", event_type, "").uri("/github");
        assert_eq!(send(&router, delivery.request()).await, ignored());
    }
    stripe_layer.drained().await;
    github.drained().await;
    let counted: Vec<(String, String, String, i64)> = sqlx::query_as(
        "select endpoint, source, outcome, count from idempotent_webhook.activity
         where 'ignored' in (source, outcome) order by 1, 2, 3",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    let row = |endpoint: &str, source: &str, outcome: &str, count| {
        (
            endpoint.to_owned(),
            source.to_owned(),
            outcome.to_owned(),
            count,
        )
    };
    assert_eq!(
        counted,
        [
            row("stripe", "ignored", "charge.failed", 2),
            row("stripe", "request", "ignored", 2),
            row(
                "test",
                "ignored",
                "chosen by whoever has captured a body",
                1
            ),
            row("test", "ignored", "star", 1),
            row("test", "request", "ignored", 2),
        ]
    );
}

#[tokio::test]
#[should_panic(expected = "the layer ignores events of this type")]
async fn assert_idempotent_says_that_the_type_is_ignored() {
    let database = Database::new().await;
    let events = Events::new().on("push", write_effect).ignore_others();
    let router: Router = Router::new().route("/", post(events.layer(layer_of(&database.pool))));
    let delivery = event("a", "star", "created");
    assert_idempotent(&router, &delivery, || async { 0 }).await;
}

async fn lazy() -> IdempotentWebhook {
    let pool = PgPool::connect_lazy("postgres://localhost/none").unwrap();
    IdempotentWebhook::new(pool, "test", presets::github(secret()))
}

#[tokio::test]
#[should_panic(expected = "`Events::on(\"push\", ..)`: it is there twice")]
async fn e3_a_type_has_one_handler() {
    let _ = Events::<()>::new()
        .on("push", write_effect)
        .on("push", write_effect);
}

#[tokio::test]
#[should_panic(expected = "`Events::ignore(\"push\", ..)`: it is there twice")]
async fn y1_a_type_is_handled_or_ignored() {
    let _ = Events::<()>::new()
        .on("push", write_effect)
        .ignore(["push"]);
}

#[tokio::test]
async fn y1_what_is_named_is_ignored_beside_a_handler_of_the_others() {
    let database = Database::new().await;
    let events = Events::new()
        .on("issues.*", write_effect)
        .ignore(["star", "issues.closed"])
        .otherwise(|tx: DedupeTx, delivery: Delivery| async { ran(tx, delivery, "other").await });
    assert_eq!(events.event_types().collect::<Vec<_>>(), ["issues.*"]);
    let router: Router = Router::new().route("/", post(events.layer(layer_of(&database.pool))));
    for (id, event_type, action, outcome) in [
        ("a", "star", "created", "ignored"),
        ("b", "issues", "closed", "ignored"),
        ("c", "issues", "opened", "processed"),
        ("d", "push", "", "processed"),
    ] {
        let sent = send(&router, event(id, event_type, action).request()).await;
        assert_eq!(
            (sent.status, &*sent.outcome),
            (200, outcome),
            "{event_type}"
        );
    }
    assert_rows!(database, claims: 2, effects: 2);
}

#[tokio::test]
#[should_panic(expected = "`Events` has no handler, so that all events would be ignored")]
async fn e3_an_empty_table_is_refused() {
    let _ = Events::<()>::new().ignore_others();
}

#[tokio::test]
#[should_panic(expected = "`only`: the list is empty")]
async fn e3_an_empty_list_is_refused() {
    let _ = lazy().await.only(Vec::<String>::new());
}

#[tokio::test]
#[should_panic(expected = "the endpoint test has another table of event types already")]
async fn e3_a_layer_has_one_list() {
    let events = Events::<()>::new().on("push", write_effect).ignore_others();
    let _ = events.layer(lazy().await.only(["release"]));
}

#[tokio::test]
#[should_panic(expected = "the provider acme has no event type")]
async fn e3_a_provider_without_a_type_is_refused() {
    let provider = Provider::custom("acme")
        .signature(
            idempotent_webhook::provider::signature::Hmac::hex("x-signature".parse().unwrap()),
            secret(),
        )
        .delivery_id(Source::body_digest());
    let pool = PgPool::connect_lazy("postgres://localhost/none").unwrap();
    let _ = IdempotentWebhook::new(pool, "test", provider).only(["push"]);
}

#[tokio::test]
#[should_panic(
    expected = "\"orders.create\" is not the name of an event: the names of shopify are like `orders/create`"
)]
async fn e3_a_name_that_matches_no_event_of_the_provider_is_refused() {
    let pool = PgPool::connect_lazy("postgres://localhost/none").unwrap();
    let _ =
        IdempotentWebhook::new(pool, "test", presets::shopify(secret())).only(["orders.create"]);
}

#[tokio::test]
#[should_panic(expected = "\"orders.*\" is not the name of an event")]
async fn e3_a_group_with_another_separator_is_refused() {
    let pool = PgPool::connect_lazy("postgres://localhost/none").unwrap();
    let layer = IdempotentWebhook::new(pool, "test", presets::shopify(secret()));
    let events = Events::<()>::new().on("orders.*", write_effect);
    let _ = events.ignore_others().layer(layer);
}

/// A group such as `orders/*` ends after the separator that the provider uses in its type names. A
/// name with a dot includes the action.
#[tokio::test]
async fn e3_groups_and_actions_are_those_of_the_provider() {
    let database = Database::new().await;
    let opened = r#"{"action":"opened"}"#;
    let closed = r#"{"action":"closed"}"#;
    for (provider, name, wanted, ignored) in [
        (
            presets::shopify(secret()),
            "orders/*",
            ("orders/create", "{}"),
            ("products/create", "{}"),
        ),
        (
            presets::bitbucket(secret()),
            "repo:*",
            ("repo:push", "{}"),
            ("pullrequest:created", "{}"),
        ),
        (
            presets::gitea(secret()),
            "pull_request.opened",
            ("pull_request", opened),
            ("pull_request", closed),
        ),
        (
            presets::forgejo(secret()),
            "pull_request.opened",
            ("pull_request", opened),
            ("pull_request", closed),
        ),
        (
            presets::sentry(secret()),
            "issue.opened",
            ("issue", opened),
            ("issue", closed),
        ),
        (
            presets::linear(secret()),
            "Issue.create",
            ("Issue", r#"{"action":"create","webhookTimestamp":0}"#),
            ("Issue", r#"{"action":"remove","webhookTimestamp":0}"#),
        ),
        (
            presets::gitlab(Secret::new("a token").unwrap()),
            "Merge Request Hook.open",
            (
                "Merge Request Hook",
                r#"{"object_attributes":{"action":"open"}}"#,
            ),
            (
                "Merge Request Hook",
                r#"{"object_attributes":{"action":"merge"}}"#,
            ),
        ),
        (
            presets::hugging_face(secret()),
            "repo.content.update",
            (
                "repo.content.update",
                r#"{"event":{"action":"update","scope":"repo.content"}}"#,
            ),
            (
                "repo.content.create",
                r#"{"event":{"action":"create","scope":"repo.content"}}"#,
            ),
        ),
        (
            presets::customerio(secret()),
            "email.opened",
            (
                "email",
                r#"{"event_id":"a","object_type":"email","metric":"opened"}"#,
            ),
            (
                "push",
                r#"{"event_id":"b","object_type":"push","metric":"opened"}"#,
            ),
        ),
        (
            presets::recurly(secret()),
            "account.*",
            (
                "account",
                r#"{"object_type":"account","event_type":"created"}"#,
            ),
            (
                "subscription",
                r#"{"object_type":"subscription","event_type":"created"}"#,
            ),
        ),
        (
            presets::modern_treasury(secret()),
            "payment_order.created",
            (
                "payment_order",
                r#"{"data":{"object":"payment_order"},"event":"created"}"#,
            ),
            (
                "counterparty",
                r#"{"data":{"object":"counterparty"},"event":"created"}"#,
            ),
        ),
        (
            presets::heroku(secret()),
            "api:build.update",
            (
                "api:build",
                r#"{"action":"update","webhook_metadata":{"delivery":{"id":"a"},"event":{"include":"api:build"}}}"#,
            ),
            (
                "api:build",
                r#"{"action":"create","webhook_metadata":{"delivery":{"id":"b"},"event":{"include":"api:build"}}}"#,
            ),
        ),
    ] {
        let endpoint = provider.name().to_owned();
        let layer =
            IdempotentWebhook::new(database.pool.clone(), endpoint.as_str(), provider.clone())
                .database_timeout(Duration::from_secs(20))
                .only([name]);
        let router: Router = Router::new().route("/", post(write_effect).layer(layer));
        let sent = async |(event_type, body): (&str, &str)| {
            let delivery = TestDelivery::new(&provider).body(body);
            let response = send(&router, delivery.event_type(event_type).request()).await;
            response.outcome
        };
        assert_eq!(sent(wanted).await, "processed", "{endpoint}");
        assert_eq!(sent(ignored).await, "ignored", "{endpoint}");
    }
    assert_rows!(database, claims: 12, effects: 12);
}

/// A handshake is answered, regardless of the table of types.
#[tokio::test]
async fn a_handshake_is_no_event() {
    let database = Database::new().await;
    let slack = presets::slack(secret());
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", slack.clone());
    let events = Events::new().on("message", write_effect).ignore_others();
    let router: Router = Router::new().route("/", post(events.layer(layer)));
    let delivery = TestDelivery::new(&slack).body(r#"{"type":"url_verification","challenge":"c"}"#);
    let sent = send(&router, delivery.request()).await;
    assert_eq!(sent, answer(200, "handshake", "c"));
    assert_rows!(database, claims: 0, effects: 0);
}
