//! A delivery that is sent once to a process that recovers, or that was processed and is run again on
//! purpose, and a fault before one of the messages in its life: keep, take, run, commit and end. What was
//! promised for it happens once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::Length;
use crate::application::{ARCHIVED, RETRIES};
use crate::fault::{FAULTS, Fault};
use crate::process::Process;
use crate::proxy::Proxy;
use crate::sender::{Attempt, Sender};
use crate::server::Server;

/// What is hit by faults: a delivery that is sent, or one that is run again on purpose.
struct Life {
    path: &'static str,
    /// What the handler does at its attempts that are hit, before it succeeds.
    behaviours: &'static [&'static str],
}

const LIVES: [Life; 8] = [
    life("/kept", &["fail"]),
    life("/acknowledged", &["fail"]),
    life("/all", &[]),
    life("/all", &["fail"]),
    life("/accepted", &[]),
    life("/accepted", &["fail"]),
    life(REPROCESS, &[]),
    life(REPROCESS, &["fail"]),
];

const fn life(path: &'static str, behaviours: &'static [&'static str]) -> Life {
    Life { path, behaviours }
}

const REPROCESS: &str = "/reprocess";

/// More than any of them has: a fault that is due after its end is the last one of the row.
const MOST_MESSAGES: usize = 600;

/// How long a process has to begin its recovery, whose messages belong to no delivery.
const START: Duration = Duration::from_millis(250);

const LANES: usize = 6;

/// How long a delivery may take, with the attempt of a process that was killed.
const PATIENCE: Duration = Duration::from_secs(60);

struct Lane {
    server: Server,
    proxy: Proxy,
    process: Process,
    sender: Sender,
}

/// What became of the deliveries of one life and one fault.
#[derive(Default)]
struct Hits {
    all: u32,
    not_kept: u32,
}

/// By the number of the life and the name of the fault.
type Met = Arc<Mutex<BTreeMap<(usize, &'static str), Hits>>>;

pub async fn run(length: Length) {
    let step = match length {
        Length::Short => 90,
        Length::Long => 3,
    };
    let started = Instant::now();
    let (todo, met) = (Arc::new(AtomicUsize::new(0)), Met::default());
    let mut working = Vec::new();
    for _ in 0..LANES {
        let lane = Lane::start().await;
        working.push(tokio::spawn(lane.work(step, todo.clone(), met.clone())));
    }
    for lane in working {
        lane.await.unwrap();
    }
    println!(
        "\ncrash in recovery: deliveries sent once, hit by a fault before every {step}. message\n"
    );
    for ((life, fault), hits) in &*met.lock().unwrap() {
        let Life { path, behaviours } = LIVES[*life];
        let handler = behaviours.first().unwrap_or(&"succeed");
        let Hits { all, not_kept } = hits;
        println!(
            "{path:<14} {handler:<8} {fault:<13} {all:>4} hit, {not_kept:>4} of them not kept"
        );
    }
    println!(
        "\nin {:.0} s: each that was kept, acknowledged or to be reprocessed has its effects exactly \
         once; 0 connections left in a transaction",
        started.elapsed().as_secs_f64(),
    );
}

impl Lane {
    async fn start() -> Self {
        let server = Server::start().await;
        let proxy = Proxy::start(server.socket()).await;
        let process = Process::new(proxy.url(), 3, Duration::from_millis(500)).recovering();
        Self {
            server,
            proxy,
            process,
            sender: Sender::new(),
        }
    }

    /// Takes one life with one fault after another, and goes through its messages.
    async fn work(self, step: usize, todo: Arc<AtomicUsize>, met: Met) {
        loop {
            let next = todo.fetch_add(1, Ordering::Relaxed);
            let (life, fault) = (next / FAULTS.len(), FAULTS[next % FAULTS.len()]);
            if life >= LIVES.len() {
                break;
            }
            // Another offset for each fault, so that the short form meets each kind of message.
            let offset = step * (next % FAULTS.len()) / FAULTS.len();
            for number in (offset..MOST_MESSAGES).step_by(step) {
                if !self.fire(life, fault, number, &met).await {
                    break;
                }
            }
        }
        self.process.kill().await;
        assert_eq!(self.server.left_in_transaction().await, 0);
    }

    /// One delivery. Returns whether the fault was met before its end.
    async fn fire(&self, life: usize, fault: Fault, number: usize, met: &Met) -> bool {
        let Life { path, behaviours } = LIVES[life];
        let id = format!("{life}-{fault:?}-{number}");
        self.process.kill().await;
        let address = self.process.address().await;
        tokio::time::sleep(START).await;
        let is_reprocessed = path == REPROCESS;
        if is_reprocessed {
            self.archive(&id, behaviours).await;
        }
        let effects_before = self.count(&id, "effects").await;

        let mut due = self.proxy.arm(number);
        let sent = tokio::spawn({
            let (sender, id) = (self.sender.clone(), id.clone());
            async move {
                match is_reprocessed {
                    true => sender.reprocess(address, &id).await,
                    false => sender.send_once(address, path, &id, behaviours).await,
                }
            }
        });
        let due = tokio::time::timeout(Duration::from_secs(3), due.recv()).await;
        let Ok(Some(due)) = due else {
            sent.await.unwrap();
            self.end_of(&id).await;
            return false;
        };
        // What is committed as due stays so, whatever happens now.
        let is_due = self.count(&id, DUE).await > 0;
        let is_over = sent.is_finished() && !is_due;
        let inflicted = fault.inflict(due, &self.process, &self.server).await;
        let attempt = sent.await.unwrap();
        let is_kept = matches!(&attempt, Attempt::Answered { outcome, .. } if outcome == "kept");
        let promised = is_kept || attempt.is_acknowledged();
        if promised {
            let there = self.count(&id, "effects").await - effects_before
                + self.count(&id, DUE).await
                + self.count(&id, "idempotent_webhook.deliveries").await;
            assert!(
                there > 0,
                "{id}: nothing is there at the answer {attempt:?}"
            );
        }
        let attempts = self.end_of(&id).await;
        let effects = self.count(&id, "effects").await - effects_before;
        match promised || is_due {
            true => assert_eq!(effects, 1, "{id}: {attempt:?}"),
            // The provider would have to send it again, unless it was kept and the answer lost.
            false => assert!((0..=1).contains(&effects), "{id}: {effects}, {attempt:?}"),
        }
        let claims = self.count(&id, "idempotent_webhook.deliveries").await;
        assert_eq!(claims, (effects_before + effects).min(1), "{id}: claims");
        assert!(attempts <= RETRIES + 2, "{id}: {attempts} attempts");
        if inflicted && !is_over {
            let mut met = met.lock().unwrap();
            let hits = met.entry((life, fault.name())).or_default();
            hits.all += 1;
            hits.not_kept += u32::from(effects == 0);
        }
        !is_over
    }

    /// Has a delivery processed, to be hit when it is run again.
    async fn archive(&self, id: &str, behaviours: &[&str]) {
        let behaviours = [&["succeed"], behaviours].concat();
        let address = self.process.address().await;
        let path = format!("/{ARCHIVED}");
        let attempt = self.sender.send_once(address, &path, id, &behaviours).await;
        assert!(attempt.is_acknowledged(), "{id}: {attempt:?}");
        assert_eq!(self.count(id, PROCESSED).await, 1, "{id} is not archived");
    }

    /// How many rows of a table are about the delivery.
    async fn count(&self, id: &str, table: &str) -> i64 {
        let sql = format!("select count(*) from {table} where delivery_id = '{id}'");
        self.server.count(&sql).await
    }

    /// Waits until nothing is due, with a process that lives. Returns the number of attempts.
    async fn end_of(&self, id: &str) -> usize {
        let deadline = Instant::now() + PATIENCE;
        while self.count(id, DUE).await > 0 {
            assert!(Instant::now() < deadline, "{id} is kept for ever");
            self.process.address().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(self.count(id, DEAD).await, 0, "{id} is dead");
        usize::try_from(self.count(id, "attempts").await).unwrap()
    }
}

const DUE: &str = "(select * from idempotent_webhook.kept_deliveries where state = 'due') as due";
const DEAD: &str =
    "(select * from idempotent_webhook.kept_deliveries where state = 'dead') as dead";
const PROCESSED: &str =
    "(select * from idempotent_webhook.kept_deliveries where state = 'processed') as processed";
