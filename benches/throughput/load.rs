//! The sender, which runs in a process of its own and keeps a number of connections busy for a
//! while.

use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::application::SECRET;
use crate::server::child;

const TARGET: &str = "BENCHMARK_TARGET";
const PLAN: &str = "BENCHMARK_PLAN";

/// How many different deliveries there are when duplicates are sent.
pub const DUPLICATED: u64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Fresh,
    Duplicates,
}

/// How long each answer took, in nanoseconds, in ascending order.
pub struct Latencies(pub Vec<u64>);

pub fn is_wanted() -> bool {
    std::env::var_os(TARGET).is_some()
}

/// Runs the sender in a process of its own.
pub async fn send(
    target: std::net::SocketAddr,
    mode: Mode,
    connections: usize,
    time: Duration,
) -> Latencies {
    let plan = format!("{mode:?} {connections} {}", time.as_millis());
    let output = child(&std::env::current_exe().unwrap())
        .env(TARGET, target.to_string())
        .env(PLAN, plan)
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "the sender failed");
    let text = String::from_utf8(output.stdout).unwrap();
    Latencies(text.lines().map(|line| line.parse().unwrap()).collect())
}

pub async fn run() {
    let target = std::env::var(TARGET).unwrap();
    let plan = std::env::var(PLAN).unwrap();
    let plan: Vec<&str> = plan.split(' ').collect();
    let [mode, connections, millis] = plan[..] else {
        panic!("no plan");
    };
    let duplicates = mode == "Duplicates";
    let time = Duration::from_millis(millis.parse().unwrap());
    let request = Request::new();
    if duplicates {
        let mut first = TcpStream::connect(&target).await.unwrap();
        for number in 0..DUPLICATED {
            request.send(&mut first, &duplicate(number)).await;
        }
    }
    let end = Instant::now() + time;
    let connections: usize = connections.parse().unwrap();
    let sending: Vec<_> = (0..connections)
        .map(|_| {
            let (target, request) = (target.clone(), request.clone());
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(&target).await.unwrap();
                stream.set_nodelay(true).unwrap();
                let mut latencies = Vec::new();
                let mut random = fastrand::Rng::new();
                while Instant::now() < end {
                    let id = match duplicates {
                        true => duplicate(random.u64(..DUPLICATED)),
                        false => format!("{:032x}----", random.u128(..)),
                    };
                    let sent = Instant::now();
                    request.send(&mut stream, &id).await;
                    latencies.push(sent.elapsed().as_nanos());
                }
                latencies
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for sent in sending {
        latencies.extend(sent.await.unwrap());
    }
    latencies.sort_unstable();
    let lines: Vec<String> = latencies.iter().map(u128::to_string).collect();
    println!("{}", lines.join("\n"));
}

fn duplicate(number: u64) -> String {
    format!("duplicate-{number:026x}")
}

/// The body of a push event, of 3 KB.
pub fn body() -> String {
    let mut random = fastrand::Rng::with_seed(1);
    // Each commit has its own id, so that the body compresses no better than a real one.
    let commits: Vec<String> = (0..42)
        .map(|_| {
            let (id, rest) = (random.u128(..), random.u32(..));
            format!(r#"{{"id":"{id:032x}{rest:08x}","message":"Tidy up"}}"#)
        })
        .collect();
    let commits = commits.join(",");
    format!(r#"{{"ref":"refs/heads/main","commits":[{commits}]}}"#)
}

/// A delivery that is signed as GitHub signs. The delivery id is not signed, so one signature fits
/// all ids.
#[derive(Clone)]
struct Request {
    before_id: String,
    after_id: String,
}

impl Request {
    fn new() -> Self {
        let body = body();
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
        mac.update(body.as_bytes());
        let signature = hex::encode(mac.finalize().into_bytes());
        Self {
            before_id: format!(
                "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                 X-GitHub-Event: push\r\nX-Hub-Signature-256: sha256={signature}\r\n\
                 Content-Length: {}\r\nX-GitHub-Delivery: ",
                body.len()
            ),
            after_id: format!("\r\n\r\n{body}"),
        }
    }

    /// Sends the delivery and waits for the answer, which must be a 200 without a body.
    async fn send(&self, stream: &mut TcpStream, id: &str) {
        let request = [&self.before_id, id, &self.after_id].concat();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 1024];
        let mut length = 0;
        while !answer[..length].ends_with(b"\r\n\r\n") {
            match stream.read(&mut answer[length..]).await.unwrap() {
                0 => panic!("closed"),
                more => length += more,
            }
            // Checks the status before the end of the answer, because another answer may have a
            // body, whose end would not be recognized.
            let is_ok = answer[..length].starts_with(b"HTTP/1.1 200 ") || length < 13;
            assert!(is_ok, "{}", String::from_utf8_lossy(&answer[..length]));
        }
    }
}
