//! A round is one comparison with the provider's list. It covers the time since the round before. If a part of that
//! time cannot be compared, the round reports a gap.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use idempotent_webhook::dashboard::{Access, Dashboard};
use idempotent_webhook::reconcile::{GitHubDeliveries, Http, ListedEvent};
use idempotent_webhook::{IdempotentWebhook, Keep, Reconcile, Retention, Secret, presets};
use metrics_exporter_prometheus::PrometheusBuilder;
use provider_apis::{Api, Event, KEY};
use tower::ServiceExt;

use super::{DAY, List, MINUTE, OtherProcess, Process, missed, spawn_until};
use crate::support::{Database, logged, now, recovery, secret, send, soon, stripe, stripe_event};

/// The list at a path, whose last round was this long ago.
async fn reconciled(database: &Database, path: &str, ago: &str) {
    database
        .run(&format!(
            "insert into idempotent_webhook.reconciliations
                 (endpoint, path, source, begins_at, reconciled_until)
             values ('test', '{path}', 'list', now() - interval '60 days', now() - interval '{ago}')"
        ))
        .await;
}

fn is_kept(ids: &[&str]) -> String {
    format!(
        "(select array_agg(delivery_id order by delivery_id) = '{{{}}}'
          from idempotent_webhook.kept_deliveries)",
        ids.join(",")
    )
}

/// The endpoint's state according to the dashboard.
async fn state(database: &Database) -> String {
    let dashboard = Dashboard::new(database.pool.clone()).authorize(|_| Access::read());
    let request = Request::get("/api/overview").body(Body::empty()).unwrap();
    let answer = dashboard.into_router().oneshot(request).await.unwrap();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let overview: serde_json::Value = serde_json::from_slice(&body).unwrap();
    overview["endpoints"][0]["state"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// A gap used to be one line in the log, and the dashboard showed the state `fine` from then on.
#[tokio::test]
async fn n4_a_time_that_is_not_looked_at_is_told_until_somebody_looks() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    // The recorder is set for this thread, which is the only thread of the test's runtime.
    let _guard = metrics::set_default_local_recorder(&recorder);
    let failures = |rendered: &str| -> u64 {
        let series = "idempotent_webhook_reconciliation_failures_total{endpoint=\"test\",provider=\"stripe\"} ";
        let line = rendered.lines().find_map(|line| line.strip_prefix(series));
        line.unwrap().parse().unwrap()
    };
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    send(&process.router, stripe(stripe_event("evt_1"), now())).await;
    database
        .until("exists (select from idempotent_webhook.activity where outcome = 'processed')")
        .await;
    reconciled(&database, "/", "9 days").await;
    assert_eq!(state(&database).await, "fine");

    let list = List::of([("evt_2", 8 * DAY), ("evt_3", MINUTE)]);
    let rounds = "exists (
        select from idempotent_webhook.reconciliations
        where reconciled_until > now() - interval '1 hour'
            and failure like 'events from 20%Z to 20%Z were not looked at%' and failed_at is not null
            and gap_since < now() - interval '9 days'
            and gap_until between now() - interval '7 days 1 minute' and now() - interval '7 days'
    )";
    let round = async |condition: &str, failed: u64| {
        let task = process.reconcile(&list).spawn();
        database.until(condition).await;
        // The failure is counted after the commit of the round.
        soon(async {
            while failures(&exporter.render()) < failed {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        soon(task.stop()).await;
    };
    let log = logged(round(rounds, 1)).await;
    assert_eq!(log.matches("are not looked at").count(), 1, "{log}");
    database.until(&is_kept(&["evt_3"])).await;
    process.run_due().await;
    assert_eq!(failures(&exporter.render()), 1);
    assert_eq!(state(&database).await, "not reconciled");

    // Later rounds report the gap as well.
    database
        .run(
            "update idempotent_webhook.turns set next_at = now() where task = 'reconciliation';
             update idempotent_webhook.reconciliations set reconciled_until = now() - interval '30 minutes'",
        )
        .await;
    let is_reconciled = "exists (
        select from idempotent_webhook.reconciliations
        where reconciled_until > now() - interval '1 minute'
    )";
    let log = logged(round(is_reconciled, 2)).await;
    assert!(!log.contains("are not looked at"), "{log}");
    database.until(rounds).await;
    assert_eq!(failures(&exporter.render()), 2);

    // A round on request that looks at a part of the gap does not end the gap. A round that looks at the whole gap ends
    // it.
    assert_eq!(missed(&process.reconcile(&list)).await.unwrap(), 0);
    database.until(rounds).await;
    let all = process.reconcile(&list).look_back(30 * DAY);
    assert_eq!(missed(&all).await.unwrap(), 1);
    database
        .until(
            "exists (
                select from idempotent_webhook.reconciliations
                where failure is null and failed_at is null and gap_since is null and gap_until is null
            )",
        )
        .await;
    process.run_due().await;
    assert_eq!(failures(&exporter.render()), 3);
    assert_eq!(state(&database).await, "fine");
}

/// GitHub lists the deliveries of 3 days, so with the default look-back, nothing finds older deliveries.
#[tokio::test]
async fn n2_a_time_that_the_list_does_not_go_back_to_is_told() {
    let (api, address) = Api::start("github").await;
    api.add(Event {
        number: 1,
        time: now() - 100,
    });
    // Reconciliation starts a new round, or continues a round that failed five days ago.
    for row in [
        "update idempotent_webhook.reconciliations set source = 'github'",
        "update idempotent_webhook.reconciliations
         set source = 'github', round_since = now() - interval '6 days', round_until = now() - interval '5 days'",
    ] {
        let database = Database::new().await;
        reconciled(&database, "/", "5 days").await;
        database.run(row).await;
        let recovery = recovery(&database.pool);
        let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()))
            .keep(Keep::failed(&recovery));
        let token = Secret::new(KEY).unwrap();
        let deliveries = GitHubDeliveries::repository(token, "octocat/hello-world", 1)
            .named("github")
            .http(Http::new().base(format!("http://{address}")));
        let reconcile = Reconcile::new(&layer, deliveries, "/").unwrap();
        let task = reconcile.grace(MINUTE).every(Duration::from_secs(1)).spawn();
        database
            .until(
                "exists (
                    select from idempotent_webhook.reconciliations
                    where failure like 'events from % were not looked at%' and missed = 1
                        and gap_until between now() - interval '3 days 1 minute' and now() - interval '3 days'
                )",
            )
            .await;
        soon(task.stop()).await;
    }
}

/// The first round fails and continues later. The list goes back only three days. Events before the start of the first
/// round were never covered, so they are no gap.
#[tokio::test]
async fn n2_a_first_round_that_goes_on_later_leaves_no_gap() {
    let (api, address) = Api::start("github").await;
    api.add(Event {
        number: 1,
        time: now() - 100,
    });
    for (broken_off, has_gap) in [("5 minutes", false), ("5 days", true)] {
        let database = Database::new().await;
        database
            .run(&format!(
                "insert into idempotent_webhook.reconciliations
                     (endpoint, path, source, begins_at, round_since, round_until)
                 values (
                     'test', '/', 'github', now() - interval '60 days',
                     now() - interval '{broken_off}' - interval '3 days', now() - interval '{broken_off}'
                 )"
            ))
            .await;
        let recovery = recovery(&database.pool);
        let layer =
            IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()))
                .keep(Keep::failed(&recovery));
        let deliveries =
            GitHubDeliveries::repository(Secret::new(KEY).unwrap(), "octocat/hello-world", 1)
                .named("github")
                .http(Http::new().base(format!("http://{address}")));
        let reconcile = Reconcile::new(&layer, deliveries, "/").unwrap();
        let task = reconcile
            .grace(MINUTE)
            .every(Duration::from_secs(1))
            .spawn();
        database
            .until(&format!(
                "exists (
                    select from idempotent_webhook.reconciliations
                    where missed = 1 and (gap_since is not null) = {has_gap}
                        and (failure like 'events from % were not looked at%') is {}
                )",
                if has_gap { "true" } else { "not true" }
            ))
            .await;
        soon(task.stop()).await;
    }
}

/// Rounds used to look back only to the age that `Retention` sets. Deliveries stay longer than that if their provider
/// may send them again for longer.
#[tokio::test]
async fn n2_what_retention_has_left_for_the_redelivery_window_is_looked_at() {
    let database = Database::new().await;
    database.has_window("test", "30 days").await;
    database.has_window("short", "1 day").await;
    database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, delivery_id, received_at)
             select endpoint, age, now() - age
             from unnest(array['test', 'short', 'never pruned']) as endpoint,
                 unnest(array[interval '40 days', interval '20 days', interval '5 days']) as age",
        )
        .await;
    let retention = Retention::new(database.pool.clone(), 7 * DAY).every(Duration::ZERO);
    let task = retention.spawn();
    database
        .until(
            "(select array_agg(endpoint || ' ' || left_over order by endpoint)
                 = '{never pruned 3,short 1,test 2}'
              from (
                select endpoint, count(*) as left_over from idempotent_webhook.deliveries group by endpoint
              ) as endpoints)",
        )
        .await;
    soon(task.stop()).await;
    database
        .until(
            "(select array_agg(endpoint || ' ' || extract(day from now() - before) order by endpoint)
                 = '{short 7,test 30}'
              from idempotent_webhook.pruned)",
        )
        .await;

    // The process was down for ten days.
    reconciled(&database, "/", "10 days").await;
    let process = Process::new(database.pool.clone());
    let list = List::of([("evt_1", 9 * DAY), ("evt_2", MINUTE)]);
    let reconcile = process.reconcile(&list).look_back(30 * DAY);
    spawn_until(reconcile, &database, &is_kept(&["evt_1", "evt_2"])).await;
    database
        .until("exists (select from idempotent_webhook.reconciliations where failure is null and not exists (select from idempotent_webhook.turns where process is not null))")
        .await;
}

/// Retention has deleted the deliveries of a period, so a round cannot tell which events of that period are missing.
/// Rounds used to leave these events out silently.
#[tokio::test]
async fn n2_a_time_of_which_retention_has_left_nothing_is_told() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let too_old = List::of([("evt_1", 4 * DAY), ("evt_2", MINUTE)]);
    let told = "exists (
        select from idempotent_webhook.reconciliations
        where failure like 'events from % were not looked at%'
            and gap_until between now() - interval '2 days 1 minute' and now() - interval '2 days'
    )";
    database
        .run(
            "insert into idempotent_webhook.pruned (endpoint, before)
             values ('test', now() - interval '2 days')",
        )
        .await;
    // Reconciliation starts a new round, or continues a round that was interrupted before retention deleted the
    // deliveries.
    for row in [
        "update idempotent_webhook.reconciliations set reconciled_until = now() - interval '5 days'",
        "update idempotent_webhook.reconciliations
         set round_since = now() - interval '5 days', round_until = now()",
    ] {
        reconciled(&database, "/", "6 days").await;
        database.run(row).await;
        let log = logged(spawn_until(process.reconcile(&too_old), &database, told)).await;
        assert!(log.contains("are not looked at"), "{log}");
        database.until(&is_kept(&["evt_2"])).await;
        database
            .run(
                "delete from idempotent_webhook.reconciliations;
                 delete from idempotent_webhook.turns;
                 delete from idempotent_webhook.kept_deliveries",
            )
            .await;
    }

    // If deliveries are deleted during a round, their events are reported one by one.
    let list = List::of([("evt_3", MINUTE), ("evt_4", MINUTE), ("evt_5", DAY)]);
    reconciled(&database, "/", "26 hours").await;
    list.hang_after(Some(1));
    spawn_until(
        process.reconcile(&list),
        &database,
        "exists (select from idempotent_webhook.reconciliations where cursor = '2')",
    )
    .await;
    database
        .run(
            "create function prune_now() returns trigger language plpgsql as $$
             begin
                 update idempotent_webhook.pruned set before = now() - interval '1 hour';
                 return new;
             end
             $$;
             create trigger prune_now after update of next_at on idempotent_webhook.turns
                 for each row execute function prune_now()",
        )
        .await;
    list.hang_after(None);
    spawn_until(
        process.reconcile(&list),
        &database,
        "exists (
            select from idempotent_webhook.reconciliations
            where failure = 'evt_5: it may have been processed, and its record deleted since'
        )",
    )
    .await;
    database.until(&is_kept(&["evt_3", "evt_4"])).await;
}

/// After a round on request was killed, the task used to continue with the time range of that round, and to leave out
/// earlier events.
#[tokio::test]
async fn n4_a_task_does_not_go_on_with_a_round_on_request_that_was_killed() {
    let database = Database::new().await;
    let killed = Process::new(database.another_pool(5).await);
    let process = Process::new(database.pool.clone());
    reconciled(&database, "/", "5 days").await;
    let list = List::of([
        ("evt_1", MINUTE),
        ("evt_2", MINUTE),
        ("evt_3", MINUTE),
        ("evt_4", 4 * DAY),
    ]);
    list.hang_after(Some(1));
    let reconcile = killed.reconcile(&list).look_back(DAY);
    let on_request = tokio::spawn(async move { reconcile.run_once().await });
    database
        .until("(select count(*) = 2 from idempotent_webhook.kept_deliveries)")
        .await;
    on_request.abort();
    let _ = on_request.await;
    list.hang_after(None);
    database
        .run("update idempotent_webhook.turns set next_at = now() where task = 'reconciliation'")
        .await;
    spawn_until(
        process.reconcile(&list),
        &database,
        "exists (select from idempotent_webhook.reconciliations where reconciled_until > now() - interval '1 hour')",
    )
    .await;
    database
        .until(&is_kept(&["evt_1", "evt_2", "evt_3", "evt_4"]))
        .await;
}

/// If a round of the task is broken off and a round on request runs, the task still continues its own round.
#[tokio::test]
async fn n4_a_round_that_was_broken_off_goes_on_after_one_on_request() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let list = List::of([
        ("evt_1", MINUTE),
        ("evt_2", MINUTE),
        ("evt_3", 6 * DAY),
        ("evt_4", 6 * DAY),
    ]);
    list.hang_after(Some(1));
    let killed = Process::new(database.another_pool(5).await);
    let killed = OtherProcess::reconciles(killed.reconcile(&list));
    database
        .until("exists (select from idempotent_webhook.reconciliations where cursor = '2')")
        .await;
    killed.kill(&database).await;
    list.hang_after(None);
    let on_request = process.reconcile(&list).look_back(DAY);
    assert_eq!(missed(&on_request).await.unwrap(), 0);
    drop(on_request);
    database
        .run("update idempotent_webhook.turns set next_at = now() where task = 'reconciliation'")
        .await;
    list.asked();
    // The task's own round started with a look-back of a day, and continues with it.
    spawn_until(
        process.reconcile(&list).look_back(DAY),
        &database,
        &is_kept(&["evt_1", "evt_2", "evt_3", "evt_4"]),
    )
    .await;
    assert_eq!(list.asked(), [Some("2".to_owned())]);
}

/// After a deploy with another path, a list used to start again at the time of the deploy.
#[tokio::test]
async fn n2_a_list_at_another_path_goes_on_where_it_was() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    reconciled(&database, "/longer/ago", "20 days").await;
    reconciled(&database, "/before", "3 days").await;
    let list = List::of([("evt_1", 4 * DAY), ("evt_2", 2 * DAY), ("evt_3", MINUTE)]);
    let moved = |path| {
        let reconcile = Reconcile::new(&process.layer, list.clone(), path).unwrap();
        reconcile.grace(Duration::ZERO)
    };
    // A list at another path continues where it stopped, even if its first round at that path is on request.
    let on_request = moved("/now").look_back(60 * MINUTE);
    assert_eq!(missed(&on_request).await.unwrap(), 1);
    drop(on_request);
    database
        .run("update idempotent_webhook.turns set next_at = now() where task = 'reconciliation'")
        .await;
    for path in ["/now", "/later"] {
        let goes_on = format!(
            "exists (
                select from idempotent_webhook.reconciliations
                where path = '{path}' and begins_at < now() - interval '59 days'
                    and reconciled_until > now() - interval '1 hour' and gap_since is null
            )"
        );
        spawn_until(moved(path), &database, &goes_on).await;
        database.until(&is_kept(&["evt_2", "evt_3"])).await;
    }
}

/// A deploy had moved the list to another path, and was rolled back. The row of the current path is therefore older
/// than the row of the other path.
#[tokio::test]
async fn n2_a_list_that_is_back_at_a_path_goes_on_where_it_was_at_the_other() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    reconciled(&database, "/", "9 days").await;
    reconciled(&database, "/other", "1 hour").await;
    let list = List::of([("evt_1", MINUTE)]);
    spawn_until(
        process.reconcile(&list),
        &database,
        "exists (
            select from idempotent_webhook.reconciliations
            where path = '/' and reconciled_until > now() - interval '1 minute'
                and gap_since is null and failure is null
        )",
    )
    .await;
    database.until(&is_kept(&["evt_1"])).await;
}

/// Neither of the two reports hides the other.
#[tokio::test]
async fn n4_a_gap_and_what_a_round_has_left_out_are_told_together() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    reconciled(&database, "/", "9 days").await;
    let list = List::of([("evt_1", MINUTE)]);
    let time = std::time::SystemTime::now() - MINUTE;
    list.add_event(ListedEvent::new(time, stripe_event("evt_2")).unusable("it is another version"));
    spawn_until(
        process.reconcile(&list),
        &database,
        "exists (
            select from idempotent_webhook.reconciliations
            where failure like 'events from % were not looked at%; evt_2: it is another version'
        )",
    )
    .await;
}
