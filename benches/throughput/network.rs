//! How many round trips a delivery takes, and what they cost if Postgres is behind a network.

use std::path::Path;
use std::time::Duration;

use crate::application::VARIANTS;
use crate::load::{self, Mode};
use crate::measure::median;
use crate::proxy::Proxy;
use crate::server::{Contender, PEERS, Server};
use crate::{ROUNDS, SLICE, spread};

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
    println!("round trips: including those of the pool, which pings before and after");
}

/// Compares the rates of fresh deliveries: the ratio of the first contender to each other contender, measured in turn.
pub async fn beside<const N: usize>(server: &mut Server, names: [&str; N], rounds: usize) {
    println!(
        "\nbehind a proxy that adds 1 ms each way, 1 connection, the rate of fresh deliveries\n"
    );
    let mut contenders = Vec::new();
    for name in names {
        let proxy = Proxy::start(server.socket()).await;
        server.put_behind(&proxy.url);
        let contender = Contender::own(server, name).await;
        load::send(contender.address, Mode::Fresh, 1, SLICE / 10).await;
        contenders.push(contender);
    }
    let mut rates = [const { Vec::new() }; N];
    for _ in 0..rounds {
        for (contender, rates) in contenders.iter().zip(&mut rates) {
            let sent = load::send(contender.address, Mode::Fresh, 1, SLICE / 2).await;
            rates.push(sent.0.len() as f64);
        }
    }
    for (name, others) in names.iter().zip(&rates).skip(1) {
        let ratios = rates[0]
            .iter()
            .zip(others)
            .map(|(rate, other)| rate / other);
        println!("to {name}: {}", spread(ratios));
    }
}
