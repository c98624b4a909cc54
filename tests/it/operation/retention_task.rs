//! The background task of retention.

use std::time::Duration;

use idempotent_webhook::{Retention, presets};

use crate::support::{Database, TestApp, assert_rows, github, secret, write_effect};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Inserts this many deliveries of an endpoint on each of the last 100 days.
async fn fill(database: &Database, endpoint: &str, a_day: u32) {
    database
        .run(&format!(
            "insert into idempotent_webhook.deliveries (endpoint, delivery_id, received_at)
             select '{endpoint}', day || '-' || n, now() - (day - 0.5) * interval '1 day'
             from generate_series(1, 100) day, generate_series(1, {a_day}) n"
        ))
        .await;
    database.has_window(endpoint, "3 days").await;
}

fn retention(database: &Database, age: Duration) -> Retention {
    Retention::new(database.pool.clone(), age).every(Duration::from_millis(100))
}

/// Counts the rounds of retention with a trigger, because a process takes its turn at the start of each round. The
/// counter is a sequence, which keeps its value after a rollback.
async fn count_rounds(database: &Database) {
    database
        .run(
            "create sequence rounds minvalue 0;
             select nextval('rounds');
             create function count_round() returns trigger language plpgsql as
                 'begin perform nextval(''rounds''); return null; end';
             create trigger count_first after insert on idempotent_webhook.turns
                 for each row when (new.task = 'retention') execute function count_round();
             create trigger count_next after update on idempotent_webhook.turns
                 for each row when (new.task = 'retention' and old.process is null)
                 execute function count_round()",
        )
        .await;
}

/// Waits until the first counted round is over. It is over once the next round has started.
async fn until_a_round_is_over(database: &Database) {
    database.until("2 <= (select last_value from rounds)").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_prune_one_at_a_time_and_everything_once() {
    let database = Database::new().await;
    fill(&database, "test", 100).await;
    database
        .run(
            "create table at_work (process int);
             create function note() returns trigger language plpgsql as $$
             begin
                 if 1 <> (
                     select count(distinct pid)
                     from pg_locks
                     where relation = 'idempotent_webhook.deliveries'::regclass
                         and mode = 'RowExclusiveLock'
                 ) then
                     raise exception 'not one at a time';
                 end if;
                 insert into at_work values (pg_backend_pid());
                 return null;
             end $$;
             create trigger note after delete on idempotent_webhook.deliveries
                 for each statement execute function note()",
        )
        .await;
    let elsewhere = database.another_pool(5).await;
    let tasks = [
        retention(&database, 50 * DAY).spawn(),
        Retention::new(elsewhere, 50 * DAY)
            .every(Duration::from_millis(100))
            .spawn(),
    ];
    database
        .until("5000 = (select count(*) from idempotent_webhook.deliveries)")
        .await;
    let mut deleted = 0;
    for task in tasks {
        deleted += task.stop().await.deliveries;
    }
    assert_eq!(deleted, 5_000);
    assert_rows!(database, claims: 5_000, effects: 0);
}

#[tokio::test]
async fn g12_each_endpoint_keeps_what_may_still_come_again() {
    let app = TestApp::of(
        presets::github(secret()).redelivery_window(30 * DAY),
        write_effect,
    )
    .await;
    assert_eq!(app.send(github("a", "{}")).await.outcome, "processed");
    let database = &app.database;
    fill(database, "test", 10).await;
    fill(database, "another", 10).await;
    database.has_window("another", "7 days").await;
    database
        .run(
            "insert into idempotent_webhook.subjects (endpoint, subject, version, advanced_at)
             select 'test', n, n, now() - (n - 0.5) * interval '1 day'
             from generate_series(1, 100) n",
        )
        .await;
    let task = retention(database, 5 * DAY).spawn();
    database
        .until(
            "array[301, 70, 30]::bigint[] = array[
                 (select count(*) from idempotent_webhook.deliveries where endpoint = 'test'),
                 (select count(*) from idempotent_webhook.deliveries where endpoint = 'another'),
                 (select count(*) from idempotent_webhook.subjects)
             ]",
        )
        .await;
    let pruned = task.stop().await;
    assert_eq!((pruned.deliveries, pruned.subjects), (700 + 930, 70));
}

#[tokio::test]
async fn it_goes_on_after_an_error_and_stops_when_told() {
    let database = Database::new().await;
    fill(&database, "test", 10).await;
    database
        .run("alter table idempotent_webhook.deliveries rename to elsewhere")
        .await;
    count_rounds(&database).await;
    let task = retention(&database, 50 * DAY).spawn();
    until_a_round_is_over(&database).await;
    database
        .run("alter table idempotent_webhook.elsewhere rename to deliveries")
        .await;
    database
        .until("500 = (select count(*) from idempotent_webhook.deliveries)")
        .await;
    assert_eq!(task.stop().await.deliveries, 500);
    fill(&database, "later", 10).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_rows!(database, claims: 1500, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_was_killed_in_its_round_holds_up_the_others_for_minutes_only() {
    let database = Database::new().await;
    fill(&database, "test", 10).await;
    database
        .run(
            "insert into idempotent_webhook.turns (task, endpoint, address, source, process, next_at)
             values ('retention', '', '', '', 1, now() + interval '9 minutes')",
        )
        .await;
    let task = retention(&database, 50 * DAY).spawn();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_rows!(database, claims: 1000, effects: 0);
    database
        .run("update idempotent_webhook.turns set next_at = now()")
        .await;
    database
        .until("500 = (select count(*) from idempotent_webhook.deliveries)")
        .await;
    assert_eq!(task.stop().await.deliveries, 500);
    database
        .until("(select process is null from idempotent_webhook.turns where task = 'retention')")
        .await;
}
