//! A delivery is sent once to a process that runs recovery, or was processed before and is run again by an operator. A
//! fault hits the delivery before one of the messages between the application and Postgres, from the moment when the
//! delivery is kept until its kept row is ended. Its promised effect must happen once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::Length;
use crate::application::ARCHIVED;
use crate::fault::{FAULTS, Fault};
use crate::history::{End, Event, Recorder, Upheld};
use crate::operator::Order;
use crate::process::Process;
use crate::proxy::Proxy;
use crate::sender::Sender;
use crate::server::Server;

/// The target of faults: a delivery that is sent, or a delivery that an operator runs again.
struct Life {
    path: &'static str,
    /// What the handler does at the attempts that are hit, before it succeeds.
    behaviours: &'static [&'static str],
}

const LIVES: [Life; 11] = [
    life("/kept", &["fail"]),
    life("/acknowledged", &["fail"]),
    life("/all", &[]),
    life("/all", &["fail"]),
    life("/accepted", &[]),
    life("/accepted", &["fail"]),
    life("/late-kept", &["fail"]),
    life("/late", &[]),
    life("/late", &["fail"]),
    life(REPROCESS, &[]),
    life(REPROCESS, &["fail"]),
];

/// A path that stands for a processed delivery that an operator orders to run again.
const REPROCESS: &str = "/reprocess";

const fn life(path: &'static str, behaviours: &'static [&'static str]) -> Life {
    Life { path, behaviours }
}

/// More messages than any life has. Once a fault was due only after the end of a life, no later message of this life is
/// tried.
const MOST_MESSAGES: usize = 600;

/// How long a process has to start its recovery. Its first messages belong to no delivery.
const START: Duration = Duration::from_millis(250);

const LANES: usize = 8;

/// How long a delivery may take, including an attempt in a process that was killed.
const PATIENCE: Duration = Duration::from_secs(60);

struct Lane {
    number: usize,
    server: Server,
    proxy: Proxy,
    process: Process,
    sender: Sender,
    recorder: Recorder,
}

/// Whether the fault has hit the delivery.
enum Fired {
    Hit,
    /// There was nothing to harm.
    Nothing,
    /// The fault was due only after the end of the delivery's life.
    TooLate,
}

/// The results of the deliveries for one life and one fault.
#[derive(Default)]
struct Hits {
    all: u32,
    not_kept: u32,
}

/// The results by the number of the life and the name of the fault.
type Met = BTreeMap<(usize, &'static str), Hits>;

/// The result of a lane.
struct Done {
    met: Met,
    upheld: Upheld,
}

pub async fn run(length: Length) {
    let step = match length {
        Length::Short => 90,
        Length::Long => 3,
    };
    let started = Instant::now();
    let todo = Arc::new(AtomicUsize::new(0));
    let mut working = Vec::new();
    for number in 0..LANES {
        let lane = Lane::start(number).await;
        working.push(tokio::spawn(lane.work(step, todo.clone())));
    }
    let (mut met, mut upheld) = (Met::default(), Upheld::default());
    for lane in working {
        let done = lane.await.unwrap();
        for (key, hits) in done.met {
            let all = met.entry(key).or_default();
            all.all += hits.all;
            all.not_kept += hits.not_kept;
        }
        upheld += done.upheld;
    }
    println!(
        "\ncrash in recovery: deliveries sent once, hit by a fault before every {step}. message\n"
    );
    for ((life, fault), hits) in &met {
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
    println!("{upheld}");
}

impl Lane {
    async fn start(number: usize) -> Self {
        let server = Server::start().await;
        let proxy = Proxy::start(server.socket()).await;
        let recorder = Recorder::start();
        let process =
            Process::new(proxy.url(), &recorder, 3, Duration::from_millis(500)).recovering();
        Self {
            number,
            server,
            proxy,
            process,
            sender: Sender::new(&recorder),
            recorder,
        }
    }

    /// Takes one fault and one life after another, and goes through the messages of that life.
    async fn work(self, step: usize, todo: Arc<AtomicUsize>) -> Done {
        let mut hit = Vec::new();
        loop {
            let next = todo.fetch_add(1, Ordering::Relaxed);
            // The faults that take the longest to recover from are among the first.
            let (place, life) = (next / LIVES.len(), next % LIVES.len());
            let Some(&fault) = FAULTS.get(place) else {
                break;
            };
            // Another offset for each fault, so that the short form meets each kind of message.
            let offset = step * place / FAULTS.len();
            for number in (offset..MOST_MESSAGES).step_by(step) {
                let id = format!("{life}-{fault:?}-{number}");
                match self.fire(&id, &LIVES[life], fault, number).await {
                    Fired::Hit => hit.push((id, life, fault)),
                    Fired::Nothing => {}
                    Fired::TooLate => break,
                }
            }
        }
        self.process.kill().await;
        assert_eq!(self.server.left_in_transaction().await, 0);
        let history = self.server.history(&self.recorder).await;
        let upheld = history.assert_upheld(&format!("crash_in_recovery-{}", self.number));
        let dead = history.ids(|event| *event == Event::Ended(End::Dead));
        assert!(dead.is_empty(), "{dead:?}");
        let mut met = Met::default();
        for (id, life, fault) in hit {
            let before = usize::from(LIVES[life].path == REPROCESS);
            let hits = met.entry((life, fault.name())).or_default();
            hits.all += 1;
            hits.not_kept += u32::from(history.effects(&id) == before);
        }
        Done { met, upheld }
    }

    /// Runs one delivery.
    async fn fire(&self, id: &str, life: &Life, fault: Fault, number: usize) -> Fired {
        let Life { path, behaviours } = *life;
        self.process.kill().await;
        let address = self.process.address().await;
        tokio::time::sleep(START).await;
        let is_reprocessed = path == REPROCESS;
        if is_reprocessed {
            self.archive(id, behaviours).await;
        }

        let mut faults = self.proxy.arm(number);
        let sent = tokio::spawn({
            let (sender, id) = (self.sender.clone(), id.to_owned());
            async move {
                match is_reprocessed {
                    true => sender.order(address, Order::Reprocess, ARCHIVED, &id).await,
                    false => sender.send_once(address, path, &id, behaviours).await,
                }
            }
        });
        let due = tokio::time::timeout(Duration::from_secs(3), faults.recv()).await;
        let Ok(Some(due)) = due else {
            // Without this drop, a message that comes now would be held forever.
            drop(faults);
            sent.await.unwrap();
            self.end_of(id).await;
            return Fired::TooLate;
        };
        let is_due = self.count(id, "due").await > 0;
        let is_over = sent.is_finished() && !is_due;
        let inflicted = fault.inflict(due, &self.process, &self.server).await;
        sent.await.unwrap();
        self.end_of(id).await;
        match inflicted {
            _ if is_over => Fired::TooLate,
            true => Fired::Hit,
            false => Fired::Nothing,
        }
    }

    /// Has a delivery processed, so that a fault can hit it when it runs again.
    async fn archive(&self, id: &str, behaviours: &[&str]) {
        let behaviours = [&["succeed"], behaviours].concat();
        let address = self.process.address().await;
        let path = format!("/{ARCHIVED}");
        let deadline = Instant::now() + PATIENCE;
        // This is repeated, because a slow disk may make it fail.
        while self.count(id, "processed").await == 0 {
            assert!(Instant::now() < deadline, "{id} is not archived");
            self.sender.send_once(address, &path, id, &behaviours).await;
            self.end_of(id).await;
        }
    }

    /// How many kept rows of the delivery are in this state.
    async fn count(&self, id: &str, state: &str) -> i64 {
        let sql = format!(
            "select count(*)
             from idempotent_webhook.kept_deliveries
             where delivery_id = '{id}' and state = '{state}'"
        );
        self.server.count(&sql).await
    }

    /// Waits, with a running process, until the delivery is no longer due, at most until `PATIENCE` is over. A delivery
    /// that is still due breaks a rule of the history.
    async fn end_of(&self, id: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.count(id, "due").await > 0 && Instant::now() < deadline {
            self.process.address().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
