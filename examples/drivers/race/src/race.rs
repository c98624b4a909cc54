//! Two processes get each event at the same time, and one of them is killed again and again.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::{Database, Process, Sender, delivery};

const EVENTS: usize = 500;
/// How many copies of each event go to each process.
const COPIES: usize = 2;
/// How many events are sent at a time.
const SENDERS: usize = 24;
const KILLS: usize = 8;
/// How many times an event is sent at most. One of the processes is always running, so this is
/// enough.
const ATTEMPTS: usize = 200;

/// The state that the senders and the killer share.
struct World {
    /// The URLs of the two processes. The port changes with each restart.
    urls: Mutex<[String; 2]>,
    next: AtomicUsize,
    acknowledged: Mutex<BTreeSet<String>>,
    /// How many requests had no 2xx answer.
    failed: AtomicUsize,
}

impl World {
    fn urls(&self) -> [String; 2] {
        self.urls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn acknowledged(&self) -> BTreeSet<String> {
        let acknowledged = self.acknowledged.lock();
        acknowledged.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn acknowledge(&self, id: &str) {
        let acknowledged = self.acknowledged.lock();
        acknowledged
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id.to_owned());
    }
}

/// Runs the race, and returns the two processes.
///
/// # Panics
///
/// If an event was processed twice, or acknowledged without being processed.
pub async fn race(name: &str, database: &Database) -> [Process; 2] {
    // The processes start at the same time, so that both try to create the missing tables.
    let (first, second) = tokio::join!(
        Process::start(name, database),
        Process::start(name, database)
    );
    let world = Arc::new(World {
        urls: Mutex::new([first.url.clone(), second.url.clone()]),
        next: AtomicUsize::new(0),
        acknowledged: Mutex::default(),
        failed: AtomicUsize::new(0),
    });
    let mut senders = JoinSet::new();
    for _ in 0..SENDERS {
        senders.spawn(send_events(world.clone()));
    }
    let mut processes = [first, second];
    for kill in 1..=KILLS {
        // Each kill comes at a random moment in its own part of the run.
        let part = EVENTS / (KILLS + 1);
        let at = part * kill + fastrand::usize(..part / 2);
        while world.next.load(Ordering::Relaxed) < at {
            if let Some(sender) = senders.try_join_next() {
                sender.expect("a sender does not panic");
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_micros(fastrand::u64(..20_000))).await;
        let victim = fastrand::usize(..2);
        let [first, second] = processes;
        let (victim_process, other) = match victim {
            0 => (first, second),
            _ => (second, first),
        };
        victim_process.kill().await;
        assert_all_there(&world, database).await;
        let successor = Process::start(name, database).await;
        {
            let urls = world.urls.lock();
            urls.unwrap_or_else(PoisonError::into_inner)[victim] = successor.url.clone();
        }
        processes = match victim {
            0 => [successor, other],
            _ => [other, successor],
        };
    }
    while let Some(sender) = senders.join_next().await {
        sender.expect("a sender does not panic");
    }
    assert_all_there(&world, database).await;
    database.assert_nothing_twice().await;
    let events = i64::try_from(EVENTS).expect("a small number");
    let claims = "select count(*) from idempotent_webhook.deliveries";
    assert_eq!(database.number(claims).await, events);
    assert_eq!(
        database.number("select count(*) from payments").await,
        events
    );
    database.until_no_transaction_is_open().await;
    println!(
        "{name}: {events} events in {} copies, {KILLS} kills, {} requests without success",
        2 * COPIES,
        world.failed.load(Ordering::Relaxed),
    );
    processes
}

/// Sends each event until it is acknowledged.
async fn send_events(world: Arc<World>) {
    let sender = Sender::default();
    loop {
        let number = world.next.fetch_add(1, Ordering::Relaxed);
        if number >= EVENTS {
            return;
        }
        let id = format!("evt_{number}");
        let mut attempts = 1;
        while !send_copies(&world, &sender, &id).await {
            assert!(attempts < ATTEMPTS, "{id} is never acknowledged");
            attempts += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Returns whether one of the answers is a success.
async fn send_copies(world: &Arc<World>, sender: &Sender, id: &str) -> bool {
    let mut copies = JoinSet::new();
    for url in world.urls() {
        for _ in 0..COPIES {
            let (world, sender) = (world.clone(), sender.clone());
            let (id, url) = (id.to_owned(), url.clone());
            copies.spawn(async move {
                let status = sender.send(&url, &delivery(&id)).await;
                let is_success = matches!(status, Some(200..=299));
                match is_success {
                    true => world.acknowledge(&id),
                    false => _ = world.failed.fetch_add(1, Ordering::Relaxed),
                }
                is_success
            });
        }
    }
    copies.join_all().await.contains(&true)
}

/// Asserts that all events that have been acknowledged so far are processed.
async fn assert_all_there(world: &World, database: &Database) {
    let acknowledged = world.acknowledged();
    let processed = database.processed().await;
    let lost: Vec<_> = acknowledged.difference(&processed).collect();
    assert!(lost.is_empty(), "acknowledged, and not processed: {lost:?}");
}
