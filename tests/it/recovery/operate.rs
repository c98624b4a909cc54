//! Guarantee R13: operations on kept deliveries.

use std::ops::Bound;
use std::time::{Duration, SystemTime};

use idempotent_webhook::recovery::{Discarded, Filter, KeptState, Retried, adopt};
use idempotent_webhook::{DedupeTx, Delivery, Endpoint, HandlerError, Keep, prune};
use sqlx::Executor;

use crate::support::{
    Answered, Database, Failing, NOTHING_KEPT, ONE_DEAD, SOON, TestApp, assert_kept, assert_rows,
    cancelled_after, endpoint, gate, github, logged, recover, soon, write_effect,
};

#[tokio::test(flavor = "multi_thread")]
async fn r13_many_are_retried_at_once() {
    let set = |keep: Keep| keep.retry_delays([]);
    let app = TestApp::keeping(set, Failing::times(10).handler()).await;
    for id in 0..10 {
        let id = format!("id-{id}");
        assert_eq!(app.send(github(&id, "{}")).await.outcome, "kept");
    }
    let of = endpoint(&app);
    let none = Filter::new().event_type("pull_request");
    assert_eq!(of.retry_all(&none).await.unwrap().changed, 0);
    let pushes = Filter::new().event_type("push").state(KeptState::Dead);
    assert_eq!(of.retry_all(&pushes).await.unwrap().changed, 10);
    assert_eq!(of.retry_all(&Filter::new()).await.unwrap().changed, 0);
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 10, effects: 10);
}

#[tokio::test]
async fn r13_all_that_a_filter_says_holds_and_what_is_listed_has_its_tenant() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, tenant, delivery_id, state, attempts, next_attempt_at, reason)
             values
                 ('test', '', 'a', 'dead', 1, null, 'no stock: shelf 1'),
                 ('test', 'acme', 'b', 'dead', 1, null, 'no stock: shelf 2'),
                 ('test', '', 'c', 'dead', 1, null, 'no such order'),
                 ('test', '', 'd', 'due', 1, now(), 'no stock: shelf 3')",
        )
        .await;
    let filter = Filter::new()
        .state(KeptState::Dead)
        .reason_contains("no stock");
    let listed = endpoint(&app).kept(&filter, None, 10).await.unwrap();
    let mut listed: Vec<_> = listed
        .into_iter()
        .map(|one| (one.delivery_id, one.tenant))
        .collect();
    listed.sort();
    let expected = [("a", None), ("b", Some("acme"))]
        .map(|(id, tenant)| (id.to_owned(), tenant.map(str::to_owned)));
    assert_eq!(listed, expected);
}

#[tokio::test]
async fn r13_a_retry_of_many_takes_each_once_even_if_it_fails_again_meanwhile() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    app.database.insert_due(2500).await;
    // A trigger makes each delivery fail again as soon as it is due.
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set state = 'dead', last_failed_at = now() - interval '1 hour';
             create function fails() returns trigger language plpgsql as $$
             begin
                 new.state := 'dead';
                 new.last_failed_at := clock_timestamp();
                 return new;
             end $$;
             create trigger fails before update on idempotent_webhook.kept_deliveries
             for each row when (new.state = 'due') execute function fails()",
        )
        .await;
    let retried = soon(endpoint(&app).retry_all(&Filter::new())).await;
    assert_eq!(retried.unwrap().changed, 2500);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn r13_a_retry_is_of_what_is_not_running_and_of_its_own_tenant() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    app.database.insert_process().await;
    app.database.insert_due(2).await;
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set next_attempt_at = now() + interval '1 hour', taken_by = 1
             where delivery_id = 'due-1';
             update idempotent_webhook.kept_deliveries set state = 'dead'
             where delivery_id = 'due-2';
             insert into idempotent_webhook.kept_deliveries
                 (endpoint, tenant, delivery_id, state, attempts)
             values ('test', 'acme', 'due-3', 'dead', 1);
             insert into idempotent_webhook.kept_requests
                 (endpoint, tenant, delivery_id, format, method, uri, headers, body)
             values ('test', 'acme', 'due-3', 1, 'POST', '/', '', '{}')",
        )
        .await;
    let of = endpoint(&app);
    assert_eq!(of.retry("due-1").await.unwrap(), Retried::Unchanged);
    assert_eq!(of.retry("due-3").await.unwrap(), Retried::Unchanged);
    assert_eq!(of.retry("due-2").await.unwrap(), Retried::Due);
    let of_acme = of.tenant("acme");
    assert_eq!(of_acme.retry("due-2").await.unwrap(), Retried::Unchanged);
    assert_eq!(of_acme.retry("due-3").await.unwrap(), Retried::Due);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn r13_what_has_failed_since_one_looked_is_left_out() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, last_failed_at)
             select 'test', id, 'dead', 1, now() - ago
             from (values ('old', interval '1 hour'), ('new', interval '1 s')) as failed (id, ago);
             insert into idempotent_webhook.kept_requests
                (endpoint, delivery_id, format, method, uri, headers, body)
             select 'test', delivery_id, 1, 'POST', '/', '', ''
             from idempotent_webhook.kept_deliveries",
        )
        .await;
    let endpoint = Endpoint::new(database.pool.clone(), "test");
    let looked = SystemTime::now() - Duration::from_secs(60);
    let seen = Filter::new().failed(..looked);
    assert_eq!(endpoint.kept(&seen, None, 10).await.unwrap().len(), 1);
    assert_eq!(endpoint.retry_all(&seen).await.unwrap().changed, 1);
    database
        .until(
            "(select state from idempotent_webhook.kept_deliveries where delivery_id = 'old') = 'due'
             and (select state from idempotent_webhook.kept_deliveries where delivery_id = 'new')
                = 'dead'",
        )
        .await;
    assert_eq!(endpoint.discard_all(&seen).await.unwrap().changed, 1);
    assert_eq!(endpoint.discard_all(&seen).await.unwrap().changed, 0);
    let rest = endpoint.kept(&Filter::new(), None, 10).await.unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].delivery_id, "new");
    assert_eq!(
        endpoint.discard_all(&Filter::new()).await.unwrap().changed,
        1
    );
    database.until(NOTHING_KEPT).await;
}

#[tokio::test]
async fn r13_a_failure_at_a_time_is_one_from_then_on_and_not_one_before_it() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, last_failed_at)
             values ('test', 'a', 'dead', 1, '2026-01-01 10:00Z')",
        )
        .await;
    let endpoint = Endpoint::new(database.pool.clone(), "test");
    let ten = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_261_600);
    let later = ten + Duration::from_millis(1);
    for (filter, found) in [
        (Filter::new().failed(..ten), 0),
        (Filter::new().failed(..later), 1),
        (Filter::new().failed(ten..), 1),
        (Filter::new().failed(later..), 0),
        (Filter::new().failed(ten..later), 1),
        (Filter::new().failed(..=ten), 1),
        (
            Filter::new().failed((Bound::Excluded(ten), Bound::Unbounded)),
            0,
        ),
    ] {
        let kept = endpoint.kept(&filter, None, 10).await.unwrap();
        assert_eq!(kept.len(), found, "{filter:?}");
    }
    let before = Filter::new().failed(..ten);
    assert_eq!(endpoint.discard_all(&before).await.unwrap().changed, 0);
    let before = Filter::new().failed(..later);
    assert_eq!(endpoint.discard_all(&before).await.unwrap().changed, 1);
}

/// Two tenants have the same ids.
#[tokio::test]
async fn r13_pages_have_each_delivery_once() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, tenant, delivery_id, state, attempts)
             select 'test', tenant, id, 'dead', 1
             from unnest(array['acme', 'beta']) as tenant, unnest(array['a', 'b', 'c']) as id",
        )
        .await;
    let endpoint = Endpoint::new(database.pool.clone(), "test");
    let (filter, mut all, mut lengths) = (Filter::new(), Vec::new(), Vec::new());
    loop {
        let page = endpoint.kept(&filter, all.last(), 3).await.unwrap();
        lengths.push(page.len());
        if page.is_empty() {
            break;
        }
        all.extend(page);
    }
    let keys: Vec<_> = all
        .iter()
        .map(|kept| (&*kept.delivery_id, kept.tenant.as_deref().unwrap()))
        .collect();
    let expected = ["a", "b", "c"].map(|id| [(id, "acme"), (id, "beta")]);
    assert_eq!(keys, expected.concat());
    assert_eq!(lengths, [3, 3, 0]);
}

/// The clock of the application is two minutes ahead of the clock of the database.
#[tokio::test]
async fn r13_what_a_fast_clock_has_received_is_retried_erased_and_discarded_with_the_rest() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, first_received_at, last_failed_at,
                 next_attempt_at)
             select 'test', state || number, state, 1, now() + interval '2 minutes',
                case when state <> 'due' then now() end, case when state = 'due' then now() end
             from unnest(array['dead', 'recorded', 'due']) as state
             cross join generate_series(1, 20) as number;
             insert into idempotent_webhook.kept_requests
                (endpoint, delivery_id, format, method, uri, headers, body)
             select 'test', delivery_id, 1, 'POST', '/', '', ''
             from idempotent_webhook.kept_deliveries
             where state <> 'recorded'",
        )
        .await;
    let endpoint = Endpoint::new(database.pool.clone(), "test");
    let all = Filter::new();
    assert_eq!(endpoint.retry_all(&all).await.unwrap().changed, 20);
    assert_eq!(endpoint.erase_all(&all).await.unwrap().changed, 60);
    assert_eq!(endpoint.discard_all(&all).await.unwrap().changed, 60);
    database.until(NOTHING_KEPT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_the_end_of_an_attempt_does_not_undo_an_operators_retry() {
    let (mut gate, way) = gate();
    let handler = move |_: DedupeTx, delivery: Delivery| -> Answered {
        let way = way.clone();
        Box::pin(async move {
            if delivery.attempt() > 1 {
                way.pass().await;
            }
            Err(HandlerError::new("not yet"))
        })
    };
    let app = TestApp::keeping(|keep| keep.retry_delays([SOON]), handler).await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let recovery = recover(&app);
    gate.reached().await;
    endpoint(&app).pause().await.unwrap();
    assert_eq!(endpoint(&app).retry("a").await.unwrap(), Retried::Unchanged);
    // The attempt loses its connection, and notices this only at its end. Then its process also seems to have died.
    app.database
        .run(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and state = 'idle in transaction'",
        )
        .await;
    let is_gone = "not exists (
        select from pg_stat_activity
        where datname = current_database() and state = 'idle in transaction'
    )";
    app.database.until(is_gone).await;
    assert_eq!(endpoint(&app).retry("a").await.unwrap(), Retried::Unchanged);
    app.database.lose_takers().await;
    assert_eq!(endpoint(&app).retry("a").await.unwrap(), Retried::Due);
    gate.open();
    // Waits for the end of the attempt. It was the last attempt of the schedule before the operator's retry.
    recovery.stop().await;
    assert_kept!(app.database, "due", attempts: 2, retries: 0);

    endpoint(&app).resume().await.unwrap();
    gate.open();
    let recovery = recover(&app);
    app.database.until(ONE_DEAD).await;
    recovery.stop().await;
    assert_kept!(app.database, "dead", attempts: 3, retries: 1);
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn r13_an_operation_without_an_effect_is_logged_as_such() {
    let app = TestApp::keeping(|keep| keep, Failing::times(9).handler()).await;
    let operate = async || {
        let (mut retried, mut discarded) = (None, None);
        let log = logged(async {
            retried = endpoint(&app).retry("a").await.ok();
            discarded = endpoint(&app).discard("a").await.ok();
        })
        .await;
        (retried, discarded, log)
    };
    let (retried, discarded, log) = operate().await;
    assert_eq!(
        (retried, discarded),
        (Some(Retried::Unchanged), Some(Discarded::NotKept))
    );
    assert!(log.contains("webhook delivery not retried"), "{log}");
    assert!(log.contains("webhook delivery not discarded"), "{log}");

    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    let later = "update idempotent_webhook.kept_deliveries
         set next_attempt_at = now() + interval '1 hour'";
    app.database.run(later).await;
    let (retried, discarded, log) = operate().await;
    assert_eq!(
        (retried, discarded),
        (Some(Retried::Due), Some(Discarded::Discarded))
    );
    assert!(log.contains("webhook delivery retried"), "{log}");
    assert!(log.contains("webhook delivery discarded"), "{log}");
    app.database.until(NOTHING_KEPT).await;
}

/// In sqlx 0.9.0, `pool.begin()` can return a connection to the pool in the middle of a transaction if the call is
/// dropped (transact-rs/sqlx #4393). What the connection writes next is then never committed. The test drops each call
/// after one poll, after two, and so on.
#[tokio::test]
async fn r13_a_call_that_is_dropped_leaves_no_open_transaction_in_the_pool() {
    const CALLS: [&str; 14] = [
        "kept",
        "retry",
        "retry_all",
        "discard",
        "discard_all",
        "erase",
        "erase_all",
        "reprocess",
        "reprocess_all",
        "forget",
        "pause",
        "resume",
        "adopt",
        "prune",
    ];
    let database = Database::new().await;
    let pool = database.another_pool(1).await;
    let endpoint = Endpoint::new(pool.clone(), "test");
    let all = Filter::new();
    let mut effects = 0;
    for name in CALLS {
        for polls in 1..10 {
            let call = async {
                match name {
                    "kept" => drop(endpoint.kept(&all, None, 10).await),
                    "retry" => drop(endpoint.retry("a").await),
                    "retry_all" => drop(endpoint.retry_all(&all).await),
                    "discard" => drop(endpoint.discard("a").await),
                    "discard_all" => drop(endpoint.discard_all(&all).await),
                    "erase" => drop(endpoint.erase("a").await),
                    "erase_all" => drop(endpoint.erase_all(&all).await),
                    "reprocess" => drop(endpoint.reprocess("a").await),
                    "reprocess_all" => drop(endpoint.reprocess_all(&all).await),
                    "forget" => drop(endpoint.forget("a").await),
                    "pause" => drop(endpoint.pause().await),
                    "resume" => drop(endpoint.resume().await),
                    "adopt" => drop(adopt(&pool, "production").await),
                    _ => drop(prune(&pool, Duration::from_secs(60)).await),
                }
            };
            let _ = cancelled_after(polls, call).await;
            pool.execute("insert into effects values ('a')")
                .await
                .unwrap();
            effects += 1;
            // Another connection sees these rows, so they are committed.
            assert_rows!(database, claims: 0, effects: effects, "{name}, {polls} polls");
        }
    }
}
