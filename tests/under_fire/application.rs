//! The application that the tests disturb, in a process of its own.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use futures_util::future::join_all;
use idempotent_webhook::reconcile::ReconcileTask;
use idempotent_webhook::recovery::{RecoveryTask, Rehearsal, RehearsedType};
use idempotent_webhook::retention::RetentionTask;
use idempotent_webhook::{
    DedupeTx, Delivery, DeliveryId, Events, HandlerError, IdempotentWebhook, Keep, LateClaim,
    Provider, Reconcile, Recovery, Retention, Secret, presets,
};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, PgPool};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::history::{Appender, Event};
use crate::operator;

/// Names the database, and makes this program run as the application.
pub const DATABASE: &str = "UNDER_FIRE_DATABASE";
/// The file to which the process appends which handlers are called.
pub const HISTORY: &str = "UNDER_FIRE_HISTORY";
/// The size of the pool.
pub const CONNECTIONS: &str = "UNDER_FIRE_CONNECTIONS";
/// Whether the process runs recovery and counts its activity. Both would disturb the tests that count the messages of
/// the application.
pub const RECOVERS: &str = "UNDER_FIRE_RECOVERS";
/// Whether the process is the job of a deploy. Such a process rehearses the kept deliveries each time that a test
/// requests it, and recovers nothing.
pub const REHEARSES: &str = "UNDER_FIRE_REHEARSES";
/// Names the providers whose lists the process reconciles, and the addresses of their APIs: `stripe=127.0.0.1:1`.
pub const RECONCILES: &str = "UNDER_FIRE_RECONCILES";
/// How old an event must be to be reconciled, in seconds.
pub const GRACE: &str = "UNDER_FIRE_GRACE";
/// Whether the process deletes what providers do not send again.
pub const PRUNES: &str = "UNDER_FIRE_PRUNES";
/// Whether the process is an old version, which lacks a handler of the new version.
pub const IS_OLD: &str = "UNDER_FIRE_IS_OLD";
/// The file to which the hooks append their reports. If this is not set, the process has no hooks.
pub const TOLD: &str = "UNDER_FIRE_TOLD";
/// How long a hook takes after it has appended its report, in milliseconds.
pub const HOOK_TIME: &str = "UNDER_FIRE_HOOK_TIME";
/// How long the process waits for Postgres, in milliseconds.
pub const PATIENCE: &str = "UNDER_FIRE_PATIENCE";

pub const SECRET: &str = "under fire";

/// How long a handler may run.
pub const HANDLER_TIME: Duration = Duration::from_secs(3);

/// For how long a provider sends a delivery again. Older deliveries may be deleted.
pub const WINDOW: Duration = Duration::from_secs(20);

/// Like `WINDOW`, for providers whose lists are reconciled. Reconciliation takes longer.
const LISTED_WINDOW: Duration = Duration::from_secs(120);

pub fn is_wanted() -> bool {
    std::env::var_os(DATABASE).is_some()
}

/// The parts that must stop before the process does.
#[derive(Default)]
struct Background {
    layers: Vec<IdempotentWebhook>,
    lists: Vec<ReconcileTask>,
    recoveries: Vec<RecoveryTask>,
    retention: Option<RetentionTask>,
}

impl Background {
    /// Stops as in the guide, but without a time limit for the whole shutdown: it waits for running attempts.
    async fn stop(self, server: JoinHandle<io::Result<()>>) {
        let lists = join_all(self.lists.into_iter().map(ReconcileTask::stop));
        let recoveries = join_all(self.recoveries.into_iter().map(RecoveryTask::stop));
        let retention = async {
            if let Some(retention) = self.retention {
                retention.stop().await;
            }
        };
        let server = timeout(Duration::from_secs(10), server);
        let _ = tokio::join!(server, lists, recoveries, retention);
        for layer in self.layers {
            layer.drained().await;
        }
    }
}

fn github() -> Provider {
    presets::github(Secret::new(SECRET).unwrap()).redelivery_window(WINDOW)
}

/// Serves until the process is asked to stop or is killed, or until its parent is gone.
pub async fn run() {
    let options: PgConnectOptions = std::env::var(DATABASE).unwrap().parse().unwrap();
    let connections = std::env::var(CONNECTIONS).unwrap().parse().unwrap();
    let patience = std::env::var(PATIENCE).unwrap().parse().unwrap();
    let pool = || {
        PgPoolOptions::new()
            .max_connections(connections)
            .connect_lazy_with(options.clone().disable_statement_logging())
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let calls = Calls {
        history: Arc::new(Appender::open(Path::new(&std::env::var(HISTORY).unwrap()))),
        process: listener.local_addr().unwrap(),
    };
    let recovers = std::env::var_os(RECOVERS).is_some();
    let mut background = Background::default();
    // Some tests cut the connection before each message of an attempt. In these tests, no other message may come in
    // between, so the layer counts no activity.
    let counted = |layer: IdempotentWebhook| match recovers {
        true => layer,
        false => layer.without_activity(),
    };
    let records = || Keep::failed(&Recovery::new(pool())).body_limit(0);
    let layer = counted(IdempotentWebhook::new(pool(), "fire", github()))
        .only([WANTED])
        .database_timeout(Duration::from_millis(patience))
        .handler_timeout(HANDLER_TIME)
        .in_flight_timeout(Duration::from_secs(5))
        .keep(records());
    let late = counted(IdempotentWebhook::new(pool(), "late-alone", github()))
        .late_claim()
        .database_timeout(Duration::from_millis(patience))
        .handler_timeout(HANDLER_TIME)
        .in_flight_timeout(Duration::from_secs(5))
        .keep(records());
    background.layers = vec![layer.clone(), late.clone()];
    let router = Router::new()
        .route("/", post(handle).layer(layer))
        .route(LATE, post(handle_late).layer(late))
        .route(
            "/by-hand",
            post(by_hand).with_state((pool(), github(), calls.clone())),
        )
        .with_state(calls.clone());

    let router = match recovers {
        true => recovering(router, &calls, pool(), patience, &mut background),
        false => router,
    };
    let router = match std::env::var_os(REHEARSES) {
        Some(_) => rehearsing(&calls, pool(), patience, &mut background),
        None => router,
    };
    let router = match std::env::var(RECONCILES) {
        Ok(apis) => reconciling(router, calls, &apis, pool(), patience, &mut background),
        Err(_) => router,
    };
    if std::env::var_os(PRUNES).is_some() {
        let retention = Retention::new(pool(), WINDOW).every(Duration::from_secs(2));
        background.retention = Some(retention.spawn());
    }

    let server_stopped = asked_to_stop();
    let stopped = asked_to_stop();
    println!("{}", listener.local_addr().unwrap());
    let server = axum::serve(listener, router).with_graceful_shutdown(server_stopped);
    let server = tokio::spawn(async { server.await });
    let served = async {
        stopped.await;
        background.stop(server).await;
    };
    let mut parent = tokio::io::stdin();
    tokio::select! {
        // The runtime would wait for the thread that reads standard input.
        () = served => std::process::exit(0),
        // Standard input is a pipe from the parent.
        _ = parent.read_u8() => {}
    }
}

/// Starts to listen for SIGTERM now, and resolves when it arrives.
fn asked_to_stop() -> impl Future<Output = ()> {
    let mut terminate = signal(SignalKind::terminate()).unwrap();
    async move {
        terminate.recv().await;
    }
}

/// Appends to the history that a handler of this process is called. The line survives the process, and a rollback of
/// the delivery.
#[derive(Clone)]
struct Calls {
    history: Arc<Appender>,
    process: SocketAddr,
}

impl Calls {
    fn note(&self, id: &DeliveryId) {
        let process = self.process.to_string();
        self.history.append(id.as_str(), Event::Begun { process });
    }
}

/// The hooks, if the process has any.
struct Hooks {
    file: File,
    time: Duration,
}

impl Hooks {
    fn of_environment() -> Option<Self> {
        let file = std::env::var_os(TOLD)?;
        let time = std::env::var(HOOK_TIME).unwrap().parse().unwrap();
        Some(Self {
            file: OpenOptions::new().append(true).open(file).unwrap(),
            time: Duration::from_millis(time),
        })
    }

    /// Appends a report to the file in one write, so that concurrent reports do not mix.
    fn tell(&self, what: &str) {
        (&self.file)
            .write_all(format!("{what}\n").as_bytes())
            .unwrap();
        std::thread::sleep(self.time);
    }
}

/// Adds routes whose deliveries are kept, and recovery.
fn recovering(
    router: Router,
    calls: &Calls,
    pool: PgPool,
    patience: u64,
    background: &mut Background,
) -> Router {
    let recovery = Recovery::new(pool.clone()).poll_interval(Duration::from_millis(500));
    let recovery = match Hooks::of_environment() {
        Some(hooks) => recovery.on_change(move |change| {
            let word = if change.is_over { "over" } else { "begun" };
            hooks.tell(&format!("{}: {} {word}", change.endpoint, change.problem));
        }),
        None => recovery,
    };
    let routes = recoverable(&pool, &recovery, patience, &mut background.layers);
    let router = router.merge(routes.with_state(calls.clone()));
    background.recoveries.push(recovery.spawn(router.clone()));
    router
}

/// The route of the job. The router that it rehearses has the routes whose deliveries are kept.
fn rehearsing(calls: &Calls, pool: PgPool, patience: u64, background: &mut Background) -> Router {
    let recovery = Recovery::new(pool.clone());
    let routes = recoverable(&pool, &recovery, patience, &mut background.layers);
    let routes = routes.with_state(calls.clone());
    Router::new().route(REHEARSE, post(rehearse).with_state((recovery, routes)))
}

/// The route at which the job rehearses.
pub const REHEARSE: &str = "/rehearse";

/// Answers how many deliveries were rehearsed, and how many of them would be processed.
async fn rehearse(State((recovery, routes)): State<(Recovery, Router)>) -> String {
    let report = recovery.rehearse(&routes, &Rehearsal::new()).await.unwrap();
    let well = |of: &RehearsedType| of.processed_again + of.processed_now;
    let well: usize = report.types.iter().map(well).sum();
    format!("{} {well}", report.rehearsed())
}

/// Adds a route for each provider whose list is reconciled.
fn reconciling(
    mut router: Router,
    calls: Calls,
    apis: &str,
    pool: PgPool,
    patience: u64,
    background: &mut Background,
) -> Router {
    let grace = std::env::var(GRACE).unwrap().parse().unwrap();
    let recovery = Recovery::new(pool.clone())
        .concurrency(5)
        .poll_interval(Duration::from_millis(500));
    let mut lists = Vec::new();
    for api in apis.split(',') {
        let (name, address) = api.split_once('=').unwrap();
        let provider = provider_apis::preset(name).redelivery_window(LISTED_WINDOW);
        let layer = IdempotentWebhook::new(pool.clone(), name, provider)
            .database_timeout(Duration::from_millis(patience))
            .keep(Keep::all(&recovery).retry_delays([Duration::from_millis(300); RETRIES]));
        let path = format!("/{name}");
        let list = provider_apis::source(name, address.parse().unwrap(), provider_apis::KEY);
        let reconcile = Reconcile::new(&layer, list, &path).unwrap();
        lists.push(
            reconcile
                .since(SystemTime::UNIX_EPOCH)
                .look_back(Duration::from_secs(100 * 24 * 60 * 60))
                .grace(Duration::from_secs(grace))
                .every(Duration::from_secs(1)),
        );
        background.layers.push(layer.clone());
        let handler = post(handle_listed).with_state(calls.clone());
        router = router.route(&path, handler.layer(layer));
    }
    background.recoveries.push(recovery.spawn(router.clone()));
    background.lists = lists.into_iter().map(Reconcile::spawn).collect();
    router
}

/// Leaves one effect, slowly enough for a test to kill the process before the handler finishes.
async fn handle_listed(
    State(calls): State<Calls>,
    mut tx: DedupeTx,
    delivery: Delivery,
) -> Result<StatusCode, HandlerError> {
    calls.note(delivery.id());
    work(&mut tx, delivery.id().as_str()).await?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    Ok(StatusCode::OK)
}

/// How often a delivery is run again.
pub const RETRIES: usize = 8;

/// The only event type that the endpoint at `/` does not ignore.
pub const WANTED: &str = "push";

/// A route whose handler makes a late claim, and whose deliveries are not kept.
pub const LATE: &str = "/late-alone";

/// Whether deliveries to this path are kept before their handler is called.
pub fn keeps_first(path: &str) -> bool {
    !matches!(
        path,
        "/" | LATE | "/by-hand" | "/kept" | "/acknowledged" | "/late-kept"
    )
}

/// Routes whose deliveries are kept, each in its own way.
fn recoverable(
    pool: &PgPool,
    recovery: &Recovery,
    patience: u64,
    layers: &mut Vec<IdempotentWebhook>,
) -> Router<Calls> {
    let operate = post(operator::operate).with_state(pool.clone());
    let mut router = Router::new().route(operator::ROUTE, operate);
    for (name, keep) in [
        ("kept", Keep::failed(recovery)),
        ("acknowledged", Keep::failed(recovery).acknowledge()),
        ("all", Keep::all(recovery)),
        ("accepted", Keep::accepted(recovery)),
        ("late-kept", Keep::failed(recovery)),
        ("late", Keep::all(recovery)),
        (ARCHIVED, Keep::all(recovery).processed_for(ARCHIVED_FOR)),
    ] {
        let keep = keep
            .retry_delays([Duration::from_millis(300); RETRIES])
            .breaker(u32::MAX, Duration::ZERO);
        let keep = match Hooks::of_environment() {
            Some(hooks) => keep.on_dead(move |delivery, _| {
                hooks.tell(&format!(
                    "{}: {} is dead",
                    delivery.endpoint(),
                    delivery.id()
                ));
            }),
            None => keep,
        };
        let layer = IdempotentWebhook::new(pool.clone(), name, github())
            .database_timeout(Duration::from_millis(patience))
            .handler_timeout(Duration::from_secs(1))
            .in_flight_timeout(Duration::from_secs(1))
            .keep(keep)
            .rehearsable();
        layers.push(layer.clone());
        let route = match name.starts_with("late") {
            true => post(handle_kept_late).layer(layer.late_claim()),
            false => post(handle_kept).layer(layer),
        };
        router = router.route(&format!("/{name}"), route);
    }
    let keep = Keep::accepted(recovery)
        .retry_delays([Duration::from_millis(300); RETRIES_OVER_VERSIONS])
        .breaker(u32::MAX, Duration::ZERO);
    let layer = IdempotentWebhook::new(pool.clone(), VERSIONS, github())
        .database_timeout(Duration::from_millis(patience))
        .keep(keep);
    layers.push(layer.clone());
    let wanted = match std::env::var_os(IS_OLD) {
        Some(_) => "release",
        None => WANTED,
    };
    let events = Events::new().on(wanted, handle_kept).ignore_others();
    router.route(&format!("/{VERSIONS}"), post(events.layer(layer)))
}

/// The endpoint whose handlers differ between versions.
pub const VERSIONS: &str = "versions";

/// More retries than a process of another version uses up before it is replaced.
const RETRIES_OVER_VERSIONS: usize = 200;

/// The endpoint whose processed deliveries stay.
pub const ARCHIVED: &str = "archived";

/// For how long processed deliveries stay, if retention runs.
const ARCHIVED_FOR: Duration = Duration::from_secs(10);

#[derive(serde::Deserialize)]
struct Kept {
    /// What the handler does at each attempt, starting with the first attempt.
    behaviours: Vec<String>,
}

/// Leaves one effect, and then does what the delivery says for this attempt.
async fn handle_kept(
    State(calls): State<Calls>,
    mut tx: DedupeTx,
    delivery: Delivery,
    axum::Json(kept): axum::Json<Kept>,
) -> Result<StatusCode, HandlerError> {
    calls.note(delivery.id());
    work(&mut tx, delivery.id().as_str()).await?;
    kept.behave(&delivery).await
}

impl Kept {
    async fn behave(&self, delivery: &Delivery) -> Result<StatusCode, HandlerError> {
        let before = usize::try_from(delivery.attempt() - 1)?;
        match self.behaviours.get(before).map(String::as_str) {
            Some("fail") => Err(HandlerError::new("as the delivery says")),
            Some("panic") => panic!("as the delivery says"),
            Some("hang") => std::future::pending().await,
            Some("abort") => std::process::abort(),
            _ => Ok(StatusCode::OK),
        }
    }
}

/// Does what the delivery says for this attempt, before or after its claim, and leaves one effect.
async fn handle_kept_late(
    State(calls): State<Calls>,
    claim: LateClaim,
    delivery: Delivery,
    axum::Json(kept): axum::Json<Kept>,
) -> Result<StatusCode, HandlerError> {
    calls.note(delivery.id());
    let is_before = fastrand::bool();
    if is_before {
        kept.behave(&delivery).await?;
    }
    let mut tx = claim.begin().await?;
    work(&mut tx, delivery.id().as_str()).await?;
    match is_before {
        true => Ok(StatusCode::OK),
        false => kept.behave(&delivery).await,
    }
}

/// Does what the request says, before or after its claim, and leaves one effect.
async fn handle_late(
    State(calls): State<Calls>,
    headers: HeaderMap,
    claim: LateClaim,
    delivery: Delivery,
) -> Result<StatusCode, HandlerError> {
    let behave = async || {
        let behaved = behave(&headers).await;
        behaved.map_err(|status| HandlerError::new("as the request says").status(status))
    };
    calls.note(delivery.id());
    let is_before = fastrand::bool();
    if is_before {
        behave().await?;
    }
    let mut tx = claim.begin().await?;
    work(&mut tx, delivery.id().as_str()).await?;
    match is_before {
        true => Ok(StatusCode::OK),
        false => behave().await,
    }
}

/// Leaves one effect, and then does what the request says.
async fn handle(
    State(calls): State<Calls>,
    headers: HeaderMap,
    mut tx: DedupeTx,
    delivery: Delivery,
) -> Result<StatusCode, StatusCode> {
    calls.note(delivery.id());
    work(&mut tx, delivery.id().as_str())
        .await
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    behave(&headers).await
}

async fn work(connection: &mut sqlx::PgConnection, id: &str) -> sqlx::Result<()> {
    sqlx::query("insert into effects (delivery_id) values ($1)")
        .bind(id)
        .execute(connection)
        .await?;
    Ok(())
}

async fn behave(headers: &HeaderMap) -> Result<StatusCode, StatusCode> {
    let behaviour = headers
        .get("x-behaviour")
        .map_or("", |behaviour| behaviour.to_str().unwrap());
    match behaviour.split_once(' ') {
        Some(("sleep", millis)) => {
            tokio::time::sleep(Duration::from_millis(millis.parse().unwrap())).await;
        }
        _ if behaviour == "fail" => return Err(StatusCode::INTERNAL_SERVER_ERROR),
        _ if behaviour == "panic" => panic!("as the request says"),
        _ if behaviour == "hang" => std::future::pending().await,
        _ => {}
    }
    Ok(StatusCode::OK)
}

/// The handler that a careful engineer writes without the layer: verify, begin, insert on conflict do nothing, work,
/// commit.
async fn by_hand(
    State((pool, provider, calls)): State<(PgPool, Provider, Calls)>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<StatusCode, StatusCode> {
    let (mut head, ()) = axum::http::Request::new(()).into_parts();
    head.headers = headers;
    let verified = provider
        .verify(&head, &body, std::time::SystemTime::now())
        .map_err(|_| StatusCode::UNAUTHORIZED)?;
    let id = verified.delivery().ok_or(StatusCode::BAD_REQUEST)?.id();
    calls.note(id);
    let unavailable = |_| StatusCode::SERVICE_UNAVAILABLE;

    let mut tx = pool.begin().await.map_err(unavailable)?;
    let claimed = sqlx::query(
        "insert into idempotent_webhook.deliveries (endpoint, delivery_id)
         values ('hand-written', $1)
         on conflict do nothing",
    )
    .bind(id)
    .execute(&mut *tx)
    .await
    .map_err(unavailable)?;
    if claimed.rows_affected() == 0 {
        return Ok(StatusCode::OK);
    }
    work(&mut tx, id.as_str()).await.map_err(unavailable)?;
    let status = behave(&head.headers).await?;
    tx.commit().await.map_err(unavailable)?;
    Ok(status)
}
