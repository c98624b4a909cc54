//! A storm of duplicates of one slow delivery, next to a steady stream of other deliveries: through
//! the layer, and through a handwritten handler.

use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use crate::Length;
use crate::history::Recorder;
use crate::process::Process;
use crate::sender::{Attempt, Sender};
use crate::server::Server;

/// The results of the stream.
struct Stream {
    acknowledged: u32,
    refused: u32,
    /// In ascending order.
    latencies: Vec<Duration>,
}

/// The time between one delivery of the stream and the next.
const PACE: Duration = Duration::from_millis(10);

pub async fn run(length: Length) {
    let (copies, slow, window) = match length {
        Length::Short => (200, "sleep 1000", Duration::from_secs(1)),
        Length::Long => (500, "sleep 2000", Duration::from_secs(2)),
    };
    let server = Server::start().await;
    let recorder = Recorder::start();
    let process = Process::new(server.url(), &recorder, 5, Duration::from_secs(5));
    let address = process.address().await;
    let sender = Sender::new(&recorder);
    println!("\nstorm: {copies} copies of a slow delivery, a pool of 5 connections\n");
    println!(
        "{:<10} {:>12} {:>12} {:>7} {:>9} {:>9} {:>9}   copies",
        "", "rate before", "rate during", "ratio", "refused", "p50", "p99"
    );

    for path in ["/", "/by-hand"] {
        let stream = async |name: &str| stream(&sender, address, path, name, window).await;
        stream("warm-up").await;
        let before = stream("before").await;
        let id = format!("slow{path}");
        let storm: Vec<JoinHandle<Attempt>> = (0..copies)
            .map(|_| {
                let (sender, id) = (sender.clone(), id.clone());
                tokio::spawn(async move {
                    let patience = Duration::from_secs(60);
                    sender.send_to(address, path, &id, slow, patience).await
                })
            })
            .collect();
        let during = stream("during").await;
        let (mut acknowledged, mut unavailable) = (0, 0);
        for copy in storm {
            match copy.await.unwrap() {
                Attempt::Answered { status: 200, .. } => acknowledged += 1,
                Attempt::Answered { status: 503, .. } => unavailable += 1,
                other => panic!("{other:?}"),
            }
        }

        let rate = |stream: &Stream| f64::from(stream.acknowledged) / window.as_secs_f64();
        let percentile = |hundredth: usize| {
            let latencies = &during.latencies;
            latencies
                .get((latencies.len() * hundredth / 100).min(latencies.len().saturating_sub(1)))
                .map_or_else(
                    || "-".into(),
                    |latency| format!("{} ms", latency.as_millis()),
                )
        };
        println!(
            "{:<10} {:>10.0}/s {:>10.0}/s {:>7.2} {:>9} {:>9} {:>9}   {acknowledged} x 200, \
             {unavailable} x 503",
            if path == "/" { "layer" } else { "hand-written" },
            rate(&before),
            rate(&during),
            rate(&during) / rate(&before),
            during.refused,
            percentile(50),
            percentile(99),
        );
        if path == "/" {
            assert_eq!((before.refused, during.refused), (0, 0));
        }
    }
    let history = server.history(&recorder).await;
    println!("\n{}", history.assert_upheld("storm"));
}

/// Sends a delivery at every beat during `window`, and counts the deliveries that are answered
/// within that time.
async fn stream(
    sender: &Sender,
    address: std::net::SocketAddr,
    path: &'static str,
    name: &str,
    window: Duration,
) -> Stream {
    let end = Instant::now() + window;
    let mut beat = tokio::time::interval(PACE);
    let mut sending = Vec::new();
    while Instant::now() < end {
        beat.tick().await;
        let id = format!("{name}{path}{}", sending.len());
        let sender = sender.clone();
        sending.push(tokio::spawn(async move {
            let sent = Instant::now();
            let patience = Duration::from_secs(60);
            let attempt = sender.send_to(address, path, &id, "", patience).await;
            (attempt, sent.elapsed(), Instant::now() <= end)
        }));
    }
    let mut stream = Stream {
        acknowledged: 0,
        refused: 0,
        latencies: Vec::new(),
    };
    for sent in sending {
        let (attempt, latency, in_time) = sent.await.unwrap();
        if !attempt.is_acknowledged() {
            stream.refused += 1;
        } else if in_time {
            stream.acknowledged += 1;
        }
        stream.latencies.push(latency);
    }
    stream.latencies.sort();
    stream
}
