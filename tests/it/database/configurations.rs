//! Guarantees G10 and G11: the database may have other settings than usual, and its tables may be
//! missing.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::{
    DedupeTx, Endpoint, IdempotentWebhook, Keep, Recovery, Retention, presets,
};
use sqlx::Row;
use sqlx::postgres::PgPoolOptions;

use crate::support::{
    Database, TestApp, answer, assert_rows, github, github_delivery, record, secret, send,
    send_copies, write_effect,
};

const UNAVAILABLE: &str = "temporarily unavailable";

#[tokio::test]
async fn g11_tables_of_the_same_name_are_not_confused() {
    let app = TestApp::github(write_effect).await;
    app.database
        .run(
            "create table deliveries (endpoint int, delivery_id int, event_type int);
             create table redelivery_windows (endpoint int)",
        )
        .await;
    for outcome in ["processed", "duplicate"] {
        assert_eq!(app.send(github("a", "{}")).await.outcome, outcome);
    }
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn g10_tables_that_are_missing_are_a_503() {
    let database = Database::empty().await;
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()));
    let router = Router::new().route("/", post(write_effect).layer(layer));
    assert_eq!(
        send(&router, github("a", "{}")).await,
        answer(503, "failed", UNAVAILABLE)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn g11_any_default_isolation_will_do() {
    for isolation in ["repeatable read", "serializable"] {
        let app = TestApp::github(write_effect).await;
        let name = &app.database.name;
        app.database
            .run(&format!(
                "alter database {name} set default_transaction_isolation = '{isolation}'"
            ))
            .await;
        let mut routers = Vec::new();
        for _ in 0..3 {
            routers.push(app.elsewhere(write_effect).await);
        }
        for round in 0..20 {
            let request = || github(&round.to_string(), "{}");
            for answered in send_copies(&routers, 9, request).await {
                assert_eq!(answered.status, 200, "{isolation}: {answered:?}");
            }
        }
        assert_eq!(app.runs(), 20);
        assert_rows!(app.database, claims: 20, effects: 20);

        // The replay guard is active here, and many ids have one body.
        let mut guarded = Vec::new();
        for _ in 0..3 {
            let set = IdempotentWebhook::replay_guard;
            guarded.push(app.elsewhere_with(set, write_effect).await);
        }
        for round in 0..20 {
            let copy = AtomicU32::new(0);
            let request = || {
                let copy = copy.fetch_add(1, Ordering::Relaxed);
                github(&format!("{round}-{copy}"), format!("[{round}]"))
            };
            for answered in send_copies(&guarded, 9, request).await {
                assert_eq!(answered.status, 200, "{isolation}: {answered:?}");
            }
        }
        assert_eq!(app.runs(), 40);
        assert_rows!(app.database, claims: 40, effects: 40);

        let pools = [
            app.database.another_pool(5).await,
            app.database.another_pool(5).await,
        ];
        crate::late_claim::works_on(&app.database, pools).await;
        let pools = [
            app.database.another_pool(5).await,
            app.database.another_pool(5).await,
        ];
        crate::claim::function::works_on(&app.database, pools).await;
    }
}

#[tokio::test]
async fn g11_a_read_only_database_is_a_503() {
    let database = Database::new().await;
    let read_only = database
        .options()
        .options([("default_transaction_read_only", "on")]);
    let pool = PgPoolOptions::new().connect_lazy_with(read_only);
    let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()));
    let router = Router::new().route("/", post(write_effect).layer(layer));
    assert_eq!(
        send(&router, github("a", "{}")).await,
        answer(503, "failed", UNAVAILABLE)
    );
    assert_rows!(database, claims: 0, effects: 0);
}

#[tokio::test]
async fn g11_a_role_without_rights_to_change_the_schema_will_do() {
    let app = TestApp::github(write_effect).await;
    app.database
        .run(
            "drop role if exists app;
             create role app login;
             grant usage on schema idempotent_webhook to app;
             grant select, insert, delete on all tables in schema idempotent_webhook to app;
             grant insert on effects to app",
        )
        .await;
    let pool = PgPoolOptions::new().connect_lazy_with(
        app.database
            .options()
            .username("app")
            .options([("search_path", "public")]),
    );
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()));
    let router = Router::new().route("/", post(write_effect).layer(layer.clone()));
    for outcome in ["processed", "duplicate"] {
        assert_eq!(send(&router, github("a", "{}")).await.outcome, outcome);
    }
    assert_rows!(app.database, claims: 1, effects: 1);
    crate::late_claim::works_on(&app.database, [pool.clone(), pool.clone()]).await;
    crate::claim::function::works_on(&app.database, [pool.clone(), pool.clone()]).await;

    app.database
        .run(
            "grant update on idempotent_webhook.subjects, idempotent_webhook.activity,
                 idempotent_webhook.rejections, idempotent_webhook.endpoint_settings to app;
             grant update on idempotent_webhook.kept_deliveries, idempotent_webhook.discarded,
                 idempotent_webhook.pruned, idempotent_webhook.turns to app",
        )
        .await;
    let advancing = async |mut tx: DedupeTx| {
        tx.advance("subject", 1).await.unwrap();
        StatusCode::CONFLICT
    };
    let activity = layer.clone();
    let layer = layer
        .keep(record(Keep::failed(&Recovery::new(pool.clone()))))
        .replay_guard();
    let router = Router::new().route("/", post(advancing).layer(layer));
    for attempts in 1..=2 {
        assert_eq!(send(&router, github("b", "{}")).await.status, 409);
        let failing = "select attempts from idempotent_webhook.failing_deliveries";
        let on_record: i32 = sqlx::query_scalar(failing).fetch_one(&pool).await.unwrap();
        assert_eq!(on_record, attempts);
    }
    assert!(
        Endpoint::new(pool.clone(), "test")
            .forget("a")
            .await
            .unwrap()
    );

    let forged = github_delivery().tampered();
    assert_eq!(send(&router, forged.request()).await.status, 401);
    activity.drained().await;
    for table in ["activity", "rejections", "endpoint_settings"] {
        let rows = format!("exists (select from idempotent_webhook.{table})");
        app.database.until(&rows).await;
    }

    let age = Duration::from_secs(4 * 24 * 60 * 60);
    let pruned = idempotent_webhook::prune(&pool, age).await.unwrap();
    assert_eq!(pruned.deliveries, 0);

    app.database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, delivery_id, received_at)
             values ('test', 'old', now() - interval '5 days')",
        )
        .await;
    let retention = Retention::new(pool, age).every(Duration::from_millis(100));
    let task = retention.spawn();
    app.database
        .until("not exists (select from idempotent_webhook.deliveries where delivery_id = 'old')")
        .await;
    assert_eq!(task.stop().await.deliveries, 1);
}

/// The guide's page on the database says this about poolers that do not support prepared
/// statements.
#[tokio::test]
async fn sqlx_leaves_named_statements_on_the_server_without_its_cache_as_well() {
    let database = Database::new().await;
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .connect_lazy_with(database.options().statement_cache_capacity(0));
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()));
    let router = Router::new().route("/", post(write_effect).layer(layer));
    let mut left = Vec::new();
    for id in ["a", "b"] {
        assert_eq!(send(&router, github(id, "{}")).await.outcome, "processed");
        let count = sqlx::raw_sql("select count(*)::text from pg_prepared_statements");
        let count: String = count.fetch_one(&pool).await.unwrap().get(0);
        left.push(count.parse::<u32>().unwrap());
    }
    // The claim, the handler's insert, and the check before the commit.
    assert!(left[1] >= left[0] + 3, "{left:?}");
    assert_rows!(database, claims: 2, effects: 2);
}
