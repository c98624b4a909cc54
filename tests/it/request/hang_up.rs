//! Guarantee G8: if the client hangs up, nothing changes.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::{
    TestApp, answer, assert_rows, gated, github, send, spawn_send, wire, write_effect,
};

/// A client that sends this text and then hangs up.
async fn hang_up_after(app: &TestApp, sent: &str, until: impl Future<Output = ()>) {
    let mut client = TcpStream::connect(app.serve().await).await.unwrap();
    client.write_all(sent.as_bytes()).await.unwrap();
    until.await;
    drop(client);
}

async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn g8_a_hang_up_before_the_whole_request_is_there_leaves_nothing() {
    let app = TestApp::github(write_effect).await;
    let whole = wire("a", r#"{"a":1}"#, 7);
    let head = whole.find("\r\n\r\n").unwrap() + 4;
    for length in [head / 2, head, head + 3] {
        hang_up_after(&app, &whole[..length], a_moment()).await;
    }
    a_moment().await;
    assert_eq!(app.runs(), 0);
    assert_rows!(app.database, claims: 0, effects: 0);
    assert_eq!(app.database.in_transaction().await, 0);
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
}

#[tokio::test(flavor = "multi_thread")]
async fn g8_a_hang_up_during_the_wait_leaves_the_delivery_to_the_others() {
    let (mut gate, handler) = gated();
    let app = TestApp::github(handler).await;
    let first = spawn_send(&app.router, github("a", "{}"));
    gate.reached().await;
    hang_up_after(&app, &wire("a", "{}", 2), a_moment()).await;
    gate.open();
    assert_eq!(first.await.unwrap(), answer(200, "processed", ""));
    assert_eq!(app.runs(), 1);
    assert_rows!(app.database, claims: 1, effects: 1);
    app.settled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn g8_a_handler_whose_client_has_gone_completes_and_commits() {
    let (mut gate, handler) = gated();
    let app = TestApp::github(handler).await;
    hang_up_after(&app, &wire("a", "{}", 2), gate.reached()).await;
    a_moment().await;
    gate.open();
    app.database.until("exists (select from effects)").await;
    app.settled().await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "duplicate", "")
    );
    assert_eq!(app.runs(), 1);
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_can_wait_for_work_whose_client_has_gone() {
    let (mut gate, handler) = gated();
    let mut layer = None;
    let app = TestApp::github_with(
        |new| {
            layer = Some(new.clone());
            new
        },
        handler,
    )
    .await;
    let layer = layer.unwrap();
    layer.drained().await;
    hang_up_after(&app, &wire("a", "{}", 2), gate.reached()).await;
    let drained = tokio::spawn(layer.drained());
    a_moment().await;
    assert!(!drained.is_finished());
    gate.open();
    drained.await.unwrap();
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn g8_a_hang_up_during_the_commit_changes_nothing() {
    let app = TestApp::github(write_effect).await;
    app.database
        .run(
            "create function dawdle() returns trigger language plpgsql as
                 'begin perform pg_sleep(0.3); return null; end';
             create constraint trigger slow_commit after insert on effects
                 deferrable initially deferred for each row execute function dawdle()",
        )
        .await;
    let committing = app.database.until(
        "exists (
            select from pg_stat_activity
            where datname = current_database() and state = 'active'
                and query = 'COMMIT'
                and pid <> pg_backend_pid()
        )",
    );
    hang_up_after(&app, &wire("a", "{}", 2), committing).await;
    assert_rows!(app.database, claims: 0, effects: 0);
    app.database.until("exists (select from effects)").await;
    app.settled().await;
    assert_eq!(
        app.send(github("a", "{}")).await,
        answer(200, "duplicate", "")
    );
    assert_eq!(app.runs(), 1);
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// Hangs up after more and more time, so that every await between BEGIN and COMMIT is hit.
#[tokio::test(flavor = "multi_thread")]
async fn g8_a_hang_up_at_any_moment_leaves_all_or_nothing() {
    let app = TestApp::github(write_effect).await;
    for moment in 0..200 {
        let router = app.router.clone();
        let id = moment.to_string();
        let sending = send(&router, github(&id, "{}"));
        let _ = tokio::time::timeout(Duration::from_micros(50 * moment), sending).await;
    }
    app.settled().await;
    let rows = app.database.rows().await;
    assert_eq!(rows.claims, rows.effects);
    for moment in 0..200 {
        let retry = app.send(github(&moment.to_string(), "{}")).await;
        assert_eq!(retry.status, 200);
    }
    assert_rows!(app.database, claims: 200, effects: 200);
    assert_eq!(app.runs(), 200);
    app.settled().await;
}
