//! A process dies while it handles a delivery, and copies of the delivery wait in another process.

use std::time::Duration;

use crate::history::Recorder;
use crate::process::Process;
use crate::sender::{Attempt, Sender};
use crate::server::Server;

pub async fn run() {
    println!("\nhandover: a process dies while copies of its delivery wait in another\n");
    let server = Server::start().await;
    let recorder = Recorder::start();
    let process = || Process::new(server.url(), &recorder, 5, Duration::from_secs(5));
    let (dying, waiting) = (process(), process());
    let sender = Sender::new(&recorder);
    // Both processes connect to Postgres now, so that connecting takes no time later.
    for process in [&dying, &waiting] {
        let warm_up = sender.send(process.address().await, "warm-up", "").await;
        assert!(warm_up.is_acknowledged());
    }
    let address = dying.address().await;
    let first = tokio::spawn({
        let sender = sender.clone();
        async move { sender.send(address, "a", "hang").await }
    });
    let in_flight = "select count(*) from pg_stat_activity where state = 'idle in transaction'";
    server.until(in_flight).await;

    let address = waiting.address().await;
    let copies: Vec<_> = (0..20)
        .map(|_| {
            let sender = sender.clone();
            tokio::spawn(async move { sender.send(address, "a", "").await })
        })
        .collect();
    server
        .until("select count(*) from pg_locks where not granted")
        .await;
    // Gives the other copies time to queue.
    tokio::time::sleep(Duration::from_millis(100)).await;
    dying.kill().await;

    assert_eq!(first.await.unwrap(), Attempt::Unanswered);
    let (mut processed, mut duplicates) = (0, 0);
    for copy in copies {
        match copy.await.unwrap() {
            Attempt::Answered { outcome, .. } if outcome == "processed" => processed += 1,
            Attempt::Answered { outcome, .. } if outcome == "duplicate" => duplicates += 1,
            other => panic!("{other:?}"),
        }
    }
    println!("20 copies: {processed} processed, {duplicates} duplicates");
    assert_eq!((processed, duplicates), (1, 19));
    assert_eq!(server.left_in_transaction().await, 0);

    a_record_outlives_its_process(&server, &dying, &waiting, &sender).await;
    let history = server.history(&recorder).await;
    println!("{}", history.assert_upheld("handover"));
}

/// A process that has recorded a failure is killed, and another process continues from there.
async fn a_record_outlives_its_process(
    server: &Server,
    dying: &Process,
    living: &Process,
    sender: &Sender,
) {
    let failed = |attempt: Attempt| matches!(attempt, Attempt::Answered { status: 500, .. });
    let attempts = "select coalesce(sum(attempts), 0) from idempotent_webhook.failing_deliveries
                    where delivery_id = 'b'";
    assert!(failed(
        sender.send(dying.address().await, "b", "fail").await
    ));
    dying.kill().await;
    assert_eq!(server.count(attempts).await, 1);
    assert!(failed(
        sender.send(living.address().await, "b", "panic").await
    ));
    assert_eq!(server.count(attempts).await, 2);
    let last = sender.send(living.address().await, "b", "").await;
    assert!(last.is_acknowledged());
    assert_eq!(server.count(attempts).await, 0);
    println!("a record of 2 failures outlived its process, and was removed with the success");
}
