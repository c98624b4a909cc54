//! Round trips: how many a delivery takes, and what they cost where Postgres is a network
//! away.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};

use crate::application::VARIANTS;
use crate::load::{self, Mode};
use crate::measure::median;
use crate::server::{Contender, PEERS, Server};
use crate::{ROUNDS, SLICE};

/// Added each way.
const DELAY: Duration = Duration::from_millis(1);

pub async fn run(server: &Server, peers: &Path) {
    println!("\nPostgres behind a proxy that adds 1 ms each way, 1 connection\n");
    println!(
        "{:<20} {:>12} {:>10} {:>12} {:>10}",
        "", "round trips", "p50 ms", "round trips", "p50 ms"
    );
    println!("{:<20} {:>23} {:>23}", "", "fresh", "duplicates");
    for name in VARIANTS.into_iter().chain(PEERS) {
        let proxy = Proxy::start(server.folder().join(".s.PGSQL.5432")).await;
        let program = match PEERS.contains(&name) {
            true => peers.to_owned(),
            false => std::env::current_exe().unwrap(),
        };
        let contender = Contender::start(&program, name, &proxy.url).await;
        print!("{name:<20}");
        for mode in [Mode::Fresh, Mode::Duplicates] {
            load::send(contender.address, mode, 1, Duration::from_millis(200)).await;
            let mut p50 = Vec::new();
            let mut round_trips = Vec::new();
            for _ in 0..ROUNDS {
                let before = proxy.answers.load(Ordering::Relaxed);
                let latencies = load::send(contender.address, mode, 1, SLICE / 3);
                let latencies = latencies.await.0;
                let answers = proxy.answers.load(Ordering::Relaxed) - before;
                let first_sent = match mode {
                    Mode::Fresh => 0,
                    Mode::Duplicates => load::DUPLICATED,
                };
                round_trips.push(answers as f64 / (latencies.len() as u64 + first_sent) as f64);
                p50.push(latencies[latencies.len() / 2] as f64 / 1e6);
            }
            print!(
                " {:>12.1} {:>10.2}",
                median(round_trips.into_iter()),
                median(p50.into_iter())
            );
        }
        println!();
    }
    println!("round trips: with those of the pool, which pings before and after");
}

/// Delays what passes, and counts how often Postgres reports to be ready again.
struct Proxy {
    url: String,
    answers: Arc<AtomicU64>,
}

impl Proxy {
    async fn start(postgres: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answers = Arc::new(AtomicU64::new(0));
        let counted = answers.clone();
        tokio::spawn(async move {
            loop {
                let (application, _) = listener.accept().await.unwrap();
                application.set_nodelay(true).unwrap();
                let postgres = UnixStream::connect(&postgres).await.unwrap();
                tokio::spawn(relay(application, postgres, counted.clone()));
            }
        });
        Self {
            url: format!("postgres://postgres@{address}/postgres?sslmode=disable"),
            answers,
        }
    }
}

async fn relay(application: TcpStream, postgres: UnixStream, answers: Arc<AtomicU64>) {
    let (mut from_application, mut to_application) = application.into_split();
    let (mut from_postgres, mut to_postgres) = postgres.into_split();
    let there = async {
        let mut buffer = vec![0; 65536];
        while let Ok(length @ 1..) = from_application.read(&mut buffer).await {
            tokio::time::sleep(DELAY).await;
            to_postgres.write_all(&buffer[..length]).await.ok();
        }
    };
    let back = async {
        let mut buffer = vec![0; 65536];
        while let Ok(length @ 1..) = from_postgres.read(&mut buffer).await {
            // `ReadyForQuery` is the last message of an answer: Z, its length, a status.
            if length >= 6 && buffer[length - 6..].starts_with(b"Z\0\0\0\x05") {
                answers.fetch_add(1, Ordering::Relaxed);
            }
            tokio::time::sleep(DELAY).await;
            to_application.write_all(&buffer[..length]).await.ok();
        }
    };
    tokio::select! {
        () = there => {}
        () = back => {}
    }
}
