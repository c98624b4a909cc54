//! Round trips: how many a delivery takes, and what they cost where Postgres is a network
//! away.

use std::path::Path;
use std::time::Duration;

use crate::application::VARIANTS;
use crate::load::{self, Mode};
use crate::measure::median;
use crate::proxy::Proxy;
use crate::server::{Contender, PEERS, Server};
use crate::{ROUNDS, SLICE};

pub async fn run(server: &mut Server, peers: &Path) {
    println!("\nPostgres behind a proxy that adds 1 ms each way, 1 connection\n");
    println!(
        "{:<22} {:>12} {:>10} {:>12} {:>10}",
        "", "round trips", "p50 ms", "round trips", "p50 ms"
    );
    println!("{:<22} {:>23} {:>23}", "", "fresh", "duplicates");
    for name in VARIANTS.into_iter().chain(PEERS) {
        let proxy = Proxy::start(server.socket()).await;
        server.put_behind(&proxy.url);
        let contender = match PEERS.contains(&name) {
            true => Contender::peer(server, peers, name).await,
            false => Contender::own(server, name).await,
        };
        print!("{name:<22}");
        for mode in [Mode::Fresh, Mode::Duplicates] {
            load::send(contender.address, mode, 1, Duration::from_millis(200)).await;
            let mut p50 = Vec::new();
            let mut round_trips = Vec::new();
            for _ in 0..ROUNDS {
                let before = proxy.answers();
                let latencies = load::send(contender.address, mode, 1, SLICE / 3);
                let latencies = latencies.await.0;
                let answers = proxy.answers() - before;
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
