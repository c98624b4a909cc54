//! A simulated network between an application and Postgres.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The delay that is added in each direction.
const DELAY: Duration = Duration::from_millis(1);

/// Delays all data, and counts how often Postgres reports that it is ready again.
pub struct Proxy {
    pub url: String,
    answers: Arc<AtomicU64>,
}

impl Proxy {
    pub async fn start(postgres: PathBuf) -> Self {
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

    pub fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }
}

async fn relay(application: TcpStream, postgres: UnixStream, answers: Arc<AtomicU64>) {
    let (from_application, to_application) = application.into_split();
    let (from_postgres, to_postgres) = postgres.into_split();
    tokio::select! {
        () = delay(from_application, to_postgres, |_| {}) => {}
        () = delay(from_postgres, to_application, |answer| {
            // `ReadyForQuery` is the last message of an answer: Z, its length, a status.
            if answer.len() >= 6 && answer[answer.len() - 6..].starts_with(b"Z\0\0\0\x05") {
                answers.fetch_add(1, Ordering::Relaxed);
            }
        }) => {}
    }
}

/// Forwards all data, each part `DELAY` after its arrival. A part does not wait for the delay of an earlier part.
async fn delay(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    seen: impl Fn(&[u8]),
) {
    let (under_way, mut arriving) = mpsc::unbounded_channel();
    let depart = async {
        let mut buffer = vec![0; 65536];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            seen(&buffer[..length]);
            let part = (Instant::now() + DELAY, buffer[..length].to_vec());
            under_way.send(part).unwrap();
        }
    };
    let arrive = async {
        while let Some((at, part)) = arriving.recv().await {
            tokio::time::sleep_until(at).await;
            to.write_all(&part).await.ok();
        }
    };
    tokio::select! {
        () = depart => {}
        () = arrive => {}
    }
}
