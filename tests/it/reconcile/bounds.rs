//! Which events a round considers.

use std::time::{Duration, SystemTime};

use idempotent_webhook::Reconcile;

use super::{DAY, List, MINUTE, Process, missed, spawn_until};
use crate::support::{Database, now, send, soon, stripe, stripe_event};

/// Earlier events may have been processed by another system.
#[tokio::test]
async fn n2_events_before_the_first_recorded_delivery_are_left_alone() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let list = List::of([("evt_1", 3 * MINUTE), ("evt_2", 60 * MINUTE)]);
    let reconcile = || {
        let reconcile = Reconcile::new(&process.layer, list.clone(), "/");
        reconcile.unwrap().grace(Duration::ZERO)
    };
    // Nothing has been recorded yet, so no event counts as missed.
    assert_eq!(reconcile().dry_run().await.unwrap().len(), 0);

    send(&process.router, stripe(stripe_event("evt_0"), now())).await;
    database
        .run("update idempotent_webhook.deliveries set received_at = now() - interval '10 minutes'")
        .await;
    assert_eq!(missed(&reconcile()).await.unwrap(), 1);

    // The time of the first delivery stays known after that delivery is deleted.
    database
        .run("delete from idempotent_webhook.deliveries")
        .await;
    list.add("evt_3", 9 * MINUTE);
    assert_eq!(missed(&reconcile()).await.unwrap(), 1);
    // The start can also be set.
    let since = SystemTime::now() - DAY;
    assert_eq!(missed(&reconcile().since(since)).await.unwrap(), 1);
}

#[tokio::test]
async fn n2_an_endpoint_without_a_delivery_begins_with_its_first_round() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let list = List::of([("evt_1", MINUTE)]);
    let reconcile = || {
        let reconcile = Reconcile::new(&process.layer, list.clone(), "/");
        reconcile.unwrap().grace(Duration::ZERO)
    };
    assert_eq!(missed(&reconcile()).await.unwrap(), 0);
    list.add("evt_2", Duration::ZERO);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(missed(&reconcile()).await.unwrap(), 1);
}

#[tokio::test]
async fn n2_what_may_have_been_pruned_and_what_is_under_way_is_left_alone() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let list = List::of([
        ("under_way", 4 * MINUTE),
        ("missed", 6 * MINUTE),
        ("missed_long_ago", 29 * DAY),
        ("may_be_pruned", 31 * DAY),
    ]);
    let reconcile = || {
        process
            .reconcile(&list)
            .grace(5 * MINUTE)
            .look_back(300 * DAY)
    };
    database
        .run("insert into idempotent_webhook.pruned (endpoint, before) values ('test', now() - interval '30 days')")
        .await;
    let found = reconcile().dry_run().await.unwrap();
    let ids: Vec<_> = found.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["missed", "missed_long_ago"]);

    database
        .run("update idempotent_webhook.pruned set before = now() - interval '40 days'")
        .await;
    assert_eq!(reconcile().dry_run().await.unwrap().len(), 3);
    assert_eq!(reconcile().look_back(DAY).dry_run().await.unwrap().len(), 1);
}

/// A round covers the time since the previous round, and overlaps that round by the grace time.
#[tokio::test]
async fn n2_a_round_goes_on_where_the_one_before_has_ended() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let list = List::of([("evt_1", 8 * MINUTE)]);
    let reconcile = || {
        process
            .reconcile(&list)
            .grace(5 * MINUTE)
            .every(Duration::from_secs(1))
    };
    let task = reconcile().spawn();
    database
        .until("exists (select from idempotent_webhook.reconciliations where missed = 1 and not exists (select from idempotent_webhook.turns where process is not null))")
        .await;
    list.add("evt_2", 9 * MINUTE);
    list.add("too_late", 20 * MINUTE);
    database
        .until("exists (select from idempotent_webhook.reconciliations where missed = 2)")
        .await;
    soon(task.stop()).await;
    database
        .until(
            "exists (
                select from idempotent_webhook.reconciliations
                where reconciled_until between now() - interval '6 minutes' and now() - interval '5 minutes'
            )",
        )
        .await;
    // A round on request covers the whole look-back.
    assert_eq!(missed(&reconcile()).await.unwrap(), 1);
}

/// If a list has times in whole seconds, an event can be dated before the end of a round that could not see it yet.
#[tokio::test]
async fn n2_an_event_that_is_listed_late_is_found_without_a_grace_time() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let list = List::empty();
    let task = process
        .reconcile(&list)
        .every(Duration::from_secs(1))
        .spawn();
    database
        .until("exists (select from idempotent_webhook.reconciliations where reconciled_until is not null)")
        .await;
    list.add("evt_1", Duration::from_secs(20));
    database
        .until("exists (select from idempotent_webhook.reconciliations where missed = 1)")
        .await;
    soon(task.stop()).await;
}

/// An interrupted round continues with its old start. Since then, retention may have deleted deliveries of that time,
/// or `since` may have been set to a later time.
#[tokio::test]
async fn n2_a_round_that_goes_on_looks_at_nothing_that_may_be_pruned_or_no_longer_counts() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let list = List::of([
        ("evt_1", DAY),
        ("evt_2", DAY),
        ("evt_3", DAY),
        ("evt_4", MINUTE),
    ]);
    let completed = "exists (
        select from idempotent_webhook.reconciliations where reconciled_until is not null
    )";
    for sql in [
        "insert into idempotent_webhook.pruned (endpoint, before) values ('test', now() - interval '1 hour')",
        "delete from idempotent_webhook.pruned",
    ] {
        list.hang_after(Some(1));
        spawn_until(
            process.reconcile(&list),
            &database,
            "exists (select from idempotent_webhook.reconciliations where cursor = '2')",
        )
        .await;
        list.hang_after(None);
        list.asked();
        database.run(sql).await;
        database
            .run("delete from idempotent_webhook.kept_deliveries")
            .await;
        let since = SystemTime::now() - 30 * MINUTE;
        spawn_until(process.reconcile(&list).since(since), &database, completed).await;
        assert_eq!(list.asked(), [Some("2".to_owned())]);
        database
            .until(
                "(select array_agg(delivery_id) = array['evt_4']
                 from idempotent_webhook.kept_deliveries)",
            )
            .await;
        database
            .run(
                "delete from idempotent_webhook.reconciliations;
                 delete from idempotent_webhook.turns;
                 delete from idempotent_webhook.kept_deliveries",
            )
            .await;
    }
}

#[tokio::test]
async fn n2_a_round_on_request_leaves_no_gap_behind_and_its_since_is_not_remembered() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    let list = List::of([("evt_1", 60 * MINUTE), ("evt_2", MINUTE)]);
    let on_request = process.reconcile(&list).look_back(5 * MINUTE);
    assert_eq!(missed(&on_request).await.unwrap(), 1);
    drop(on_request);
    let unset = Reconcile::new(&process.layer, list.clone(), "/").unwrap();
    let unset = unset.grace(Duration::ZERO);
    assert_eq!(unset.dry_run().await.unwrap().len(), 0);
    drop(unset);

    // The round on request has covered only five minutes. The task still covers the last hour.
    database
        .run("update idempotent_webhook.turns set next_at = now() where task = 'reconciliation'")
        .await;
    spawn_until(
        process.reconcile(&list),
        &database,
        "exists (select from idempotent_webhook.reconciliations where missed = 2)",
    )
    .await;

    // If the task's last round was days ago, the task still covers those days.
    list.add("evt_3", 2 * DAY);
    database
        .run(
            "update idempotent_webhook.reconciliations set reconciled_until = now() - interval '3 days';
             update idempotent_webhook.turns set next_at = now() + interval '1 hour'
             where task = 'reconciliation'",
        )
        .await;
    let on_request = process.reconcile(&list).look_back(5 * MINUTE);
    assert_eq!(missed(&on_request).await.unwrap(), 0);
    drop(on_request);
    database
        .run("update idempotent_webhook.turns set next_at = now() where task = 'reconciliation'")
        .await;
    spawn_until(
        process.reconcile(&list),
        &database,
        "exists (select from idempotent_webhook.reconciliations where missed = 3)",
    )
    .await;
}

/// The records of one list say nothing about another list.
#[tokio::test]
async fn n2_a_further_list_of_an_endpoint_begins_with_its_first_round() {
    let database = Database::new().await;
    let process = Process::new(database.pool.clone());
    send(&process.router, stripe(stripe_event("evt_0"), now())).await;
    database
        .run("update idempotent_webhook.deliveries set received_at = now() - interval '10 days'")
        .await;
    let list = List::of([("evt_1", DAY)]);
    let of = |name, path| {
        let reconcile = Reconcile::new(&process.layer, list.named(name), path).unwrap();
        reconcile.grace(Duration::ZERO)
    };
    assert_eq!(of("list", "/").dry_run().await.unwrap().len(), 1);
    assert_eq!(missed(&of("list", "/")).await.unwrap(), 1);
    list.add("evt_2", DAY);
    for path in ["/", "/another"] {
        assert_eq!(of("another", path).dry_run().await.unwrap().len(), 0);
    }
    assert_eq!(of("list", "/").dry_run().await.unwrap().len(), 1);
}

#[tokio::test]
async fn n2_retention_forgets_what_was_discarded_with_the_deliveries() {
    let database = Database::new().await;
    database.has_window("test", "1 day").await;
    database
        .run(
            "insert into idempotent_webhook.discarded (endpoint, delivery_id, discarded_at)
             values ('test', 'old', now() - interval '9 days'), ('test', 'young', now())",
        )
        .await;
    idempotent_webhook::prune(&database.pool, 7 * DAY)
        .await
        .unwrap();
    database
        .until("(select array_agg(delivery_id) = array['young'] from idempotent_webhook.discarded)")
        .await;
}

/// A pass of retention may take hours. At its end, it deletes rows that were too young at its start.
#[tokio::test]
async fn n2_retention_remembers_with_each_batch_up_to_when_deliveries_may_be_deleted() {
    let database = Database::new().await;
    database.has_window("test", "1 day").await;
    database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, delivery_id, received_at)
             values ('test', 'old', now() - interval '9 days');
             create function check_remembered() returns trigger language plpgsql as $$
             begin
                 -- Here `now()` is the time of the transaction that deletes.
                 if (select before from idempotent_webhook.pruned) < now() - interval '7 days' then
                     raise 'it is not remembered';
                 end if;
                 return old;
             end
             $$;
             create trigger check_remembered before delete on idempotent_webhook.deliveries
                 for each row execute function check_remembered()",
        )
        .await;
    let pruned = idempotent_webhook::prune(&database.pool, 7 * DAY)
        .await
        .unwrap();
    assert_eq!(pruned.deliveries, 1);
}
