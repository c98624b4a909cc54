//! A webhook, a recovery attempt and reconciliation handle one delivery at the same time.

use std::time::Duration;

use super::{List, MINUTE, Process, effects};
use crate::support::{Database, now, send, stripe, stripe_event};

const ROUNDS: u32 = 40;

#[tokio::test(flavor = "multi_thread")]
async fn n3_in_any_order_in_three_processes_there_is_one_effect() {
    let database = Database::new().await;
    let mut processes = Vec::new();
    for _ in 0..3 {
        processes.push(Process::new(database.another_pool(5).await));
    }
    let tasks: Vec<_> = processes.iter().map(Process::recover).collect();
    let list = List::empty();
    list.0.lock().unwrap().page = 1000;
    for round in 0..ROUNDS {
        let id = format!("evt_{round:03}");
        list.add(&id, MINUTE);
        if fastrand::bool() {
            // The delivery has failed before, and may become due at any moment.
            database
                .run(&format!(
                    "insert into idempotent_webhook.kept_deliveries
                         (endpoint, delivery_id, state, attempts, next_attempt_at)
                     values ('test', '{id}', 'due', 1, now() + interval '{} milliseconds');
                     insert into idempotent_webhook.kept_requests
                         (endpoint, delivery_id, format, method, uri, headers, body)
                     values ('test', '{id}', 1, 'POST', '/', '', '{}')",
                    fastrand::u32(0..20),
                    stripe_event(&id),
                ))
                .await;
        }
        let pause = || tokio::time::sleep(Duration::from_millis(fastrand::u64(0..15)));
        let webhook = async {
            pause().await;
            let sent = stripe(stripe_event(&id), now());
            send(&processes[fastrand::usize(0..3)].router, sent)
                .await
                .status
        };
        let reconcile = async {
            pause().await;
            processes[fastrand::usize(0..3)]
                .reconcile(&list)
                .run_once()
                .await
        };
        let (status, reconciled) = tokio::join!(webhook, reconcile);
        assert_eq!(status, 200);
        reconciled.unwrap();
    }
    database
        .until("not exists (select from idempotent_webhook.kept_deliveries)")
        .await;
    for task in tasks {
        task.stop().await;
    }
    let effects: Vec<_> = effects(&database)
        .await
        .into_iter()
        .map(|id| id.trim_end_matches('#').to_owned())
        .collect();
    let all: Vec<_> = (0..ROUNDS).map(|round| format!("evt_{round:03}")).collect();
    assert_eq!(effects, all);
}
