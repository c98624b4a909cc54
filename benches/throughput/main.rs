//! Deliveries per second through the layer, through handwritten handlers, through other crates, and through Postgres
//! alone.
//!
//!     cargo bench --bench throughput
//!     cargo bench --bench throughput -- --cpu
//!     cargo bench --bench throughput -- --ignored
//!
//! The second form compares the layer with two handwritten handlers, in more rounds. The third form sends events that
//! have no handler.
//!
//! `benches/README.md` says how each figure is obtained.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a benchmark that fails may panic"
)]

mod application;
mod load;
mod measure;
mod network;
mod proxy;
mod server;

use std::collections::BTreeMap;
use std::time::Duration;

use load::Mode;
use measure::{Sample, median};
use server::{Contender, Server};

/// How long one contender is under load in one round.
const SLICE: Duration = Duration::from_secs(2);
const ROUNDS: usize = 5;
const CONNECTIONS: [usize; 3] = [1, 8, 64];

#[tokio::main]
async fn main() {
    // The benchmark starts this same program as the application and as the sender.
    if application::is_wanted() {
        return application::run().await;
    }
    if load::is_wanted() {
        return load::run().await;
    }

    let mut server = Server::start().await;
    if std::env::args().any(|argument| argument == "--cpu") {
        return beside(&mut server).await;
    }
    if std::env::args().any(|argument| argument == "--ignored") {
        return ignored(&server).await;
    }
    let peers = server::build_peers();
    let mut contenders = Vec::new();
    for variant in application::VARIANTS {
        contenders.push(Contender::own(&server, variant).await);
    }
    for peer in server::PEERS {
        contenders.push(Contender::peer(&server, &peers, peer).await);
    }

    for (mode, title) in [
        (Mode::Fresh, "fresh deliveries"),
        (Mode::Duplicates, "duplicates of processed deliveries"),
    ] {
        for connections in CONNECTIONS {
            let samples = run(&server, &contenders, mode, connections).await;
            println!("\n{title}, {connections} connections\n");
            print_table(&samples, mode);
        }
    }
    network::run(&mut server, &peers).await;
}

const LAYER: &str = "layer";
/// Handwritten, with the same guarantees and the same limits as the layer.
const BOUNDED: &str = "hand-written, bounded";
const NAIVE: &str = "hand-written, naive";

/// The rate, and the CPU time of the application and of Postgres, through the layer and through handwritten handlers.
async fn beside(server: &mut Server) {
    const ROUNDS: usize = 10;
    const CONNECTIONS: usize = 8;
    let mut contenders = Vec::new();
    for variant in [LAYER, BOUNDED, NAIVE] {
        contenders.push(Contender::own(server, variant).await);
    }
    println!(
        "\nThe layer to those by hand, {CONNECTIONS} connections, medians of {ROUNDS} rounds \
         (the least and the most)\n"
    );
    for (mode, title) in [(Mode::Fresh, "fresh"), (Mode::Duplicates, "duplicates")] {
        let mut rounds: Vec<[Sample; 3]> = Vec::new();
        for _ in 0..ROUNDS {
            let mut round = Vec::new();
            for contender in &contenders {
                round.push(measure::sample(server, contender, mode, CONNECTIONS, SLICE).await);
            }
            rounds.push(round.try_into().ok().expect("one of each contender"));
        }
        for (yardstick, name) in [(1, BOUNDED), (2, NAIVE)] {
            let ratios = |what: fn(&Sample) -> f64| {
                spread(
                    rounds
                        .iter()
                        .map(|round| what(&round[0]) / what(&round[yardstick])),
                )
            };
            println!("{title}, to {name}");
            println!("    rate          {}", ratios(|sample| sample.rate));
            println!("    CPU           {}", ratios(Sample::cpu));
            println!(
                "    application   {}",
                ratios(|sample| sample.application_cpu)
            );
            println!("    Postgres      {}", ratios(|sample| sample.postgres_cpu));
        }
    }
    network::beside(server, [LAYER, BOUNDED, NAIVE], ROUNDS).await;
}

/// The median, the minimum and the maximum.
fn spread(values: impl Iterator<Item = f64>) -> String {
    let values: Vec<f64> = values.collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    format!(
        "{:.2} ({least:.2} to {most:.2})",
        median(values.into_iter())
    )
}

/// Events without a handler.
async fn ignored(server: &Server) {
    let ignored = Contender::own(server, application::IGNORED).await;
    let claimed = Contender::own(server, application::CLAIMED).await;
    for connections in CONNECTIONS {
        let (mut rates, mut costs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let sample =
                |contender| measure::sample(server, contender, Mode::Fresh, connections, SLICE);
            let (ignored, claimed) = (sample(&ignored).await, sample(&claimed).await);
            rates.push(ignored.rate / claimed.rate);
            costs.push(ignored.cpu() / claimed.cpu());
        }
        println!(
            "{connections} connections: {:.1} times as many a second, {:.2} of the CPU time",
            median(rates.into_iter()),
            median(costs.into_iter()),
        );
    }
}

/// All contenders in turn, round after round.
async fn run(
    server: &Server,
    contenders: &[Contender],
    mode: Mode,
    connections: usize,
) -> BTreeMap<String, Vec<Sample>> {
    let mut samples: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for contender in contenders {
            let sample = measure::sample(server, contender, mode, connections, SLICE).await;
            samples
                .entry(contender.name.clone())
                .or_default()
                .push(sample);
        }
        if mode == Mode::Fresh {
            let ceiling = measure::pgbench(server, connections, SLICE).await;
            samples.entry("pgbench".into()).or_default().push(ceiling);
        }
    }
    samples
}

/// The reference for the ratios: handwritten, with the same guarantees.
const CAREFUL: &str = "hand-written, careful";

fn print_table(samples: &BTreeMap<String, Vec<Sample>>, mode: Mode) {
    let of = |name: &str, what: fn(&Sample) -> f64| median(samples[name].iter().map(what));
    println!(
        "{:<22} {:>9} {:>9} {:>9} {:>9} {:>10} {:>10} {:>10}",
        "", "per s", "ratio", "p50 ms", "p99 ms", "app cpu", "db cpu", "cpu ratio"
    );
    let mut names: Vec<&String> = samples.keys().collect();
    names.sort_by(|a, b| of(b, |s| s.rate).total_cmp(&of(a, |s| s.rate)));
    for name in names {
        // The ratio is computed for each round, because a noisy moment affects all contenders of a round.
        let ratio = |what: fn(&Sample) -> f64| {
            let pairs = samples[name].iter().zip(&samples[CAREFUL]);
            median(pairs.map(|(sample, yardstick)| what(sample) / what(yardstick)))
        };
        println!(
            "{name:<22} {:>9.0} {:>9.2} {:>9.2} {:>9.2} {:>10.3} {:>10.3} {:>10.2}",
            of(name, |s| s.rate),
            ratio(|s| s.rate),
            of(name, |s| s.p50_ms),
            of(name, |s| s.p99_ms),
            of(name, |s| s.application_cpu),
            of(name, |s| s.postgres_cpu),
            ratio(Sample::cpu),
        );
    }
    println!(
        "ratios: to {CAREFUL}; cpu: seconds for 1,000 {}",
        match mode {
            Mode::Fresh => "deliveries",
            Mode::Duplicates => "duplicates",
        }
    );
}
