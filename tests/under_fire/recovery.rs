//! A provider that never retries, such as GitHub. Three processes with recovery share one Postgres. Some handlers fail,
//! panic, hang or abort their process a few times and then succeed; others never succeed. Processes are killed and
//! Postgres crashes. At the end, every delivery that was kept or acknowledged has been processed once, or is dead. If
//! requests are kept first, this also holds for every delivery whose handler was called.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::Length;
use crate::history::{End, Event, Recorder};
use crate::process::Process;
use crate::sender::Sender;
use crate::server::Server;

struct Recovering {
    server: Server,
    processes: Vec<Process>,
    sender: Sender,
    kills: AtomicU32,
    over: AtomicBool,
}

const SENDERS: usize = 16;
const WAYS: [&str; 6] = [
    "kept",
    "acknowledged",
    "all",
    "accepted",
    "late-kept",
    "late",
];

/// One in this many deliveries aborts its process, or fails, at each attempt.
const HOPELESS: u32 = 60;

/// How long the last delivery may take, even if its process dies during each attempt.
const PATIENCE: Duration = Duration::from_secs(180);

pub async fn run(length: Length) {
    let deliveries: u32 = match length {
        Length::Short => 300,
        Length::Long => 6_000,
    };
    let seed = fastrand::u64(..);
    println!("\nrecovery: {deliveries} deliveries sent once, 3 processes, seed {seed}\n");
    let mut random = fastrand::Rng::with_seed(seed);
    let server = Server::start().await;
    let recorder = Recorder::start();
    let processes = (0..3)
        .map(|_| Process::new(server.url(), &recorder, 10, Duration::from_secs(1)).recovering())
        .collect();
    let recovering = Arc::new(Recovering {
        server,
        processes,
        sender: Sender::new(&recorder),
        kills: AtomicU32::new(0),
        over: AtomicBool::new(false),
    });

    let started = Instant::now();
    let supervisor = tokio::spawn(recovering.clone().supervise(random.fork()));
    let senders = Arc::new(Semaphore::new(SENDERS));
    let mut sending = Vec::new();
    for number in 0..deliveries {
        if number == deliveries / 3 || number == deliveries * 2 / 3 {
            recovering.server.restart().await;
        }
        let permit = senders.clone().acquire_owned().await.unwrap();
        let (recovering, random) = (recovering.clone(), random.fork());
        sending.push(tokio::spawn(async move {
            recovering.deliver(number, random).await;
            drop(permit);
        }));
    }
    for sent in sending {
        sent.await.unwrap();
    }
    recovering.over.store(true, Ordering::Relaxed);
    supervisor.await.unwrap();
    recovering.wait_for_the_last().await;

    let history = recovering.server.history(&recorder).await;
    for (answer, times) in history.answers() {
        println!("  {answer:<20} {times:>6}");
    }
    let promised = history.ids(|event| match event {
        Event::Answered { attempt, .. } => attempt.is_acknowledged() || attempt.outcome() == "kept",
        _ => false,
    });
    println!(
        "\n{deliveries} deliveries, {} kept or acknowledged, {} processes killed, Postgres crashed \
         twice, in {:.0} s",
        promised.len(),
        recovering.kills.load(Ordering::Relaxed),
        started.elapsed().as_secs_f64(),
    );
    println!("{}", history.assert_upheld("recovery"));
    println!(
        "{} processed, once each, and {} dead",
        history.processed().len(),
        history.ids(|event| *event == Event::Ended(End::Dead)).len(),
    );
}

impl Recovering {
    /// Sends a delivery once.
    async fn deliver(&self, number: u32, mut random: fastrand::Rng) {
        let way = WAYS[random.usize(..WAYS.len())];
        let id = format!("{way}-{number}");
        let behaviours: Vec<&str> = match (number + 1) % HOPELESS {
            0 => vec!["abort"; 20],
            1 => vec!["fail"; 20],
            _ => (0..random.usize(..3))
                .map(|_| match random.f64() {
                    0.0..0.6 => "fail",
                    0.6..0.85 => "panic",
                    0.85..0.95 => "hang",
                    _ => "abort",
                })
                .collect(),
        };
        let process = &self.processes[random.usize(..self.processes.len())];
        let address = process.address().await;
        let path = format!("/{way}");
        self.sender
            .send_once(address, &path, &id, &behaviours)
            .await;
    }

    /// Kills one process after another, and starts processes again that are gone.
    async fn supervise(self: Arc<Self>, mut random: fastrand::Rng) {
        while !self.over.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(random.u64(200..900))).await;
            let process = &self.processes[random.usize(..self.processes.len())];
            process.kill().await;
            self.kills.fetch_add(1, Ordering::Relaxed);
            for process in &self.processes {
                process.address().await;
            }
        }
    }

    /// Waits until nothing is due, at most until `PATIENCE` is over, and keeps the processes running meanwhile. A
    /// delivery that is still due breaks a rule of the history.
    async fn wait_for_the_last(&self) {
        let deadline = Instant::now() + PATIENCE;
        let due = "select count(*) from idempotent_webhook.kept_deliveries where state = 'due'";
        while self.server.count(due).await > 0 && Instant::now() < deadline {
            for process in &self.processes {
                process.address().await;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}
