//! What a round does, and what happens if it is interrupted.

use std::error::Error;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::reconcile::{ListedEvent, ReconcileError, SourceError};
use idempotent_webhook::recovery::{Discarded, Filter};
use idempotent_webhook::{Delivery, Endpoint, HandlerError, IdempotentWebhook, LateClaim, presets};
use sqlx::PgPool;

use super::{
    DAY, List, MINUTE, OtherProcess, Process, effects, handle, missed, spawn_until, tables,
};
use crate::support::{
    Database, ONE_WAITS_FOR_A_LOCK, another, answer, assert_rows, insert_effect, logged, now,
    secret, send, soon, stripe, stripe_event, until_logged,
};

#[tokio::test]
async fn e2_an_event_of_a_type_that_the_layer_ignores_is_not_missing() {
    let database = Database::new().await;
    let mut process = Process::new(database.pool.clone());
    process.layer = process.layer.only(["invoice.*"]);
    process.router = Router::new().route("/", post(handle).layer(process.layer.clone()));
    let list = List::empty();
    for (id, event_type) in [("paid", "invoice.paid"), ("failed", "charge.failed")] {
        let body = format!(r#"{{"id":"{id}","type":"{event_type}"}}"#);
        list.add_event(ListedEvent::new(SystemTime::now() - MINUTE, body));
    }
    let round = process.reconcile(&list).run_once().await.unwrap();
    assert_eq!((round.listed, round.missed, round.unusable), (1, 1, 0));
    assert_eq!(list.asked_for_types(), Some(vec!["invoice.*".to_owned()]));
    assert_eq!(process.run_due().await, 1);
    assert_eq!(effects(&database).await, ["paid#"]);
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test]
async fn n3_what_never_came_runs_through_a_late_claim_too() {
    let database = Database::new().await;
    let mut process = Process::new(database.pool.clone());
    process.layer = process.layer.late_claim();
    let late = async |claim: LateClaim, delivery: Delivery| {
        let mut tx = claim.begin().await?;
        assert!(delivery.is_reconciled());
        insert_effect(&mut tx, &delivery).await?;
        Ok::<_, HandlerError>(StatusCode::OK)
    };
    process.router = Router::new().route("/", post(late).layer(process.layer.clone()));
    let list = List::of([("missed", MINUTE)]);
    let round = process.reconcile(&list).run_once().await.unwrap();
    assert_eq!((round.listed, round.missed, round.unusable), (1, 1, 0));
    assert_eq!(process.run_due().await, 1);
    assert_eq!(effects(&database).await, ["missed"]);
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test]
async fn n2_what_never_came_runs_and_nothing_else() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    for id in ["processed", "discard_by_handler", "forgotten"] {
        send(&process.router, stripe(stripe_event(id), now())).await;
    }
    let endpoint = Endpoint::new(database.pool.clone(), "test");
    assert!(endpoint.forget("forgotten").await.unwrap());
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries (endpoint, delivery_id, state, attempts)
             select 'test', 'by_operator_' || n, 'dead', 1 from generate_series(1, 2) as n;
             insert into idempotent_webhook.kept_deliveries (endpoint, delivery_id, state, attempts)
             values ('test', 'kept', 'dead', 1), ('test', 'erased', 'dead', 1)",
        )
        .await;
    assert_eq!(
        endpoint.discard("by_operator_1").await.unwrap(),
        Discarded::Discarded
    );
    let filter = Filter::new();
    database
        .run(
            "update idempotent_webhook.kept_deliveries
             set last_failed_at = now() - interval '1 minute', first_received_at = now() - interval '1 hour'
             where delivery_id = 'by_operator_2'",
        )
        .await;
    let failed_before = std::time::SystemTime::now();
    assert_eq!(
        endpoint
            .discard_all(&filter.failed(..failed_before))
            .await
            .unwrap()
            .changed,
        1
    );
    assert!(endpoint.erase("erased").await.unwrap());

    let known = [
        "processed",
        "discard_by_handler",
        "forgotten",
        "by_operator_1",
        "by_operator_2",
        "kept",
        "erased",
    ];
    let list = List::of(known.map(|id| (id, MINUTE)));
    list.add("missed", MINUTE);
    let reconcile = process.reconcile(&list);
    let round = reconcile.run_once().await.unwrap();
    assert_eq!((round.listed, round.missed, round.unusable), (8, 1, 0));
    assert_eq!(process.run_due().await, 1);
    assert_eq!(
        effects(&database).await,
        ["forgotten", "missed#", "processed"]
    );

    // All events are known now.
    assert_eq!(missed(&reconcile).await.unwrap(), 0);
    assert_eq!(process.run_due().await, 0);
}

#[tokio::test]
async fn n3_a_webhook_that_still_arrives_is_a_duplicate() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let list = List::of([("evt_1", MINUTE), ("evt_2", MINUTE)]);
    assert_eq!(missed(&process.reconcile(&list)).await.unwrap(), 2);

    // The delivery is kept and has not run yet, so the webhook runs it.
    let first = send(&process.router, stripe(stripe_event("evt_1"), now())).await;
    assert_eq!(first, answer(200, "processed", ""));
    assert_eq!(process.run_due().await, 1);
    let second = send(&process.router, stripe(stripe_event("evt_2"), now())).await;
    assert_eq!(second, answer(200, "duplicate", ""));
    assert_eq!(effects(&database).await, ["evt_1", "evt_2#"]);
    assert_rows!(database, claims: 2, effects: 2);
}

#[tokio::test]
async fn n4_a_dry_run_lists_what_is_missing_and_touches_nothing() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    send(&process.router, stripe(stripe_event("evt_1"), now())).await;
    let list = List::of([("evt_1", MINUTE), ("evt_2", MINUTE), ("evt_3", 2 * MINUTE)]);
    let before = tables(&database).await;
    let found = process.reconcile(&list).dry_run().await.unwrap();
    let ids: Vec<_> = found.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["evt_2", "evt_3"]);
    assert_eq!(found[0].event_type.as_deref(), Some("invoice.paid"));
    assert_eq!(found[0].unusable, None);
    assert_eq!(tables(&database).await, before);
}

#[tokio::test]
async fn n4_one_process_reconciles_at_a_time_and_another_goes_on_where_it_was_killed() {
    let database = Database::new().await;
    let one = Process::new(database.another_pool(5).await);
    let other = Process::new(database.another_pool(5).await);
    let ids = ["evt_1", "evt_2", "evt_3", "evt_4", "evt_5"];
    let list = List::of(ids.map(|id| (id, MINUTE)));
    list.hang_after(Some(2));
    let one = OtherProcess::reconciles(one.reconcile(&list));
    database
        .until("exists (select from idempotent_webhook.reconciliations where missed = 4 and cursor = '4')")
        .await;
    let busy = other.reconcile(&list).run_once().await;
    assert!(matches!(busy, Err(ReconcileError::Busy)), "{busy:?}");
    one.kill(&database).await;
    list.hang_after(None);
    list.asked();
    let task = other.reconcile(&list).every(MINUTE).spawn();
    database
        .until(
            "exists (
                select from idempotent_webhook.reconciliations
                where reconciled_until is not null and cursor is null and missed = 5
                    and not exists (select from idempotent_webhook.turns where process is not null)
            )",
        )
        .await;
    task.stop().await;
    assert_eq!(list.asked(), [Some("4".to_owned())]);
    assert_eq!(other.run_due().await, 5);
    assert_rows!(database, claims: 5, effects: 5);
}

#[tokio::test]
async fn n4_a_task_that_stops_leaves_its_round_to_others_at_once() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let list = List::of(["evt_1", "evt_2", "evt_3"].map(|id| (id, MINUTE)));
    list.hang_after(Some(1));
    spawn_until(
        process.reconcile(&list),
        &database,
        "exists (select from idempotent_webhook.reconciliations where cursor = '2')",
    )
    .await;
    list.hang_after(None);
    let other = Process::new(database.another_pool(5).await);
    spawn_until(
        other.reconcile(&list),
        &database,
        "(select count(*) = 3 from idempotent_webhook.kept_deliveries)",
    )
    .await;
}

#[tokio::test]
async fn n4_processes_share_an_interval() {
    let database = Database::new().await;
    let list = List::of([("evt_1", MINUTE)]);
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let process = Process::new(database.another_pool(2).await);
        tasks.push(process.reconcile(&list).every(60 * MINUTE).spawn());
    }
    database
        .until("exists (select from idempotent_webhook.reconciliations where reconciled_until is not null)")
        .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(list.asked(), [None]);
    for task in tasks {
        soon(task.stop()).await;
    }
}

#[tokio::test]
async fn n4_a_shorter_interval_does_not_wait_for_the_round_of_a_longer_one() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let list = List::of([("evt_1", MINUTE)]);
    let day = 24 * 60 * MINUTE;
    let reconciled = "exists (
        select from idempotent_webhook.turns
        where process is null and next_at > now() + interval '23 hours'
    )";
    spawn_until(process.reconcile(&list).every(day), &database, reconciled).await;
    assert_eq!(list.asked(), [None]);
    spawn_until(
        process.reconcile(&list).every(15 * MINUTE),
        &database,
        "exists (
            select from idempotent_webhook.turns
            where process is null
                and next_at between now() + interval '14 minutes' and now() + interval '15 minutes'
        )",
    )
    .await;
    assert_eq!(list.asked(), [None]);
}

#[tokio::test]
async fn n4_a_rate_limit_is_waited_out_and_told() {
    logged(async {
        let database = Database::new().await;
        let process = Process::new(database.pool.clone());
        let list = List::of(["evt_1", "evt_2", "evt_3"].map(|id| (id, MINUTE)));
        let limit = || SourceError::new("too many requests").retry_after(Duration::from_secs(1));
        list.fail_with(limit());
        let reconcile = process.reconcile(&list);
        let running = tokio::spawn(async move { reconcile.run_once().await });
        database
            .until(
                "exists (
                select from idempotent_webhook.reconciliations
                where failure = 'too many requests'
            ) and exists (
                select from idempotent_webhook.turns where process is not null and next_at > now()
            )",
            )
            .await;
        // The task waits for the rate limit to pass, and keeps its turn, so no other process reads
        // the list.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(list.asked(), [None]);
        assert_eq!(running.await.unwrap().unwrap().missed, 3);
        until_logged("asks to wait").await;
        database
            .until("exists (select from idempotent_webhook.reconciliations where failure is null)")
            .await;
    })
    .await;
}

#[tokio::test]
async fn n4_a_dry_run_waits_for_each_page_as_often_as_a_round_does() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let ids: Vec<String> = (1..=24).map(|number| format!("evt_{number}")).collect();
    let list = List::of(ids.iter().map(|id| (&**id, MINUTE)));
    for _page in 0..12 {
        list.fail_with(SourceError::new("too many requests").retry_after(Duration::ZERO));
        list.succeed();
    }
    let missing = process.reconcile(&list).dry_run().await.unwrap();
    assert_eq!(missing.len(), 24);
    assert_eq!(list.asked().len(), 24);
}

#[tokio::test]
async fn n4_a_failing_list_changes_nothing_and_is_asked_again() {
    logged(async {
        let database = Database::new().await;
        let process = Process::new(database.pool.clone());
        let list = List::of(["evt_1", "evt_2", "evt_3"].map(|id| (id, MINUTE)));
        list.fail_with(SourceError::new("answered 500"));
        let failed = process.reconcile(&list).run_once().await;
        assert!(
            matches!(failed, Err(ReconcileError::Source(_))),
            "{failed:?}"
        );
        database
            .until(
                "exists (
                select from idempotent_webhook.reconciliations
                where failure like '%answered 500' and failed_at is not null
                    and not exists (select from idempotent_webhook.turns where process is not null)
                    and reconciled_until is null and missed = 0
            ) and not exists (select from idempotent_webhook.kept_deliveries)",
            )
            .await;

        list.fail_with(SourceError::new("answered 502"));
        database
            .run(
                "update idempotent_webhook.turns set next_at = now() where task = 'reconciliation'",
            )
            .await;
        spawn_until(
            process.reconcile(&list).every(Duration::from_secs(1)),
            &database,
            "(select count(*) = 3 from idempotent_webhook.kept_deliveries)",
        )
        .await;
        until_logged("answered 502").await;
    })
    .await;
}

#[tokio::test]
async fn n4_a_process_resumes_the_round_that_it_could_not_break_off() {
    logged(async {
        let database = Database::new().await;
        let process = Process::new(database.pool.clone());
        let list = List::of(["evt_1", "evt_2", "evt_3"].map(|id| (id, MINUTE)));
        list.fail_with(SourceError::new("answered 500"));
        database
            .run(
                "create function refuse() returns trigger language plpgsql
                 as $$ begin raise exception 'the turn is not given up'; end $$;
                 create trigger refuse before update on idempotent_webhook.turns
                 for each row when (new.process is null) execute function refuse()",
            )
            .await;
        let reconcile = process.reconcile(&list).every(Duration::from_secs(1));
        let task = reconcile.spawn();
        until_logged("the turn is not given up").await;
        database
            .run("drop trigger refuse on idempotent_webhook.turns")
            .await;
        // The round is resumed long before the turn of the first process would end by itself.
        database
            .until("(select count(*) = 3 from idempotent_webhook.kept_deliveries)")
            .await;
        soon(task.stop()).await;
    })
    .await;
}

#[tokio::test]
async fn n4_a_round_says_what_the_database_has_refused() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let reconcile = process.reconcile(&List::empty());
    database
        .run("alter table idempotent_webhook.reconciliations rename to renamed")
        .await;
    let failed = reconcile.run_once().await.unwrap_err();
    assert!(matches!(failed, ReconcileError::Database(_)), "{failed:?}");
    let refused = failed.source().unwrap().to_string();
    assert!(refused.contains("reconciliations"), "{refused}");
}

#[tokio::test]
async fn n4_a_round_that_finds_nothing_missing_is_no_warning() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let received = send(&process.router, stripe(stripe_event("evt_1"), now())).await;
    assert_eq!(received.outcome, "processed");
    let list = List::of([("evt_1", Duration::ZERO)]);
    let log = logged(async {
        let round = process.reconcile(&list).run_once().await.unwrap();
        assert_eq!((round.listed, round.missed), (1, 0));
    })
    .await;
    assert!(!log.contains("WARN"), "{log}");
}

#[tokio::test]
async fn n4_a_dry_run_of_no_time_asks_for_nothing() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let list = List::of([("evt_1", MINUTE)]);
    let reconcile = process.reconcile(&list).grace(DAY);
    let missing = reconcile.since(SystemTime::now()).dry_run().await.unwrap();
    assert!(missing.is_empty());
    assert_eq!(list.asked(), []);
}

#[tokio::test]
async fn n4_a_list_that_panics_is_a_list_that_fails() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let list = List::of([("evt_1", MINUTE)]);
    list.go_round(&["panic"]);
    let task = process
        .reconcile(&list)
        .every(Duration::from_secs(1))
        .spawn();
    database
        .until(
            "exists (
                select from idempotent_webhook.reconciliations
                where failure like '%it panicked: as the test says'
            )",
        )
        .await;
    list.go_round(&[]);
    database
        .until("exists (select from idempotent_webhook.reconciliations where failure is null)")
        .await;
    soon(task.stop()).await;
    assert_eq!(process.run_due().await, 1);
}

/// If the cursors of the pages form a circle, a round used to follow them for 100,000 pages.
#[tokio::test]
async fn n4_a_list_whose_pages_do_not_end_fails() {
    for (cursors, pages) in [(&["again"][..], 2), (&["\0"], 1), (&["a", "b", "c"], 4)] {
        let database = Database::new().await;
        let process = Process::new(database.pool.clone());
        let list = List::of([("evt_1", MINUTE)]);
        list.go_round(cursors);
        let failed = soon(process.reconcile(&list).run_once()).await;
        assert!(
            matches!(failed, Err(ReconcileError::Source(_))),
            "{failed:?}"
        );
        assert_eq!(list.asked().len(), pages, "{cursors:?}");
        assert!(process.reconcile(&list).dry_run().await.is_err());
        // What was found before the failure is kept.
        assert_eq!(process.run_due().await, 1);
        assert_eq!(effects(&database).await, ["evt_1#"]);
    }
}

/// The list may no longer know the page that another process had reached.
#[tokio::test]
async fn n4_a_page_that_is_refused_after_a_break_begins_anew() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let list = List::of(["evt_1", "evt_2", "evt_3"].map(|id| (id, MINUTE)));
    let failed = || SourceError::new("answered 400").permanent();
    list.hang_after(Some(1));
    spawn_until(
        process.reconcile(&list).every(Duration::from_secs(1)),
        &database,
        "exists (select from idempotent_webhook.reconciliations where cursor = '2')",
    )
    .await;
    list.hang_after(None);
    list.asked();
    list.fail_with(failed());
    spawn_until(process
        .reconcile(&list)
        .every(Duration::from_secs(1)), &database, "exists (select from idempotent_webhook.reconciliations where reconciled_until is not null)").await;
    assert_eq!(list.asked()[..2], [Some("2".to_owned()), None]);
}

/// The round has found `b` missing. While it commits, `b` is processed and forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn n2_what_is_processed_and_forgotten_while_a_list_commits_does_not_run_again() {
    let database = Database::new().await;
    database
        .run(
            "create function waits() returns trigger language plpgsql as
                $$ begin perform pg_advisory_xact_lock(7); return null; end $$;
             create constraint trigger waits after insert on idempotent_webhook.kept_deliveries
                deferrable initially deferred for each row execute function waits()",
        )
        .await;
    let held = another(&database, "select pg_advisory_xact_lock(7)").await;
    let process = Process::new(database.pool.clone());
    let reconcile = process.reconcile(&List::of([("a", MINUTE), ("b", MINUTE)]));
    let round = tokio::spawn(async move { reconcile.run_once().await.unwrap().missed });
    database.until(ONE_WAITS_FOR_A_LOCK).await;
    // This layer keeps nothing, so it does not wait for a row of the list.
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::stripe(secret()));
    let router = Router::new().route("/", post(handle).layer(layer));
    let sent = send(&router, stripe(stripe_event("b"), now())).await;
    assert_eq!((sent.status, &*sent.outcome), (200, "processed"));
    let patient = database.options().options([("lock_timeout", "1min")]);
    let endpoint = Endpoint::new(PgPool::connect_lazy_with(patient), "test");
    let forgetting = tokio::spawn(async move { endpoint.forget("b").await });
    let waits_or_has_forgotten = "2 <= (
            select count(*) from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'
        )
        or not exists (select from idempotent_webhook.deliveries)";
    database.until(waits_or_has_forgotten).await;
    held.rollback().await.unwrap();
    assert_eq!(soon(round).await.unwrap(), 2);
    assert!(soon(forgetting).await.unwrap().unwrap());
    assert_eq!(process.run_due().await, 1);
    assert_eq!(effects(&database).await, ["a#", "b"]);
    assert_rows!(database, claims: 1, effects: 2);
}

/// The round has found `a` and `b` missing. While it waits for the row of `a`, `b` is processed and
/// forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn n2_what_was_processed_and_forgotten_while_a_list_waited_does_not_run_again() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let list = List::of([("a", MINUTE), ("b", MINUTE)]);
    let keeps = another(
        &database,
        "insert into idempotent_webhook.kept_deliveries (endpoint, delivery_id, state, attempts)
         values ('test', 'a', 'dead', 1)",
    )
    .await;
    let reconcile = process.reconcile(&list);
    let round = tokio::spawn(async move { reconcile.run_once().await.unwrap().missed });
    database.until(ONE_WAITS_FOR_A_LOCK).await;
    let sent = send(&process.router, stripe(stripe_event("b"), now())).await;
    assert_eq!((sent.status, &*sent.outcome), (200, "processed"));
    let endpoint = Endpoint::new(database.pool.clone(), "test");
    assert!(endpoint.forget("b").await.unwrap());
    keeps.rollback().await.unwrap();
    assert_eq!(soon(round).await.unwrap(), 1);
    assert_eq!(process.run_due().await, 1);
    assert_eq!(effects(&database).await, ["a#", "b"]);
    assert_rows!(database, claims: 1, effects: 2);
}
