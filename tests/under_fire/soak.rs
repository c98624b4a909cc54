//! Three processes share one Postgres. Deliveries come several times, handlers fail, clients hang
//! up, processes are killed and Postgres crashes. At the end, every delivery has been processed
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::Length;
use crate::application::LATE;
use crate::history::Recorder;
use crate::process::Process;
use crate::sender::{Attempt, Sender};
use crate::server::Server;

struct Soak {
    server: Server,
    processes: Vec<Process>,
    sender: Sender,
    kills: AtomicU32,
    over: AtomicBool,
}

/// How many attempts are under way at once.
const SENDERS: usize = 48;

pub async fn run(length: Length) {
    let deliveries: u32 = match length {
        Length::Short => 600,
        Length::Long => 10_000,
    };
    let seed = fastrand::u64(..);
    println!("\nsoak: {deliveries} deliveries, 3 processes, seed {seed}\n");
    let mut random = fastrand::Rng::with_seed(seed);

    let server = Server::start().await;
    let recorder = Recorder::start();
    let processes = (0..3)
        .map(|_| Process::new(server.url(), &recorder, 5, Duration::from_secs(2)))
        .collect();
    let soak = Arc::new(Soak {
        server,
        processes,
        sender: Sender::new(&recorder),
        kills: AtomicU32::new(0),
        over: AtomicBool::new(false),
    });

    let started = Instant::now();
    let killer = tokio::spawn(soak.clone().kill_processes(random.fork()));
    let senders = Arc::new(Semaphore::new(SENDERS));
    let mut sending = Vec::new();
    let mut copies_sent = 0;
    for number in 0..deliveries {
        if number == deliveries / 3 || number == deliveries * 2 / 3 {
            soak.server.restart().await;
        }
        let copies = if random.f64() < 0.3 {
            random.u32(2..=5)
        } else {
            1
        };
        copies_sent += copies;
        for _ in 0..copies {
            let permit = senders.clone().acquire_owned().await.unwrap();
            let late = match random.bool() {
                true => Duration::ZERO,
                false => Duration::from_millis(random.u64(0..1000)),
            };
            let (soak, random) = (soak.clone(), random.fork());
            sending.push(tokio::spawn(async move {
                if !late.is_zero() {
                    // Frees the slot while this copy waits, so that other copies are sent in the
                    // meantime.
                    drop(permit);
                    tokio::time::sleep(late).await;
                }
                // Half of the deliveries go to a handler that claims late.
                let path = if number % 2 == 0 { "/" } else { LATE };
                soak.deliver(path, &format!("delivery-{number}"), random)
                    .await;
            }));
        }
    }
    for sent in sending {
        sent.await.unwrap();
    }
    soak.over.store(true, Ordering::Relaxed);
    killer.await.unwrap();

    let in_transaction = soak.server.left_in_transaction().await;
    let history = soak.server.history(&recorder).await;
    for (answer, times) in history.answers() {
        println!("  {answer:<20} {times:>6}");
    }
    println!(
        "\n{copies_sent} copies of {deliveries} deliveries, all acknowledged, {} processes killed, \
         Postgres crashed twice, in {:.0} s",
        soak.kills.load(Ordering::Relaxed),
        started.elapsed().as_secs_f64(),
    );
    println!("{}", history.assert_upheld("soak"));
    let processed = history.processed().len();
    println!("{processed} processed, once each; {in_transaction} connections in a transaction");
    assert_eq!((processed, in_transaction), (deliveries as usize, 0));
}

impl Soak {
    /// Sends one copy until it is acknowledged.
    async fn deliver(&self, path: &str, id: &str, mut random: fastrand::Rng) {
        let deadline = Instant::now() + Duration::from_secs(300);
        loop {
            let attempt = self.attempt(path, id, &mut random).await;
            if attempt.is_acknowledged() {
                break;
            }
            assert!(Instant::now() < deadline, "{id} is never acknowledged");
            tokio::time::sleep(Duration::from_millis(random.u64(10..200))).await;
        }
    }

    async fn attempt(&self, path: &str, id: &str, random: &mut fastrand::Rng) -> Attempt {
        let process = &self.processes[random.usize(..self.processes.len())];
        let behaviour = match random.f64() {
            0.00..0.02 => "fail",
            0.02..0.04 => "panic",
            0.04..0.05 => "hang",
            _ => "sleep 5",
        };
        // Some senders hang up at a random moment.
        let patience = match random.f64() < 0.05 {
            true => Duration::from_millis(random.u64(1..60)),
            false => Duration::from_secs(20),
        };
        let address = process.address().await;
        self.sender
            .send_to(address, path, id, behaviour, patience)
            .await
    }

    /// Kills one process after another. The next attempt that is sent to a killed process starts it
    /// again.
    async fn kill_processes(self: Arc<Self>, mut random: fastrand::Rng) {
        while !self.over.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(random.u64(500..2000))).await;
            self.processes[random.usize(..self.processes.len())]
                .kill()
                .await;
            self.kills.fetch_add(1, Ordering::Relaxed);
        }
    }
}
