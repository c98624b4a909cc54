//! Guarantee V1: the claim as a SQL function, for other drivers. In these tests, a plain sqlx connection takes the
//! place of another driver; `examples/drivers` has programs that use real drivers.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use idempotent_webhook::recovery::Reprocessed;
use idempotent_webhook::testing::assert_idempotent;
use idempotent_webhook::{
    DedupeTx, Delivery, Endpoint, HandlerError, IdempotentWebhook, Keep, LateClaim, Recency,
    Source, presets, prune,
};
use sqlx::{AssertSqlSafe, PgConnection, PgPool};

use crate::support::{
    Database, NOTHING_KEPT, ONE_WAITS_FOR_A_LOCK, TestApp, answer, assert_kept, assert_rows,
    endpoint, failing_behind_gate, gate, gated, github, github_delivery, keep, recover, recovery,
    secret, send, send_copies, spawn_send, write_effect,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn claim(connection: &mut PgConnection, id: &str) -> sqlx::Result<bool> {
    sqlx::query_scalar("select idempotent_webhook.claim('test', '', $1, 'push')")
        .bind(id)
        .fetch_one(connection)
        .await
}

async fn write(connection: &mut PgConnection, id: &str) -> sqlx::Result<()> {
    sqlx::query("insert into effects (delivery_id) values ($1)")
        .bind(id)
        .execute(connection)
        .await
        .map(drop)
}

/// Claims and writes as a handler with another driver does. Returns whether the call has claimed the delivery.
async fn process(pool: &PgPool, id: &str) -> sqlx::Result<bool> {
    let mut tx = pool.begin().await?;
    if !claim(&mut tx, id).await? {
        return Ok(false);
    }
    write(&mut tx, id).await?;
    tx.commit().await?;
    Ok(true)
}

#[tokio::test]
async fn v1_the_layer_and_the_function_have_one_claim() {
    let app = TestApp::github(write_effect).await;
    let pool = &app.database.pool;
    assert!(process(pool, "a").await.unwrap());
    assert!(!process(pool, "a").await.unwrap());
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "duplicate", "")
    );
    assert_eq!(app.send(github("b", "{}")).await.outcome, "processed");
    assert!(!process(pool, "b").await.unwrap());
    assert_rows!(app.database, claims: 2, effects: 2);
    let rows: Vec<(String, String, Option<String>)> = sqlx::query_as(
        "select endpoint, tenant, event_type from idempotent_webhook.deliveries order by delivery_id",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    let row = ("test".to_owned(), String::new(), Some("push".to_owned()));
    assert_eq!(rows, [row.clone(), row]);
}

/// The guide describes how a preset or an application changes to another delivery id in two deploys. Here the id moves
/// from a header to the body. A copy of each delivery that one version has processed is sent to the next version.
#[tokio::test]
async fn v1_another_delivery_id_in_two_deploys_runs_nothing_again() {
    let event = |id: &str| github(&format!("old-{id}"), format!(r#"{{"id":"new-{id}"}}"#));
    let app = TestApp::github(write_effect).await;
    let before = app.router.clone();
    assert_eq!(send(&before, event("1")).await.outcome, "processed");

    #[derive(serde::Deserialize)]
    struct Event {
        id: String,
    }
    let both = app
        .elsewhere(
            async |mut tx: DedupeTx, delivery: Delivery, Json(event): Json<Event>| {
                let is_new = claim(&mut tx, &event.id).await?;
                if is_new {
                    write(&mut tx, delivery.id().as_ref()).await?;
                }
                Ok::<_, HandlerError>(StatusCode::OK)
            },
        )
        .await;
    assert_eq!(send(&both, event("1")).await.outcome, "duplicate");
    assert_eq!(send(&both, event("2")).await.outcome, "processed");
    assert_eq!(send(&before, event("2")).await.outcome, "duplicate");
    assert_rows!(app.database, claims: 3, effects: 2);

    let new_id = presets::github(secret()).delivery_id(Source::json("$.id".parse().unwrap()));
    let after = app.elsewhere_of(new_id, write_effect).await;
    assert_eq!(send(&after, event("2")).await.outcome, "duplicate");
    assert_eq!(send(&after, event("3")).await.outcome, "processed");
    // During the second deploy, both versions run.
    assert_eq!(send(&both, event("3")).await.outcome, "processed");
    assert_rows!(app.database, claims: 5, effects: 3);
}

#[tokio::test]
async fn v1_a_claim_that_is_rolled_back_is_free() {
    let app = TestApp::github(write_effect).await;
    let mut tx = app.database.pool.begin().await.unwrap();
    assert!(claim(&mut tx, "a").await.unwrap());
    write(&mut tx, "a").await.unwrap();
    tx.rollback().await.unwrap();
    assert_rows!(app.database, claims: 0, effects: 0);
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The function waits for the layer's claim, and claims the delivery if the layer rolls back.
#[tokio::test]
async fn v1_the_function_waits_for_the_layer() {
    let (mut gate, handler) = gated();
    let app = TestApp::github(handler).await;
    let sent = spawn_send(&app.router, github("a", "{}"));
    gate.reached().await;
    let pool = app.database.another_pool(1).await;
    let waiting = tokio::spawn(async move { process(&pool, "a").await });
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    gate.open();
    assert_eq!(sent.await.unwrap().outcome, "processed");
    assert!(!waiting.await.unwrap().unwrap());
    assert_rows!(app.database, claims: 1, effects: 1);

    let (mut gate, failing) = failing_behind_gate();
    let failing = app.elsewhere(failing).await;
    let sent = spawn_send(&failing, github("b", "{}"));
    gate.reached().await;
    let pool = app.database.another_pool(1).await;
    let waiting = tokio::spawn(async move { process(&pool, "b").await });
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    gate.open();
    assert_eq!(sent.await.unwrap().status, 502);
    assert!(waiting.await.unwrap().unwrap());
    assert_rows!(app.database, claims: 2, effects: 2);
}

/// The layer also waits for a claim by the function.
#[tokio::test]
async fn v1_the_layer_waits_for_the_function() {
    let app = TestApp::github(write_effect).await;
    assert_eq!(app.send(github("b", "{}")).await.outcome, "processed");
    let mut other = app.database.another_pool(1).await.begin().await.unwrap();
    assert!(claim(&mut other, "a").await.unwrap());
    let sent = spawn_send(&app.router, github("a", "{}"));
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    write(&mut other, "a").await.unwrap();
    other.commit().await.unwrap();
    assert_eq!(sent.await.unwrap(), answer(200, "duplicate", ""));
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn v1_the_wait_is_bounded_by_lock_timeout() {
    let database = Database::new().await;
    let mut first = database.pool.begin().await.unwrap();
    assert!(claim(&mut first, "a").await.unwrap());
    let mut second = database.pool.begin().await.unwrap();
    sqlx::query("set local lock_timeout = '50ms'")
        .execute(&mut *second)
        .await
        .unwrap();
    let error = claim(&mut second, "a").await.unwrap_err();
    let code = error.as_database_error().and_then(|error| error.code());
    assert_eq!(code.as_deref(), Some("55P03"));
    assert!(claim(&mut first, "b").await.unwrap(), "another id is free");
}

/// Nothing is processed without dedupe, and two deliveries never share a key.
#[tokio::test]
async fn v1_what_cannot_be_a_key_is_refused() {
    let database = Database::new().await;
    let long = format!("'{}'", "x".repeat(256));
    for arguments in [
        "'', '', 'a', null",
        "'test', '', '', null",
        "'test', '', null, null",
        "null, '', 'a', null",
        "'test', null, 'a', null",
        &format!("'test', '', {long}, null"),
        &format!("{long}, '', 'a', null"),
    ] {
        let sql = format!("select idempotent_webhook.claim({arguments})");
        let error = sqlx::query(AssertSqlSafe(sql))
            .execute(&database.pool)
            .await
            .unwrap_err();
        let code = error.as_database_error().and_then(|error| error.code());
        assert_eq!(code.as_deref(), Some("22023"), "{arguments}: {error}");
    }
    assert_rows!(database, claims: 0, effects: 0);
}

/// The function's claim deletes the kept row of the delivery, as the layer's claim does. With an archive, the row
/// stays, and the delivery can be run again.
#[tokio::test]
async fn v1_what_is_kept_ends_with_the_claim() {
    for archive in [None, Some(DAY)] {
        let set = |keep: Keep| match archive {
            Some(time) => keep.processed_for(time),
            None => keep,
        };
        let (mut gate, failing) = failing_behind_gate();
        let app = TestApp::keeping(|keep| set(keep.retry_delays([DAY])), failing).await;
        gate.open();
        assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
        gate.reached().await;
        assert_kept!(app.database, "due", attempts: 1, retries: 0);

        // The row is deleted only if the transaction commits.
        let mut tx = app.database.pool.begin().await.unwrap();
        assert!(claim(&mut tx, "a").await.unwrap());
        tx.rollback().await.unwrap();
        assert_kept!(app.database, "due", attempts: 1, retries: 0);

        assert!(process(&app.database.pool, "a").await.unwrap());
        assert_rows!(app.database, claims: 1, effects: 1);
        if archive.is_none() {
            app.database.until(NOTHING_KEPT).await;
            continue;
        }
        assert_kept!(app.database, "processed", attempts: 1, retries: 0);
        app.database
            .until(
                "exists (
                    select from idempotent_webhook.kept_deliveries
                    where archived_until - processed_at = interval '1 day'
                        and next_attempt_at is null and taken_by is null
                )",
            )
            .await;
        assert_eq!(
            endpoint(&app).reprocess("a").await.unwrap(),
            Reprocessed::Due
        );
        assert_rows!(app.database, claims: 0, effects: 1);
        assert!(process(&app.database.pool, "a").await.unwrap());
        assert_rows!(app.database, claims: 1, effects: 2);
    }
}

/// The layer claims the delivery `a`, and the function claims the delivery `b`. Both must leave the same rows.
#[tokio::test]
async fn v1_the_function_ends_what_is_kept_as_the_layer_does() {
    for state in ["due", "dead", "recorded"] {
        for time in ["null", "interval '1 day'"] {
            let app = TestApp::github(write_effect).await;
            app.database
                .run(&format!(
                    "insert into idempotent_webhook.kept_deliveries
                         (endpoint, delivery_id, state, attempts, archived_for, next_attempt_at,
                          unreached_at, unreached_status, processed_version, taken_by)
                     select 'test', id, '{state}', 1, {time},
                         case '{state}' when 'due' then now() end, now(), 404, '0.9', 7
                     from unnest(array['a', 'b']) as id"
                ))
                .await;
            let sent = app.send(github("a", "{}")).await;
            assert_eq!(sent.outcome, "processed");
            assert!(process(&app.database.pool, "b").await.unwrap());
            assert_rows!(app.database, claims: 2, effects: 2);
            let rows: Vec<String> = sqlx::query_scalar(
                "select (to_jsonb(kept) - array['delivery_id', 'takes'])::text
                 from (
                     select *, archived_until - processed_at as stays
                     from idempotent_webhook.kept_deliveries
                     order by delivery_id
                 ) as kept",
            )
            .fetch_all(&app.database.pool)
            .await
            .unwrap();
            let stays = time != "null" && state != "recorded";
            assert_eq!(rows.len(), if stays { 2 } else { 0 }, "{state}, {time}");
            // The two claims are in two transactions, so their times differ.
            let without_times = rows.iter().map(|row| {
                let mut row: serde_json::Value = serde_json::from_str(row).unwrap();
                for time in ["processed_at", "archived_until"] {
                    assert!(row[time].take().is_string(), "{row}");
                }
                row
            });
            let rows: Vec<_> = without_times.collect();
            assert!(rows.windows(2).all(|pair| pair[0] == pair[1]), "{rows:#?}");
        }
    }
}

/// A claim also ends the row of a dead delivery, and of a delivery that is only recorded.
#[tokio::test]
async fn v1_what_does_not_run_again_ends_too() {
    for (state, time, ends) in [
        ("dead", "null", "not exists"),
        ("dead", "interval '1 day'", "exists"),
        ("recorded", "interval '1 day'", "not exists"),
    ] {
        let database = Database::new().await;
        database
            .run(&format!(
                "insert into idempotent_webhook.kept_deliveries
                     (endpoint, delivery_id, state, attempts, archived_for)
                 values ('test', 'a', '{state}', 1, {time}), ('test', 'b', '{state}', 1, {time})"
            ))
            .await;
        assert!(process(&database.pool, "a").await.unwrap());
        database
            .until(&format!(
                "{ends} (
                    select from idempotent_webhook.kept_deliveries
                    where delivery_id = 'a' and state = 'processed'
                )
                and exists (
                    select from idempotent_webhook.kept_deliveries
                    where delivery_id = 'b' and state = '{state}'
                )
                and not exists (
                    select from idempotent_webhook.kept_deliveries
                    where delivery_id = 'a' and state <> 'processed'
                )"
            ))
            .await;
    }
}

/// Claims of different deliveries do not wait for each other, even if they are the first claims for an endpoint, which
/// retention does not know yet.
#[tokio::test]
async fn v1_deliveries_of_a_new_endpoint_do_not_wait_for_each_other() {
    let app = TestApp::github(write_effect).await;
    let mut first = app.database.pool.begin().await.unwrap();
    assert!(claim(&mut first, "a").await.unwrap());
    let mut second = app.database.pool.begin().await.unwrap();
    sqlx::query("set local lock_timeout = '100ms'")
        .execute(&mut *second)
        .await
        .unwrap();
    assert!(claim(&mut second, "b").await.unwrap());
    // Stripe's window, for example, is 30 days.
    let month = presets::github(secret()).redelivery_window(30 * DAY);
    let layer = IdempotentWebhook::new(app.database.another_pool(1).await, "test", month)
        .database_timeout(Duration::from_secs(20));
    let router: Router = Router::new().route("/", post(write_effect).layer(layer));
    assert_eq!(send(&router, github("c", "{}")).await.outcome, "processed");
    first.rollback().await.unwrap();
    second.commit().await.unwrap();
    assert_rows!(app.database, claims: 2, effects: 1);
}

/// A layer registers for how long its provider may still send a delivery, regardless of whether the layer or the
/// handler claims the delivery.
#[tokio::test]
async fn g12_a_late_handler_that_claims_by_the_function_registers_the_window() {
    let database = Database::new().await;
    let elsewhere = database.another_pool(3).await;
    let handler = move |claim: LateClaim, delivery: Delivery| {
        let elsewhere = elsewhere.clone();
        async move {
            assert!(process(&elsewhere, delivery.id().as_str()).await?);
            claim.committed();
            Ok::<_, HandlerError>(StatusCode::OK)
        }
    };
    let long = presets::github(secret()).redelivery_window(60 * DAY);
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", long).late_claim();
    let router: Router = Router::new().route("/", post(handler).layer(layer));
    assert_eq!(send(&router, github("a", "{}")).await.outcome, "processed");
    assert!(prune(&database.pool, 35 * DAY).await.is_err());
    assert!(prune(&database.pool, 60 * DAY).await.is_ok());
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test]
async fn v1_the_assertion_says_that_it_cannot_roll_back_what_a_handler_commits() {
    let database = Database::new().await;
    let elsewhere = database.another_pool(3).await;
    let handler = move |claim: LateClaim, delivery: Delivery| {
        let elsewhere = elsewhere.clone();
        async move {
            assert!(process(&elsewhere, delivery.id().as_str()).await?);
            claim.committed();
            Ok::<_, HandlerError>(StatusCode::OK)
        }
    };
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()));
    let layer = layer.late_claim();
    let router: Router = Router::new().route("/", post(handler).layer(layer));
    let asserted = tokio::spawn(async move {
        assert_idempotent(&router, &github_delivery(), async || 0).await;
    });
    let panic = asserted.await.unwrap_err().into_panic();
    let message = panic.downcast_ref::<&str>().unwrap();
    assert!(message.contains("allow_unused_transaction"), "{message}");
}

/// The handler's commit has processed the delivery, so a failure afterwards is not kept, and the sender need not send
/// the delivery again.
#[tokio::test]
async fn v1_a_handler_that_fails_after_its_commit_has_processed_the_delivery() {
    let pool = Arc::new(OnceLock::<PgPool>::new());
    let elsewhere = pool.clone();
    let handler = move |claim: LateClaim, delivery: Delivery| {
        let pool = pool.clone();
        async move {
            assert!(process(pool.get().unwrap(), delivery.id().as_str()).await?);
            claim.committed();
            match delivery.id().as_str() {
                "panics" => panic!("after the commit"),
                _ => Err::<StatusCode, _>(HandlerError::new("after the commit")),
            }
        }
    };
    let set = |layer: IdempotentWebhook, recovery: &_| layer.late_claim().keep(Keep::all(recovery));
    let app = TestApp::recovered(presets::github(secret()), set, handler).await;
    elsewhere.set(app.database.another_pool(1).await).unwrap();
    for id in ["fails", "panics"] {
        let sent = app.send(github(id, "{}")).await;
        assert_eq!(sent, answer(200, "duplicate", ""), "{id}");
    }
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn v1_retention_sees_no_difference() {
    let database = Database::new().await;
    assert!(process(&database.pool, "a").await.unwrap());
    database.age_claims("40 days").await;
    assert!(process(&database.pool, "b").await.unwrap());
    // Retention deletes nothing of an endpoint until its window is registered.
    let window = "(
        select array_agg(redelivery_window) = array[interval '32 days']
        from idempotent_webhook.redelivery_windows where endpoint = 'test'
    )";
    database.until(window).await;
    let month = 32 * DAY;
    assert_eq!(prune(&database.pool, month).await.unwrap().deliveries, 1);
    assert!(!process(&database.pool, "b").await.unwrap());
    assert_rows!(database, claims: 1, effects: 2);
}

/// A layer that claims late accepts the claim that the handler has made itself, so recovery also works with other
/// drivers.
#[tokio::test(flavor = "multi_thread")]
async fn v1_a_late_handler_may_claim_by_the_function() {
    let database = Database::new().await;
    let elsewhere = database.another_pool(3).await;
    let handler = move |claim: LateClaim, delivery: Delivery| {
        let elsewhere = elsewhere.clone();
        async move {
            if delivery.attempt() == 1 {
                return Err(HandlerError::new("not yet"));
            }
            if process(&elsewhere, delivery.id().as_str()).await? {
                claim.committed();
            }
            Ok(StatusCode::OK)
        }
    };
    let recovery = recovery(&database.pool);
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()))
        .late_claim()
        .keep(
            Keep::all(&recovery)
                .retry_delays([Duration::from_millis(20)])
                .processed_for(DAY),
        );
    let router: Router = Router::new().route("/", post(handler).layer(layer));
    assert_eq!(
        send(&router, github("a", "{}")).await,
        answer(500, "kept", "")
    );
    assert_rows!(database, claims: 0, effects: 0);
    let running = recovery.spawn(router);
    database
        .until("exists (select from idempotent_webhook.kept_deliveries where state = 'processed')")
        .await;
    assert_rows!(database, claims: 1, effects: 1);
    let endpoint = Endpoint::new(database.pool.clone(), "test");
    assert_eq!(endpoint.reprocess("a").await.unwrap(), Reprocessed::Due);
    database.until("2 = (select count(*) from effects)").await;
    running.stop().await;
    assert_rows!(database, claims: 1, effects: 2);
    assert_kept!(database, "processed", attempts: 3, retries: 1);
}

/// Two processes get copies of each delivery at the same time. The test counts how many times a handler with a late
/// claim has claimed with the function.
#[tokio::test(flavor = "multi_thread")]
async fn v1_a_handler_that_has_committed_is_acknowledged_as_one_that_was_processed() {
    let database = Database::new().await;
    let mut routers = Vec::new();
    for _ in 0..2 {
        let elsewhere = database.another_pool(5).await;
        let handler = move |claim: LateClaim, delivery: Delivery| {
            let elsewhere = elsewhere.clone();
            async move {
                if process(&elsewhere, delivery.id().as_str()).await? {
                    claim.committed();
                }
                Ok::<_, HandlerError>("done")
            }
        };
        let layer = IdempotentWebhook::new(
            database.another_pool(5).await,
            "test",
            presets::github(secret()),
        )
        .late_claim()
        .allow_unused_transaction();
        routers.push(Router::new().route("/", post(handler).layer(layer)));
    }
    for round in 0..10 {
        let id = round.to_string();
        let answers = send_copies(&routers, 6, || github(&id, "{}")).await;
        assert!(answers.iter().all(|a| a.status == 200), "{answers:?}");
        let processed = answers.iter().filter(|a| a.outcome == "processed");
        assert_eq!(processed.count(), 1, "{answers:?}");
    }
    assert_rows!(database, claims: 10, effects: 10);
    assert_idempotent(&routers[0], &github_delivery().id("b"), || async {
        database.rows().await.effects
    })
    .await;
}

/// If a transaction is aborted, Postgres answers its commit with a rollback. A driver may report this as success.
#[tokio::test]
async fn g5_a_commit_of_another_driver_that_was_none_is_not_acknowledged() {
    let elsewhere = Arc::new(OnceLock::<PgPool>::new());
    let pool = elsewhere.clone();
    let handler = move |claim: LateClaim, delivery: Delivery| {
        let pool = pool.clone();
        async move {
            let mut tx = pool.get().unwrap().begin().await?;
            let is_claimed = self::claim(&mut tx, delivery.id().as_str()).await?;
            assert!(is_claimed);
            assert!(sqlx::query("select 1 / 0").execute(&mut *tx).await.is_err());
            // Postgres rolls the transaction back.
            sqlx::query("commit").execute(&mut *tx).await?;
            claim.committed();
            Ok::<_, HandlerError>(StatusCode::OK)
        }
    };
    let app = TestApp::keeping(|keep| keep, handler.clone()).await;
    elsewhere.set(app.database.another_pool(1).await).unwrap();
    let layer = |endpoint: &str| {
        IdempotentWebhook::new(
            app.database.pool.clone(),
            endpoint,
            presets::github(secret()),
        )
        .late_claim()
    };
    let keeping = layer("test").keep(keep(&app.recovery));
    for (layer, outcome) in [(layer("other"), "failed"), (keeping, "kept")] {
        let router: Router = Router::new().route("/", post(handler.clone()).layer(layer));
        let sent = send(&router, github("a", "{}")).await;
        assert_eq!(sent, answer(500, outcome, "internal error"));
        assert_rows!(app.database, claims: 0, effects: 0);
    }
    assert_kept!(app.database, "due", attempts: 1, retries: 0);
    let reason: String =
        sqlx::query_scalar("select reason from idempotent_webhook.kept_deliveries")
            .fetch_one(&app.database.pool)
            .await
            .unwrap();
    assert!(reason.contains("`LateClaim::committed`"), "{reason}");
}

/// Recovery takes deliveries that the function has claimed since they were kept.
#[tokio::test(flavor = "multi_thread")]
async fn v1_recovery_does_not_run_what_was_claimed() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    app.database.insert_due(3).await;
    for id in ["due-1", "due-2"] {
        assert!(process(&app.database.pool, id).await.unwrap());
    }
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!(app.runs(), 1);
    assert_rows!(app.database, claims: 3, effects: 3);
}

#[tokio::test]
async fn v1_advance_is_that_of_the_handler() {
    let advancing = async |mut tx: DedupeTx| {
        assert_eq!(tx.advance("sub_1", 5).await.unwrap(), Recency::Newer);
        StatusCode::OK
    };
    let app = TestApp::github(advancing).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    for (subject, version, expected) in [
        ("sub_1", 5_i64, 0),
        ("sub_1", 4, -1),
        ("sub_1", i64::MIN, -1),
        ("sub_1", i64::MAX, 1),
        ("sub_1", 6, -1),
        ("sub_2", 1, 1),
    ] {
        let recency: i32 =
            sqlx::query_scalar("select idempotent_webhook.advance('test', '', $1, $2)")
                .bind(subject)
                .bind(version)
                .fetch_one(&app.database.pool)
                .await
                .unwrap();
        assert_eq!(recency, expected, "{subject} {version}");
    }
}

/// Claims with the function while a layer claims the same deliveries, in processes that use these pools.
pub async fn works_on(database: &Database, [of_layer, pool]: [PgPool; 2]) {
    let before = database.rows().await;
    let layer = IdempotentWebhook::new(of_layer, "test", presets::github(secret()));
    let layered: Router = Router::new().route("/", post(write_effect).layer(layer));
    for round in 0..10 {
        let id = format!("function-{round}");
        let (claimed, answers) = tokio::join!(
            async {
                // An application retries like this at an isolation level where serialization failures are possible.
                loop {
                    match process(&pool, &id).await {
                        Ok(claimed) => break claimed,
                        Err(error) if is_conflict(&error) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            },
            send_copies(std::slice::from_ref(&layered), 3, || github(&id, "{}")),
        );
        assert!(answers.iter().all(|a| a.status == 200), "{answers:?}");
        let processed = answers.iter().filter(|a| a.outcome == "processed").count();
        assert_eq!(processed + usize::from(claimed), 1, "{answers:?}");
    }
    assert_rows!(database, claims: before.claims + 10, effects: before.effects + 10);
}

fn is_conflict(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.as_deref() == Some("40001")
}

/// Claims with the function, and writes one effect. Passes the take number: a counter of the kept row that each take
/// increases, so that an outdated attempt cannot claim.
async fn process_take(pool: PgPool, claim: LateClaim, id: &str) -> Result<(), HandlerError> {
    let mut tx = pool.begin().await?;
    let is_claimed: bool =
        sqlx::query_scalar("select idempotent_webhook.claim('test', '', $1, 'push', $2)")
            .bind(id)
            .bind(claim.take_number())
            .fetch_one(&mut *tx)
            .await?;
    if is_claimed {
        write(&mut tx, id).await?;
        tx.commit().await?;
        claim.committed();
    }
    Ok(())
}

/// Each case is a statement that changes or removes the delivery's row while the handler runs, and the number of
/// effects at the end.
#[tokio::test(flavor = "multi_thread")]
async fn v1_a_late_handler_that_was_overtaken_does_not_claim_by_the_function() {
    let takes = "update idempotent_webhook.kept_deliveries set takes = takes + 1";
    let discards = "delete from idempotent_webhook.kept_deliveries";
    let forgets = "select idempotent_webhook.claim('test', '', 'a', 'push');
        insert into effects values ('a');
        delete from idempotent_webhook.deliveries";
    for (overtaken, effects) in [(takes, 0), (discards, 0), (forgets, 1)] {
        let database = Database::new().await;
        let (pool, (mut gate, way)) = (database.another_pool(3).await, gate());
        let handler = move |claim: LateClaim, delivery: Delivery| {
            let (pool, way) = (pool.clone(), way.clone());
            async move {
                way.pass().await;
                process_take(pool, claim, delivery.id().as_str()).await
            }
        };
        let recovery = recovery(&database.pool);
        let layer =
            IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()))
                .late_claim()
                .keep(Keep::all(&recovery).retry_delays([DAY]));
        let router: Router = Router::new().route("/", post(handler).layer(layer));
        let sent = spawn_send(&router, github("a", "{}"));
        gate.reached().await;
        database.run(overtaken).await;
        gate.open();
        assert_eq!(sent.await.unwrap().status, 500, "{overtaken}");
        assert_rows!(database, claims: 0, effects: effects, "{overtaken}");
        // This delivery is not overtaken.
        let sent = spawn_send(&router, github("b", "{}"));
        gate.reached().await;
        gate.open();
        assert_eq!(sent.await.unwrap(), answer(200, "processed", ""));
        assert_rows!(database, claims: 1, effects: effects + 1, "{overtaken}");
    }
}

/// An index cannot hold subjects that are as long as in this test, and Postgres cannot store NUL in a text.
#[tokio::test]
async fn v1_a_subject_of_any_length_and_content_is_advanced() {
    let long = "ä".repeat(1500);
    let just = "x".repeat(255);
    let subjects = [&*long, &*just, "a\0b", &format!("{just}x"), "", "ab"];
    let all = subjects.map(str::to_owned);
    let advancing = async move |mut tx: DedupeTx| {
        for subject in &all {
            assert_eq!(tx.advance(subject, 5).await.unwrap(), Recency::Newer);
            assert_eq!(tx.advance(subject, 4).await.unwrap(), Recency::Older);
        }
        StatusCode::OK
    };
    let app = TestApp::github(advancing).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    for subject in subjects.iter().filter(|subject| !subject.contains('\0')) {
        for (version, expected) in [(5_i64, 0), (4, -1), (6, 1)] {
            let recency: i32 =
                sqlx::query_scalar("select idempotent_webhook.advance('test', '', $1, $2)")
                    .bind(subject)
                    .bind(version)
                    .fetch_one(&app.database.pool)
                    .await
                    .unwrap();
            assert_eq!(recency, expected, "{subject} {version}");
        }
    }
    let stored = "select count(*) from idempotent_webhook.subjects";
    assert_eq!(app.database.count(stored).await, 6);
    assert_rows!(app.database, claims: 1, effects: 0);
}
