//! A sender, in a process of its own, that sends a stream of deliveries to one path and continues regardless of the
//! answers.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::application::SECRET;
use crate::load::body;
use crate::server::child;

const TARGET: &str = "BENCHMARK_STREAM";
const CONNECTIONS: usize = 4;

/// The answers by status, and how many nanoseconds each answer took.
#[derive(Default)]
pub struct Answers(BTreeMap<u16, Vec<u64>>);

impl Answers {
    pub fn add(&mut self, other: Self) {
        for (status, times) in other.0 {
            self.0.entry(status).or_default().extend(times);
        }
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (status, times)) in self.0.iter().enumerate() {
            let mut times = times.clone();
            times.sort_unstable();
            let p99 = times[times.len() * 99 / 100] as f64 / 1e6;
            let separator = if number == 0 { "" } else { ", " };
            write!(
                f,
                "{separator}{} times {status}, p99 {p99:.1} ms",
                times.len()
            )?;
        }
        Ok(())
    }
}

pub fn is_wanted() -> bool {
    std::env::var_os(TARGET).is_some()
}

/// Sends for the duration `time`, in a process of its own. After each answer, the connection waits for `rest`.
pub async fn send(target: SocketAddr, path: &str, time: Duration, rest: Duration) -> Answers {
    let plan = format!("{target} {path} {} {}", time.as_millis(), rest.as_millis());
    let output = child(&std::env::current_exe().unwrap())
        .env(TARGET, plan)
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "the sender failed");
    let mut answers = Answers::default();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (status, time) = line.split_once(' ').unwrap();
        let times = answers.0.entry(status.parse().unwrap()).or_default();
        times.push(time.parse().unwrap());
    }
    answers
}

pub async fn run() {
    let plan = std::env::var(TARGET).unwrap();
    let plan: Vec<&str> = plan.split(' ').collect();
    let [target, path, time, rest] = plan[..] else {
        panic!("no plan");
    };
    let millis = |text: &str| Duration::from_millis(text.parse().unwrap());
    let (end, rest) = (Instant::now() + millis(time), millis(rest));
    let body = body();
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    let signature = hex::encode(mac.finalize().into_bytes());
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         X-GitHub-Event: push\r\nX-Hub-Signature-256: sha256={signature}\r\n\
         Content-Length: {}\r\nX-GitHub-Delivery: ",
        body.len()
    );
    let sending: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (target, head, body) = (target.to_owned(), head.clone(), body.clone());
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(&target).await.unwrap();
                stream.set_nodelay(true).unwrap();
                let mut lines = String::new();
                while Instant::now() < end {
                    let id = fastrand::u128(..);
                    let request = format!("{head}{id:032x}\r\n\r\n{body}");
                    let sent = Instant::now();
                    stream.write_all(request.as_bytes()).await.unwrap();
                    let status = answer(&mut stream).await;
                    lines += &format!("{status} {}\n", sent.elapsed().as_nanos());
                    tokio::time::sleep(rest).await;
                }
                lines
            })
        })
        .collect();
    for sent in sending {
        print!("{}", sent.await.unwrap());
    }
}

/// Reads an answer to its end, and returns its status.
async fn answer(stream: &mut TcpStream) -> u16 {
    let mut answer = Vec::new();
    let end = loop {
        assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "closed");
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        if let Some(end) = end {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    while answer.len() < end + length {
        assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "closed");
    }
    head[9..12].parse().unwrap()
}
