//! Guarantee R10: a pause and the breaker hold back the deliveries of an endpoint.

use std::time::Duration;

use idempotent_webhook::recovery::{Filter, KeptState};
use idempotent_webhook::{DedupeTx, Delivery, HandlerError, Keep, Recovery};

use crate::support::{
    Database, Failing, NONE_TAKEN, NOTHING_KEPT, ONE_DEAD, Process, SOON, TestApp, assert_kept,
    assert_rows, endpoint, github, insert_effect, keep, recover, write_effect,
};

const HOUR: Duration = Duration::from_secs(60 * 60);

const IS_OPEN: &str = "exists (
    select from idempotent_webhook.kept_endpoints where probe_at > now() + interval '50 minutes'
)";

const IS_CLOSED: &str = "exists (
    select from idempotent_webhook.kept_endpoints where failed_ids = '{}' and probe_at is null
)";

#[tokio::test(flavor = "multi_thread")]
async fn r10_an_endpoint_is_paused_and_resumed() {
    let app = TestApp::keeping(|keep| keep, Failing::times(1).handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    endpoint(&app).pause().await.unwrap();
    app.database.make_due().await;
    let attempts = app.recovery.run_due(&app.router).await.unwrap();
    assert!(attempts.is_empty(), "{attempts:?}");
    let listed = endpoint(&app).kept(&Filter::new(), None, 10).await.unwrap();
    assert_eq!((listed[0].state, listed[0].attempts), (KeptState::Due, 1));
    let recovery = recover(&app);
    endpoint(&app).resume().await.unwrap();
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_failures_in_a_row_cost_probes_and_not_attempts() {
    let failing = Failing::times(5 + 3);
    let set = |keep: Keep| keep.retry_delays([SOON; 9]).breaker(5, HOUR);
    let app = TestApp::keeping(set, failing.handler()).await;
    app.database.insert_due(30).await;
    let recovery = app.recovery.clone().concurrency(1);
    let recovery = recovery.spawn(app.router.clone());
    for probes in 0..=3 {
        let attempts = 5 + probes;
        let are_made = "(select sum(retries) from idempotent_webhook.kept_deliveries)";
        let waits = format!("{IS_OPEN} and {NONE_TAKEN} and {are_made} = {attempts}");
        app.database.until(&waits).await;
        assert_eq!(failing.attempts().len(), attempts);
        // Simulates that the breaker's interval is over.
        app.database
            .run("update idempotent_webhook.kept_endpoints set probe_at = now()")
            .await;
    }
    // The first success closes the breaker.
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!(failing.attempts().len(), 5 + 3 + 30);
    assert_rows!(app.database, claims: 30, effects: 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_one_delivery_that_fails_again_and_again_holds_nothing_back() {
    let set = |keep: Keep| keep.retry_delays([Duration::ZERO; 6]).breaker(2, HOUR);
    let app = TestApp::keeping(set, Failing::times(99).handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let recovery = recover(&app);
    app.database.until(ONE_DEAD).await;
    recovery.stop().await;
    assert_kept!(app.database, "dead", attempts: 7, retries: 6);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_a_success_ends_the_failures_in_a_row_and_a_discard_does_not() {
    let handler = |mut tx: DedupeTx, delivery: Delivery| async move {
        insert_effect(&mut tx, &delivery).await?;
        match delivery.id().as_str() {
            "due-1" => Err(HandlerError::new("not for us").discard()),
            _ => Ok(()),
        }
    };
    let app = TestApp::keeping(|keep| keep, handler).await;
    app.database.insert_due(1).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_endpoints (endpoint, failed_ids)
             values ('test', '{x,y}')",
        )
        .await;
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    let failed_ids: Vec<String> =
        sqlx::query_scalar("select failed_ids from idempotent_webhook.kept_endpoints")
            .fetch_one(&app.database.pool)
            .await
            .unwrap();
    assert_eq!(failed_ids, ["x", "y"]);
    assert_rows!(app.database, claims: 0, effects: 0);

    app.database.insert_due(2).await;
    app.database
        .run("delete from idempotent_webhook.kept_deliveries where delivery_id = 'due-1'")
        .await;
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    app.database.until(IS_CLOSED).await;
    assert_rows!(app.database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_a_success_of_the_provider_ends_the_failures_in_a_row() {
    // The first failure comes from the provider's attempt, and the second from recovery.
    let failing = Failing::times(2);
    let app = TestApp::keeping(|keep| keep.breaker(1, HOUR), failing.handler()).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let recovery = recover(&app);
    app.database.until(IS_OPEN).await;
    assert_kept!(app.database, "due", attempts: 2, retries: 1);
    assert_eq!(app.send(github("b", "{}")).await.outcome, "processed");
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!(failing.attempts(), [1, 2, 1, 3]);
    assert_rows!(app.database, claims: 2, effects: 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_an_endpoint_that_failures_hold_back_goes_on_when_it_is_resumed() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    app.database.insert_due(5).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_endpoints (endpoint, failed_ids, probe_at)
             values ('test', '{a,b,c,d,e,f,g,h,i,j,k}', now() + interval '1 hour')",
        )
        .await;
    let attempts = app.recovery.run_due(&app.router).await.unwrap();
    assert!(attempts.is_empty(), "{attempts:?}");
    endpoint(&app).resume().await.unwrap();
    // The breaker counts failures from zero again before it opens.
    app.database.until(IS_CLOSED).await;
    let attempts = app.recovery.run_due(&app.router).await.unwrap();
    assert_eq!(attempts.len(), 5);
    app.database.until(NOTHING_KEPT).await;
    assert_rows!(app.database, claims: 5, effects: 5);
}

/// After an outage of a day, very many deliveries are due. A probe must read only a few of them.
#[tokio::test(flavor = "multi_thread")]
async fn r10_a_probe_reads_a_few_rows_however_many_are_due() {
    const DUE: u32 = 20_000;
    let database = Database::new().await;
    database.insert_due(DUE).await;
    database
        .run(
            "update idempotent_webhook.kept_deliveries
             set next_attempt_at = now() - interval '1 hour';
             insert into idempotent_webhook.kept_endpoints (endpoint, probe_at) values ('test', now())",
        )
        .await;
    database
        .run("vacuum analyze idempotent_webhook.kept_deliveries, idempotent_webhook.kept_requests")
        .await;
    let read = "select (
            sum(heap_blks_read + heap_blks_hit) + sum(idx_blks_read + idx_blks_hit)
        )::bigint
        from pg_statio_user_tables
        where relname in ('kept_deliveries', 'kept_requests')";
    let before = database.count(read).await;
    let pool = database.another_pool(5).await;
    let failing = Failing::times(DUE);
    let set = |recovery: &Recovery| keep(recovery).breaker(1, SOON);
    let process = Process::new(pool.clone(), set, failing.handler());
    let task = process.recover();
    let probed = "3 <= (
        select count(*) from idempotent_webhook.kept_deliveries where last_failed_at is not null
    )";
    database.until(probed).await;
    task.stop().await;
    // Closing the pool makes Postgres count what its connections have read.
    pool.close().await;
    let blocks = database.count(read).await - before;
    let probes = i64::try_from(failing.attempts().len()).unwrap();
    assert!(blocks < 300 * probes, "{blocks} blocks in {probes} probes");
    assert_rows!(database, claims: 0, effects: 0);
}

#[tokio::test]
async fn r10_a_breaker_opens_after_a_thousand_failures_at_the_latest() {
    let set = |keep: Keep| keep.retry_delays([HOUR]).breaker(5000, HOUR);
    let app = TestApp::keeping(set, Failing::times(1).handler()).await;
    app.database.insert_due(1).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_endpoints (endpoint, failed_ids)
             select 'test', array_agg(n::text) from generate_series(1, 999) as n",
        )
        .await;
    let attempts = app.recovery.run_due(&app.router).await.unwrap();
    assert_eq!(attempts.len(), 1);
    app.database.until(IS_OPEN).await;
    assert_rows!(app.database, claims: 0, effects: 0);
}
