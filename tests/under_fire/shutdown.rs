//! A process that is asked to stop exits by itself, regardless of what holds it up: one `Hold` alone, or all at once.
//! The process finishes its running work, or another process does that work.

use std::error::Error;
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use futures_util::future::join_all;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Keep, Recovery, Secret, presets,
};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use crate::application::SECRET;
use crate::history::Recorder;
use crate::proxy::Proxy;
use crate::sender::{Attempt, Sender};
use crate::server::Server;

/// Names the database, and makes this program run as the application.
const DATABASE: &str = "SHUTDOWN_DATABASE";

/// Whether the handlers and hooks of the application hang.
const HANGS: &str = "SHUTDOWN_HANGS";

/// Twice the 25 seconds within which the process exits.
const LIMIT: Duration = Duration::from_secs(50);

pub fn is_wanted() -> bool {
    std::env::var_os(DATABASE).is_some()
}

/// What `main` serves and stops, and what a test uses.
struct App {
    router: Router,
    recovery: Recovery,
}

/// The `main` of the README.
pub async fn application() -> Result<(), Box<dyn Error>> {
    let database = std::env::var(DATABASE)?;
    let pool = PgPoolOptions::new()
        .max_connections(10)
        .connect(&database)
        .await?;
    let app = app(pool, Secret::new(SECRET)?);
    let recovery = app.recovery.spawn(app.router.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let server = axum::serve(listener, app.router).with_graceful_shutdown(stopped());
    let server = tokio::spawn(async { server.await });

    stopped().await;
    let unfinished = recovery.stop_with(server).await;
    eprintln!("unfinished: {unfinished}");
    // Returning from `main` would wait for threads that block.
    std::process::exit(0)
}

/// Resolves on the SIGTERM of an orchestrator.
async fn stopped() {
    let mut terminate = signal(SignalKind::terminate()).expect("SIGTERM can be listened to");
    let mut parent = tokio::io::stdin();
    tokio::select! {
        _ = terminate.recv() => {}
        // Standard input is a pipe from the parent.
        _ = parent.read_u8() => std::process::exit(1),
    }
}

fn app(pool: PgPool, secret: Secret) -> App {
    let hangs = std::env::var_os(HANGS).is_some();
    let recovery = Recovery::new(pool.clone()).poll_interval(Duration::from_millis(100));
    let recovery = recovery.on_change(move |change| {
        println!("{} {}", change.endpoint, change.problem);
        if hangs {
            hang();
        }
    });
    let layer = IdempotentWebhook::new(pool, "fire", presets::github(secret))
        .keep(Keep::all(&recovery).retry_delays([Duration::from_millis(300)]));
    let handler = async move |tx, delivery| handle(tx, delivery, hangs).await;
    let router = Router::new().route("/", post(handler).layer(layer));
    App { router, recovery }
}

/// Leaves one effect.
async fn handle(
    mut tx: DedupeTx,
    delivery: Delivery,
    hangs: bool,
) -> Result<StatusCode, HandlerError> {
    let id = delivery.id().as_str();
    sqlx::query("insert into effects (delivery_id) values ($1)")
        .bind(id)
        .execute(&mut *tx)
        .await?;
    match id {
        "in-hand" => tokio::time::sleep(Duration::from_secs(2)).await,
        "hangs" if hangs => tokio::task::spawn_blocking(hang).await?,
        _ => {}
    }
    Ok(StatusCode::OK)
}

fn hang() {
    loop {
        std::thread::park();
    }
}

/// What holds the process up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// A sender falls silent after half of the headers.
    Headers,
    /// A sender falls silent in the middle of the body.
    Body,
    /// A handler does not return, and blocks its thread.
    Handler,
    /// A hook does not return.
    Hook,
    /// Nothing gets through to Postgres or back.
    Postgres,
}

use Hold::{Body, Handler, Headers, Hook, Postgres};

pub async fn run() {
    println!("\nshutdown: a process is asked to stop while something holds it up\n");
    let each: [&[Hold]; 7] = [
        &[],
        &[Headers],
        &[Body],
        &[Handler],
        &[Hook],
        &[Postgres],
        &[Headers, Body, Handler, Hook, Postgres],
    ];
    join_all(each.map(ends_by_itself)).await;
}

async fn ends_by_itself(held_by: &[Hold]) {
    let server = Server::start().await;
    let proxy = Proxy::start(server.socket()).await;
    let recorder = Recorder::start();
    let sender = Sender::new(&recorder);
    let has = |hold| held_by.contains(&hold);
    if has(Hook) {
        server.count(DIE).await;
    }
    let mut process = Running::start(&proxy.url(), true).await;
    let address = process.address;
    if has(Hook) {
        process.until("fire failing").await;
    }
    let sent = sender.send(address, "done", "").await;
    assert_eq!(sent, answered(200, "processed"));

    let mut silent = Vec::new();
    if has(Headers) {
        silent.push(fall_silent(address, b"POST / HTTP/1.1\r\nHost: x\r\nX-Hub-").await);
    }
    if has(Body) {
        silent.push(fall_silent(address, &half_of_a_delivery()).await);
    }
    let send = |id: &'static str| {
        let sender = sender.clone();
        tokio::spawn(async move { sender.send(address, id, "").await })
    };
    if has(Handler) {
        send("hangs");
    }
    let in_hand = send("in-hand");
    let handlers = if has(Handler) { 2 } else { 1 };
    server
        .until(&format!(
            "select (count(*) = {handlers})::int::bigint from pg_stat_activity
             where state = 'idle in transaction' and query like 'insert into effects%'"
        ))
        .await;
    let silence = match has(Postgres) {
        true => Some(proxy.silence().await),
        false => None,
    };

    let asked_at = Instant::now();
    process.ask_to_stop().await;
    until_refused(address).await;
    // The recovery of this process no longer starts a delivery that becomes due now.
    assert_eq!(server.count(BECOME_DUE).await, 1);
    let said = process.ended().await;
    let took = asked_at.elapsed();
    drop(silence);
    drop(silent);

    let expected = match has(Postgres) {
        true => None,
        false => Some(answered(200, "processed")),
    };
    let in_hand = in_hand.await.unwrap();
    assert!(
        expected.is_none_or(|expected| in_hand == expected),
        "{held_by:?}: {in_hand:?}"
    );
    let is_cut_off = has(Handler) || has(Postgres);
    let unfinished = said
        .trim_end()
        .rsplit_once("unfinished:")
        .expect("it says what was left")
        .1;
    assert_eq!(
        unfinished.contains("deliveries of fire"),
        is_cut_off,
        "{held_by:?}: {said}"
    );
    // A server that only a body holds up may still finish: the layer stops waiting for the body at about the time when
    // the shutdown stops waiting for the server.
    assert!(
        unfinished.contains("the server") || !has(Headers),
        "{held_by:?}: {said}"
    );
    // Waits, because Postgres takes a moment to notice that the process is gone.
    assert_eq!(server.left_in_transaction().await, 0);
    if !is_cut_off {
        let numbers = "select count(*) from idempotent_webhook.processes";
        assert_eq!(server.count(numbers).await, 0, "{held_by:?}");
    }
    let begun = "select takes from idempotent_webhook.kept_deliveries where delivery_id = 'later'";
    assert_eq!(server.count(begun).await, 0, "{held_by:?}");
    if !has(Postgres) {
        let lost = "select count(*) from effects where delivery_id in ('done', 'in-hand')";
        assert_eq!(server.count(lost).await, 2, "{held_by:?}");
    }

    let next = Running::start(&server.url(), false).await;
    server
        .until(
            "select (count(*) = 0)::int::bigint from idempotent_webhook.kept_deliveries
             where state = 'due'",
        )
        .await;
    let expected = if has(Handler) { 4 } else { 3 };
    let effects = "select count(*) * 100 + count(distinct delivery_id) from effects";
    assert_eq!(
        server.count(effects).await,
        expected * 101,
        "{held_by:?}: each has one effect"
    );
    next.ask_to_stop().await;
    next.ended().await;
    println!("{held_by:?}: ended by itself after {took:.0?}");
}

/// Causes a problem of the endpoint.
const DIE: &str = "
    with dead as (
        insert into idempotent_webhook.kept_deliveries
            (endpoint, delivery_id, state, attempts, last_failed_at, died_at)
        values ('fire', 'dead', 'dead', 9, now(), now())
        returning 1
    )
    select count(*) from dead";

/// Adds a delivery that is due at once.
const BECOME_DUE: &str = "
    with due as (
        insert into idempotent_webhook.kept_deliveries
            (endpoint, delivery_id, state, attempts, takes, next_attempt_at)
        values ('fire', 'later', 'due', 0, 0, now())
        returning endpoint, delivery_id
    ),
    request as (
        insert into idempotent_webhook.kept_requests
            (endpoint, delivery_id, format, method, uri, headers, body)
        select endpoint, delivery_id, 1, 'POST', '/', '', '{}' from due
        returning 1
    )
    select count(*) from request";

fn answered(status: u16, outcome: &str) -> Attempt {
    Attempt::Answered {
        status,
        outcome: outcome.into(),
    }
}

/// Opens a connection that stays open, and sends only the start of a request on it.
async fn fall_silent(address: SocketAddr, begin: &[u8]) -> TcpStream {
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(begin).await.unwrap();
    connection
}

/// A signed request without the second half of its body.
fn half_of_a_delivery() -> Vec<u8> {
    let delivery = TestDelivery::new(&presets::github(Secret::new(SECRET).unwrap())).id("half");
    let (head, body) = delivery.request::<axum::body::Bytes>().into_parts();
    let mut begin = format!(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n",
        body.len()
    )
    .into_bytes();
    for (name, value) in &head.headers {
        begin.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    begin.extend(b"\r\n");
    begin.extend(&body[..body.len() / 2]);
    begin
}

/// Waits until the process refuses connections, which shows that it has seen the signal.
async fn until_refused(address: SocketAddr) {
    while TcpStream::connect(address).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A running process of the application.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
}

impl Running {
    async fn start(database: &str, hangs: bool) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        if hangs {
            command.env(HANGS, "yes");
        }
        let mut child = command
            .env(DATABASE, database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.next_line().await.unwrap().expect("it serves");
        Self {
            child,
            lines,
            address: address.parse().unwrap(),
        }
    }

    async fn until(&mut self, line: &str) {
        while self.lines.next_line().await.unwrap().expect("it runs") != line {}
    }

    async fn ask_to_stop(&self) {
        let id = self.child.id().unwrap().to_string();
        let kill = Command::new("kill").args(["-TERM", &id]).status();
        assert!(kill.await.unwrap().success());
    }

    /// Waits until the process has exited by itself, and returns what it has printed.
    async fn ended(mut self) -> String {
        // Waiting would close the standard input of the process, which would take that for the end of its parent.
        let _input = self.child.stdin.take();
        let output = timeout(LIMIT, self.child.wait_with_output());
        let output = output.await.expect("it ends by itself").unwrap();
        assert!(output.status.success(), "{}", output.status);
        String::from_utf8(output.stderr).unwrap()
    }
}
