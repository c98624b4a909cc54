//! The heap usage of requests: for verification, in the layer and in a handwritten handler, and while many requests are
//! held up.
//!
//!     cargo bench --bench memory
//!     cargo bench --bench memory -- --forged
//!
//! `benches/README.md` says how to read it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a benchmark that fails may panic"
)]

#[allow(
    dead_code,
    reason = "of the benchmark `throughput`, only a part is needed here"
)]
#[path = "../throughput/application.rs"]
mod application;
#[allow(
    dead_code,
    reason = "of the benchmark `verify`, only a part is needed here"
)]
#[path = "../verify/deliveries.rs"]
mod deliveries;
mod forged;
mod heap;
mod request;
#[allow(
    dead_code,
    reason = "of the benchmark `throughput`, only a part is needed here"
)]
#[path = "../throughput/server.rs"]
mod server;

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use futures_util::FutureExt;
use http::{Request, StatusCode};
use idempotent_webhook::{IdempotentWebhook, Secret, presets};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Executor, PgPool};
use tokio::task::JoinHandle;
use tower::ServiceExt;

use deliveries::SECRET;
use heap::{Heap, Measurement, median};
use request::{Arrival, Signature, body, counted, push};
use server::Server;

const ROUNDS: usize = 9;

/// The number of rounds before the measurement, in which statements are prepared and buffers grow.
const WARM_UP: usize = 3;

/// How many requests are held up at once.
const HELD_UP: usize = 200;
const HELD_UP_ROUNDS: usize = 5;

/// A timeout that is longer than anything in this benchmark takes.
const LONG: Duration = Duration::from_secs(600);

/// There is only one thread, so that the measurement is the same every time.
#[tokio::main(flavor = "current_thread")]
async fn main() {
    forged::forgeries_are_cheap();
    if std::env::args().any(|argument| argument == "--forged") {
        return;
    }
    verification();
    forgeries_take_no_connection();
    let server = Server::start().await;
    one_by_one(&server).await;
    held_up(&server).await;
}

fn verification() {
    println!("\nProvider::verify\n");
    println!(
        "{:<18} {:>8} {:>12} {:>10} {:>10}",
        "preset", "body", "allocations", "bytes", "peak"
    );
    for (name, input) in deliveries::PRESETS {
        let mut takes = Vec::new();
        for (size, bytes) in [("3 KB", 3_000), ("1 MB", 1_000_000), ("25 MB", 25_000_000)] {
            let (provider, head, body) = input(&deliveries::event(bytes));
            let heaps: Vec<Heap> = (0..ROUNDS)
                .map(|_| {
                    let measurement = Measurement::begin();
                    provider.verify(&head, &body, SystemTime::now()).unwrap();
                    measurement.so_far()
                })
                .collect();
            let heap = median(&heaps);
            println!(
                "{name:<18} {size:>8} {:>12} {:>10} {:>10}",
                heap.allocations, heap.bytes, heap.peak
            );
            takes.push(heap);
        }
        assert!(
            takes.iter().all(|heap| *heap == takes[0]),
            "it takes more for a larger body"
        );
    }
}

fn layer(pool: &PgPool, endpoint: &str) -> IdempotentWebhook {
    let github = presets::github(Secret::new(SECRET).unwrap());
    IdempotentWebhook::new(pool.clone(), endpoint.to_owned(), github)
        .handler_timeout(LONG)
        .database_timeout(LONG)
        .in_flight_timeout(LONG)
}

fn through(layer: IdempotentWebhook) -> Router {
    Router::new().route("/", post(application::handle).layer(layer))
}

fn by_hand(pool: &PgPool) -> Router {
    Router::new()
        .route("/", post(application::careful))
        .with_state(pool.clone())
}

fn connections() -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(10)
        .acquire_timeout(LONG)
}

fn random_id() -> String {
    format!("{:032x}", fastrand::u128(..))
}

/// Forged requests are answered at once. The layer does not query the database, which could not answer here, and does
/// not read the body if the head is enough to refuse the request.
fn forgeries_take_no_connection() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = PgConnectOptions::new()
        .host("127.0.0.1")
        .port(unused.local_addr().unwrap().port());
    drop(unused);
    let pool = connections().connect_lazy_with(nobody);
    let router = through(layer(&pool, "forged"));

    let forge = |size, arrival, signature| {
        let heaps: Vec<Heap> = (0..ROUNDS)
            .map(|_| {
                let request = push("forged", &body(size), arrival, signature);
                let measurement = Measurement::begin();
                let answer = router.clone().oneshot(request).now_or_never();
                let status = answer.expect("it is answered at once").unwrap().status();
                let heap = measurement.so_far();
                drop(measurement);
                assert_eq!(status, StatusCode::UNAUTHORIZED);
                assert_eq!(pool.size(), 0);
                heap
            })
            .collect();
        median(&heaps)
    };
    let sizes = [0, 3_000, 1_000_000, 25_000_000];
    for arrival in [Arrival::Whole, Arrival::Frames] {
        let takes = sizes.map(|size| forge(size, arrival, Signature::Missing));
        assert_eq!(takes, [takes[0]; 4], "it has looked at the body");
    }
    let takes = sizes.map(|size| forge(size, Arrival::Whole, Signature::Wrong));
    assert_eq!(takes, [takes[0]; 4], "it has copied the body");
    println!("\nforged requests took no connection, and nothing for a body that is not read");
}

/// Waits until every connection is back in the pool. A request may be answered before its connection is back.
async fn idle(pool: &PgPool) {
    while pool.num_idle() < pool.size() as usize {
        tokio::task::yield_now().await;
    }
}

async fn take(
    router: &Router,
    pool: &PgPool,
    request: Request<Body>,
    expected: StatusCode,
) -> Heap {
    idle(pool).await;
    let measurement = Measurement::begin();
    let status = router.clone().oneshot(request).await.unwrap().status();
    idle(pool).await;
    let heap = measurement.so_far();
    drop(measurement);
    assert_eq!(status, expected);
    heap
}

/// The kind of delivery that is sent repeatedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Fresh,
    Duplicate,
    WrongSignature,
    NoSignature,
}

/// The median for one request, after the warm-up.
async fn takes(
    router: &Router,
    pool: &PgPool,
    sent: Sent,
    (size, arrival): (usize, Arrival),
) -> Heap {
    let body = body(size);
    let (signature, expected) = match sent {
        Sent::Fresh | Sent::Duplicate => (Signature::Right, StatusCode::OK),
        Sent::WrongSignature => (Signature::Wrong, StatusCode::UNAUTHORIZED),
        Sent::NoSignature => (Signature::Missing, StatusCode::UNAUTHORIZED),
    };
    let processed = random_id();
    let mut heaps = Vec::new();
    for _ in 0..WARM_UP + ROUNDS {
        let id = match sent {
            Sent::Fresh => random_id(),
            _ => processed.clone(),
        };
        let request = push(&id, &body, arrival, signature);
        heaps.push(take(router, pool, request, expected).await);
    }
    median(&heaps[WARM_UP..])
}

async fn one_by_one(server: &Server) {
    let pool = connections()
        .max_connections(1)
        .connect_with(server.database("postgres"))
        .await
        .unwrap();
    let plain = ("layer", through(layer(&pool, "layer")));
    let by_hand = ("hand-written, careful", by_hand(&pool));
    println!("\none request, until its connection is back in the pool");
    println!("1 MB in frames: the 62 frames are 62 allocations and 1000000 bytes of it\n");
    println!(
        "{:<16} {:<22} {:<16} {:>12} {:>10} {:>10}",
        "request", "through", "body", "allocations", "bytes", "peak"
    );
    for (kind, sent, contenders) in [
        ("fresh", Sent::Fresh, vec![&plain, &by_hand]),
        ("duplicate", Sent::Duplicate, vec![&plain, &by_hand]),
        (
            "wrong signature",
            Sent::WrongSignature,
            vec![&plain, &by_hand],
        ),
        ("no signature", Sent::NoSignature, vec![&plain, &by_hand]),
    ] {
        for (name, router) in contenders {
            for (size, body) in [
                // A body of 3 KB is one frame in both cases.
                ("3 KB", (3_000, Arrival::Whole)),
                ("1 MB", (1_000_000, Arrival::Whole)),
                ("1 MB in frames", (1_000_000, Arrival::Frames)),
            ] {
                let heap = takes(router, &pool, sent, body).await;
                println!(
                    "{kind:<16} {name:<22} {size:<16} {:>12} {:>10} {:>10}",
                    heap.allocations, heap.bytes, heap.peak
                );
            }
        }
    }
    pool.close().await;
}

/// Locks the table to which every handler writes. Until the returned transaction ends, no handler finishes.
async fn lock(pool: &PgPool) -> sqlx::Transaction<'static, sqlx::Postgres> {
    let mut lock = pool.begin().await.unwrap();
    lock.execute("lock table effects in access exclusive mode")
        .await
        .unwrap();
    lock
}

fn send(router: &Router, request: Request<Body>) -> JoinHandle<StatusCode> {
    let router = router.clone();
    tokio::spawn(async move { router.oneshot(request).await.unwrap().status() })
}

async fn until(arrived: &AtomicUsize, count: usize) {
    while arrived.load(Ordering::Relaxed) < count {
        tokio::task::yield_now().await;
    }
}

/// The memory of `HELD_UP` requests while a lock holds up their handlers. If the requests are duplicates, the lock
/// holds up the handler of the first one, and the others wait for it.
async fn hold_up(
    router: &Router,
    pool: &PgPool,
    locking: &PgPool,
    size: usize,
    duplicates: bool,
) -> Heap {
    let body = body(size);
    let arrived = Arc::new(AtomicUsize::new(0));
    let request = |id: &str| counted(id, &body, Arrival::Frames, Signature::Right, &arrived);
    let first = random_id();
    let lock = lock(locking).await;
    let ahead = duplicates.then(|| send(router, request(&first)));
    let arrived_ahead = usize::from(duplicates);
    until(&arrived, arrived_ahead).await;
    let id = || match duplicates {
        true => first.clone(),
        false => random_id(),
    };
    let requests: Vec<_> = (0..HELD_UP).map(|_| request(&id())).collect();

    let measurement = Measurement::begin();
    let mut sent = Vec::with_capacity(HELD_UP);
    for request in requests {
        sent.push(send(router, request));
    }
    until(&arrived, HELD_UP + arrived_ahead).await;
    let held = measurement.so_far().held;
    lock.rollback().await.unwrap();
    for sent in ahead.into_iter().chain(sent) {
        assert_eq!(sent.await.unwrap(), StatusCode::OK);
    }
    idle(pool).await;
    let heap = measurement.so_far();
    Heap { held, ..heap }
}

async fn held_up(server: &Server) {
    let locking = connections()
        .connect_with(server.database("postgres"))
        .await
        .unwrap();
    let pool = connections()
        .connect_with(server.database("postgres"))
        .await
        .unwrap();
    let contenders = [
        ("layer", through(layer(&pool, "held up"))),
        ("hand-written, careful", by_hand(&pool)),
    ];
    println!("\n{HELD_UP} requests in frames held up at once: bytes for each\n");
    println!(
        "{:<20} {:>8} {:<22} {:>14} {:>10}",
        "requests", "body", "through", "while held up", "peak"
    );
    for (kind, duplicates) in [("fresh", false), ("waiting duplicates", true)] {
        // A little less and a little more than a power of two, because buffers grow to powers of two.
        for (body, size) in [("1 MB", 1_000_000), ("1.1 MB", 1_100_000)] {
            for (name, router) in &contenders {
                let mut heaps = Vec::new();
                for _ in 0..=HELD_UP_ROUNDS {
                    heaps.push(hold_up(router, &pool, &locking, size, duplicates).await);
                }
                // The first round opens the connections.
                let heap = median(&heaps[1..]);
                let each = |bytes| bytes / HELD_UP as u64;
                println!(
                    "{kind:<20} {body:>8} {name:<22} {:>14} {:>10}",
                    each(heap.held),
                    each(heap.peak)
                );
            }
        }
    }
    pool.close().await;
    locking.close().await;
}
