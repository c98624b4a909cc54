//! Guarantees G4 to G6: one transaction, acknowledged after its commit, and rolled back before any other answer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::handler::Handler;
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::StreamExt;
use idempotent_webhook::{DedupeTx, Delivery, IdempotentWebhook, Source, presets};
use sqlx::postgres::PgListener;
use sqlx::{Connection, Executor, PgConnection};

use crate::support::{
    Rows, TestApp, answer, assert_rows, github, insert_effect, logged, secret, send, soon,
    write_effect,
};

const INTERNAL_ERROR: &str = "internal error";

#[tokio::test]
async fn g4_the_claim_and_the_effects_commit_together() {
    async fn look(mut tx: DedupeTx, delivery: Delivery) -> String {
        insert_effect(&mut tx, &delivery).await.unwrap();
        let rows = Rows::count(&mut *tx).await.unwrap();
        format!("{rows:?}")
    }
    let app = TestApp::github(look).await;
    assert_eq!(
        app.send(github("a", "{}")).await.body,
        "Rows { claims: 1, effects: 1 }"
    );
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn g4_a_nested_begin_is_a_savepoint() {
    async fn nested(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        let mut kept = tx.begin().await.unwrap();
        kept.execute("insert into effects values ('kept')")
            .await
            .unwrap();
        kept.commit().await.unwrap();

        let mut dropped = tx.begin().await.unwrap();
        dropped
            .execute("insert into effects values ('dropped')")
            .await
            .unwrap();
        drop(dropped);

        let mut failed = tx.begin().await.unwrap();
        assert!(failed.execute("select no_such_column").await.is_err());
        failed.rollback().await.unwrap();

        insert_effect(&mut tx, &delivery).await.unwrap();
        StatusCode::OK
    }
    let app = TestApp::github(nested).await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "processed", "")
    );
    let effects: Vec<String> = sqlx::query_scalar("select delivery_id from effects order by 1")
        .fetch_all(&app.database.pool)
        .await
        .unwrap();
    assert_eq!(effects, ["a", "kept"]);
}

/// A handler that answers 200 gets a 500 instead, and none of its writes are left.
async fn assert_not_acknowledged<H, T>(handler: H)
where
    H: Handler<T, ()> + Sync,
    T: 'static,
{
    let app = TestApp::github(handler).await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(500, "failed", INTERNAL_ERROR)
    );
    app.settled().await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn g5_swallowed_sql_error_is_not_acknowledged() {
    async fn swallow(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        insert_effect(&mut tx, &delivery).await.unwrap();
        let _ = tx.execute("select no_such_column").await;
        StatusCode::OK
    }
    assert_not_acknowledged(swallow).await;
}

/// Keeps the handler's transaction after the handler has returned.
type Kept = Arc<Mutex<Option<DedupeTx>>>;

#[tokio::test]
async fn g5_a_transaction_moved_into_a_task_is_not_acknowledged() {
    let kept = Kept::default();
    let app = TestApp::github({
        let kept = kept.clone();
        async move |mut tx: DedupeTx, delivery: Delivery| {
            insert_effect(&mut tx, &delivery).await.unwrap();
            *kept.lock().unwrap() = Some(tx);
            StatusCode::OK
        }
    })
    .await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(500, "failed", INTERNAL_ERROR)
    );
    // The transaction can still be written to, but will never be committed.
    let mut tx = kept.lock().unwrap().take().unwrap();
    tx.execute("insert into effects values ('late')")
        .await
        .unwrap();
    drop(tx);
    app.settled().await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn g5_a_transaction_held_by_a_streaming_body_is_not_acknowledged() {
    async fn stream(mut tx: DedupeTx, delivery: Delivery) -> Response {
        insert_effect(&mut tx, &delivery).await.unwrap();
        let mut tx = Some(tx);
        let rows = futures_util::stream::poll_fn(move |_| {
            drop(tx.take());
            std::task::Poll::Ready(None::<Result<Vec<u8>, std::io::Error>>)
        });
        Body::from_stream(rows).into_response()
    }
    assert_not_acknowledged(stream).await;
}

#[tokio::test]
async fn g5_a_commit_that_fails_is_not_acknowledged() {
    async fn defer(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        insert_effect(&mut tx, &delivery).await.unwrap();
        tx.execute("insert into child values (7)").await.unwrap();
        StatusCode::OK
    }
    let app = TestApp::github(defer).await;
    app.database
        .run(
            "create table parent (id int primary key);
             create table child (id int references parent deferrable initially deferred)",
        )
        .await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(503, "failed", "temporarily unavailable")
    );
    assert_rows!(app.database, claims: 0, effects: 0);

    app.database.run("insert into parent values (7)").await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "processed", "")
    );
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test]
async fn g5_a_transaction_that_the_handler_ended_is_not_acknowledged() {
    async fn end(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        insert_effect(&mut tx, &delivery).await.unwrap();
        let sql: &'static str = match delivery.id().as_str() {
            "rollback" => "rollback",
            "rollback and chain" => "rollback and chain",
            "rollback; begin" => "rollback; begin; insert into effects values ('stray')",
            other => panic!("unknown: {other}"),
        };
        tx.execute(sqlx::raw_sql(sql)).await.unwrap();
        StatusCode::OK
    }
    let source = idempotent_webhook::Source::json("$.id".parse().unwrap());
    let app = TestApp::of(crate::support::acme(source), end).await;
    for id in ["rollback", "rollback and chain", "rollback; begin"] {
        assert_eq!(
            app.send(github("", format!(r#"{{"id":"{id}"}}"#))).await,
            answer(500, "failed", INTERNAL_ERROR),
            "{id}"
        );
        app.settled().await;
        assert_rows!(app.database, claims: 0, effects: 0, "{id}");
    }
}

#[tokio::test]
async fn g5_a_savepoint_left_open_is_not_acknowledged() {
    async fn forget(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        insert_effect(&mut tx, &delivery).await.unwrap();
        std::mem::forget(tx.begin().await.unwrap());
        StatusCode::OK
    }
    assert_not_acknowledged(forget).await;
}

/// If sqlx cannot make a savepoint, it gives up the whole transaction. Later statements would then be committed one by
/// one.
#[tokio::test]
async fn g4_nothing_is_written_after_a_savepoint_that_could_not_be_made() {
    async fn swallow(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        insert_effect(&mut tx, &delivery).await.unwrap();
        let _ = tx.execute("select no_such_column").await;
        assert!(tx.begin().await.is_err());
        assert!(insert_effect(&mut tx, &delivery).await.is_err());
        StatusCode::OK
    }
    assert_not_acknowledged(swallow).await;
}

/// If a handler bypasses `DedupeTx::begin`, sqlx does give up the transaction. The transaction's `commit` then does
/// nothing and succeeds.
#[tokio::test]
async fn g5_a_transaction_that_sqlx_gave_up_is_not_acknowledged() {
    async fn swallow(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        insert_effect(&mut tx, &delivery).await.unwrap();
        let _ = tx.execute("select no_such_column").await;
        assert!(Connection::begin(&mut *tx).await.is_err());
        StatusCode::OK
    }
    assert_not_acknowledged(swallow).await;
}

#[tokio::test]
async fn g6_an_immediate_retry_of_a_failed_attempt_finds_the_way_clear() {
    async fn fail(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        insert_effect(&mut tx, &delivery).await.unwrap();
        match delivery.id().as_str().split('-').next() {
            Some("panic") => panic!("on purpose"),
            Some("hang") => std::future::pending().await,
            _ => StatusCode::BAD_GATEWAY,
        }
    }
    let app = TestApp::github_with(
        |layer| layer.handler_timeout(Duration::from_millis(300)),
        fail,
    )
    .await;
    // Another process can learn only from Postgres whether the claim still exists, and does not wait for it.
    let impatient = IdempotentWebhook::new(
        app.database.another_pool(1).await,
        "test",
        presets::github(secret()),
    )
    .in_flight_timeout(Duration::ZERO);
    let elsewhere = Router::new().route("/", post(write_effect).layer(impatient));
    for number in 0..10 {
        for (how, status) in [("fail", 502), ("panic", 500), ("hang", 503)] {
            let id = format!("{how}-{number}");
            assert_eq!(app.send(github(&id, "{}")).await.status, status);
            let retry = send(&elsewhere, github(&id, "{}")).await;
            assert_eq!(retry, answer(200, "processed", "done"), "{id}");
        }
    }
    assert_rows!(app.database, claims: 30, effects: 30);
}

/// After a panic, the layer awaits the rollback, so the connection stays usable and need not be closed.
#[tokio::test]
async fn g6_a_panic_does_not_cost_the_connection() {
    async fn panics(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        insert_effect(&mut tx, &delivery).await.unwrap();
        panic!("on purpose");
    }
    let app = TestApp::github(write_effect).await;
    let pool = app.database.another_pool(1).await;
    let backend = async || -> i32 {
        sqlx::query_scalar("select pg_backend_pid()")
            .fetch_one(&pool)
            .await
            .unwrap()
    };
    let before = backend().await;
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()));
    let router = Router::new().route("/", post(panics).layer(layer));
    assert_eq!(send(&router, github("a", "{}")).await.status, 500);
    assert_eq!(backend().await, before);
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// If the handler never takes the transaction, the delivery is still deduplicated, but the handler's writes are not
/// part of the transaction.
#[tokio::test]
async fn a_success_whose_transaction_was_never_taken_is_worth_a_warning() {
    const WARNING: &str = "its handler has not taken DedupeTx";
    let app = TestApp::github(async || "done").await;
    let log = logged(async {
        for outcome in ["processed", "duplicate"] {
            assert_eq!(app.send(github("a", "{}")).await.outcome, outcome);
        }
    })
    .await;
    assert_eq!(log.matches(WARNING).count(), 1, "{log}");
    assert!(
        log.contains("WARN") && log.contains(r#"delivery_id="a""#),
        "{log}"
    );
    assert_eq!(app.runs(), 1);
    assert_rows!(app.database, claims: 1, effects: 0);

    let meant = app
        .elsewhere_with(IdempotentWebhook::allow_unused_transaction, async || "done")
        .await;
    let taken = app.elsewhere(write_effect).await;
    let log = logged(async {
        assert_eq!(send(&meant, github("b", "{}")).await.outcome, "processed");
        assert_eq!(send(&taken, github("c", "{}")).await.outcome, "processed");
    })
    .await;
    assert!(!log.contains(WARNING), "{log}");
    assert_rows!(app.database, claims: 3, effects: 1);
}

#[tokio::test]
async fn endpoints_are_namespaces_of_ids() {
    let app = TestApp::github(write_effect).await;
    let other = IdempotentWebhook::new(
        app.database.pool.clone(),
        "other",
        presets::github(secret()),
    );
    let other = Router::new().route("/", post(write_effect).layer(other));
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    let at_other = send(&other, github("a", "{}")).await;
    assert_eq!(at_other.outcome, "processed");
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test]
async fn the_layers_settings_do_not_reach_the_handler() {
    async fn show(mut tx: DedupeTx) -> String {
        sqlx::query_scalar(
            "select current_setting('lock_timeout') || ' ' || current_setting('enable_seqscan')",
        )
        .fetch_one(&mut *tx)
        .await
        .unwrap()
    }
    let app = TestApp::github(show).await;
    assert_eq!(app.send(github("a", "{}")).await.body, "0 on");
    let name = &app.database.name;
    app.database
        .run(&format!(
            "alter database {name} set lock_timeout = '1234ms';
             alter database {name} set enable_seqscan = off"
        ))
        .await;
    let of_one_ref = |layer: IdempotentWebhook| {
        layer.serialize_by(Source::header(HeaderName::from_static("x-github-event")))
    };
    for set in [|layer| layer, IdempotentWebhook::replay_guard, of_one_ref] {
        let elsewhere = app.elsewhere_with(set, show).await;
        for _ in 0..2 {
            let id = format!("{:x}", fastrand::u128(..));
            let answered = send(&elsewhere, github(&id, id.clone())).await;
            assert_eq!(answered.body, "1234ms off");
        }
    }
}

/// A statement may fail without the handler noticing, because the statement was cancelled on the way, or because a
/// stream was not read to its end.
#[tokio::test]
async fn g5_a_statement_that_failed_unseen_is_not_acknowledged() {
    async fn cancelled(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        insert_effect(&mut tx, &delivery).await.unwrap();
        cancel_a_statement_that_fails(&mut tx).await;
        StatusCode::OK
    }
    async fn dropped(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        insert_effect(&mut tx, &delivery).await.unwrap();
        let mut rows = tx.fetch("select 1 / (n - 3) from generate_series(1, 3) n");
        assert!(rows.next().await.unwrap().is_ok());
        drop(rows);
        StatusCode::OK
    }
    assert_not_acknowledged(cancelled).await;
    assert_not_acknowledged(dropped).await;
}

async fn cancel_a_statement_that_fails(connection: &mut PgConnection) {
    let slow = connection.execute("select pg_sleep(0.5), 1 / (random() * 0)::int");
    let moment = Duration::from_millis(20);
    assert!(tokio::time::timeout(moment, slow).await.is_err());
}

#[tokio::test]
async fn a_statement_that_failed_unseen_in_a_savepoint_is_undone_with_it() {
    async fn undone(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        insert_effect(&mut tx, &delivery).await.unwrap();
        let mut savepoint = tx.begin().await.unwrap();
        cancel_a_statement_that_fails(&mut savepoint).await;
        drop(savepoint);
        StatusCode::OK
    }
    let app = TestApp::github(undone).await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "processed", "")
    );
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// A statement is cancelled on its way and fails in Postgres. `rollback` undoes this as well.
#[tokio::test]
async fn after_a_rollback_the_next_statement_does_not_hear_of_a_cancelled_one() {
    async fn handler(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        let mut savepoint = tx.begin().await.unwrap();
        cancel_a_statement_that_fails(&mut savepoint).await;
        savepoint.rollback().await.unwrap();
        insert_effect(&mut tx, &delivery).await.unwrap();

        // A `begin` after a savepoint that was dropped also undoes this.
        let mut savepoint = tx.begin().await.unwrap();
        cancel_a_statement_that_fails(&mut savepoint).await;
        drop(savepoint);
        tx.begin().await.unwrap().commit().await.unwrap();
        StatusCode::OK
    }
    let app = TestApp::github(handler).await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "processed", "")
    );
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// The cancelled statement has ended the session, so the next `begin` finds that the connection is lost.
#[tokio::test]
async fn a_savepoint_on_a_lost_connection_is_an_error() {
    async fn handler(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        insert_effect(&mut tx, &delivery).await.unwrap();
        let lost = tx.execute("select pg_sleep(0.5), pg_terminate_backend(pg_backend_pid())");
        let moment = Duration::from_millis(20);
        assert!(tokio::time::timeout(moment, lost).await.is_err());
        assert!(tx.begin().await.is_err());
        StatusCode::OK
    }
    let app = TestApp::github(handler).await;
    let sent = soon(app.send(github("a", "{}"))).await;
    assert_eq!((sent.status, &*sent.outcome), (503, "failed"));
    assert_rows!(app.database, claims: 0, effects: 0);
}

async fn notify(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
    insert_effect(&mut tx, &delivery).await.unwrap();
    tx.execute("notify orders, 'paid'").await.unwrap();
    StatusCode::OK
}

#[tokio::test]
async fn a_handler_may_notify() {
    let app = TestApp::github(notify).await;
    let mut listener = PgListener::connect_with(&app.database.pool).await.unwrap();
    listener.listen("orders").await.unwrap();
    for id in ["a", "b", "c"] {
        assert_eq!(
            app.send(github(id, "{}")).await,
            answer(200, "processed", "")
        );
        assert_eq!(soon(listener.recv()).await.unwrap().payload(), "paid");
    }
    assert_rows!(app.database, claims: 3, effects: 3);
}

/// Outside of a transaction, sqlx takes a notification for an error of the statement, which here is the commit.
#[tokio::test]
async fn g5_a_commit_on_a_connection_that_listens_is_in_doubt_and_its_retry_a_duplicate() {
    async fn listen_and_notify(mut tx: DedupeTx, delivery: Delivery) -> StatusCode {
        tx.execute("listen orders").await.unwrap();
        notify(tx, delivery).await
    }
    let app = TestApp::github(listen_and_notify).await;
    for id in ["a", "b", "c"] {
        assert_eq!(
            app.send(github(id, "{}")).await,
            answer(503, "failed", "temporarily unavailable")
        );
        assert_eq!(
            app.send(github(id, "{}")).await,
            answer(200, "duplicate", "")
        );
    }
    assert_eq!(app.runs(), 3);
    assert_rows!(app.database, claims: 3, effects: 3);
}

/// The inner layer would wait for the claim of the outer layer, which waits for the inner layer.
#[tokio::test]
async fn a_layer_around_a_layer_is_a_500_at_once() {
    let app = TestApp::github(write_effect).await;
    for endpoint in ["test", "another"] {
        let outer = IdempotentWebhook::new(
            app.database.pool.clone(),
            endpoint,
            presets::github(secret()),
        );
        let twice = app.router.clone().layer(outer);
        assert_eq!(
            send(&twice, github("a", "{}")).await,
            answer(500, "failed", INTERNAL_ERROR)
        );
    }
    assert_eq!(app.runs(), 0);
    assert_rows!(app.database, claims: 0, effects: 0);
}
