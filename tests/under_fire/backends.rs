//! Postgres may continue to work on a delivery long after the layer has given it up. The application must not hold many
//! more backends than its pool has connections. Once Postgres is well again, the application recovers without anybody's
//! help.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::routing::post;
use futures_util::future::join_all;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Keep, Provider, Recovery, Secret, presets,
};
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection, Executor};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tower::ServiceExt;

use crate::Length;
use crate::application::SECRET;
use crate::disk::Disk;
use crate::server::Server;

/// A fault of Postgres, or of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// Another session has locked the table that handlers write to.
    LockedTable,
    /// A statement of a handler takes a minute.
    SlowStatement,
    /// Commits wait for a standby that is not there.
    MissingStandby,
    /// No sync finishes.
    FrozenDisk,
}

use Trouble::{FrozenDisk, LockedTable, MissingStandby, SlowStatement};

impl Trouble {
    /// Whether the trouble is about commits. Nothing may cancel a commit, so a commit that was given up ends only when
    /// the trouble ends.
    fn is_of_commits(self) -> bool {
        matches!(self, MissingStandby | FrozenDisk)
    }
}

const POOL: u32 = 10;
const SENDERS: u64 = 8;
const HANDLER_TIMEOUT: Duration = Duration::from_secs(2);

pub async fn run(length: Length) {
    let time = match length {
        Length::Short => Duration::from_secs(15),
        Length::Long => Duration::from_secs(40),
    };
    println!("\nbackends: {SENDERS} senders, a pool of {POOL} connections, {time:?} of trouble\n");
    let mut troubles = vec![LockedTable, SlowStatement, MissingStandby];
    // The freeze uses a library that the linker of Linux loads first.
    if cfg!(target_os = "linux") {
        troubles.push(FrozenDisk);
    }
    join_all(troubles.into_iter().map(|trouble| holds(trouble, time))).await;
}

async fn holds(trouble: Trouble, time: Duration) {
    let disk = Disk::new();
    let server = match trouble {
        FrozenDisk => Server::start_with(disk.environment()).await,
        _ => Server::start().await,
    };
    let is_slow = Arc::new(AtomicBool::new(false));
    let sending = Sending::start(&application(&server, is_slow.clone()).await);
    sending.goes_on().await;

    let mut other_session = server.connect().await;
    match trouble {
        LockedTable => {
            let lock = sqlx::raw_sql("begin; lock table effects in access exclusive mode");
            other_session.execute(lock).await.unwrap();
        }
        SlowStatement => is_slow.store(true, Ordering::Relaxed),
        MissingStandby => server.wait_for_standby("nobody").await,
        FrozenDisk => disk.freeze(),
    }
    let began_at = Instant::now();
    let mut seen = Seen::default();
    let mut visible = None;
    while began_at.elapsed() < time {
        seen.look(&server).await;
        // By now, the commits that were under way when the trouble started have finished.
        if trouble == MissingStandby && began_at.elapsed() > time / 4 {
            let now = server.count("select count(*) from effects").await;
            let before = *visible.get_or_insert(now);
            assert_eq!(now, before, "visible, but not replicated");
        }
        sleep(Duration::from_millis(50)).await;
    }
    let refused = sending.refused.load(Ordering::Relaxed);
    match trouble {
        LockedTable => drop(other_session),
        SlowStatement => is_slow.store(false, Ordering::Relaxed),
        MissingStandby => server.wait_for_standby("").await,
        FrozenDisk => disk.thaw(),
    }

    sending.goes_on().await;
    seen.look(&server).await;
    sending.stop().await;
    println!(
        "{trouble:?}: at most {} backends; a handler's statement ran for at most {:.1} s; {refused} answers of 503",
        seen.backends, seen.longest
    );
    assert!(seen.backends <= i64::from(POOL) + 4, "{trouble:?}");
    if trouble.is_of_commits() {
        // If deliveries had to wait for a connection, each would take seconds.
        assert!(refused > SENDERS * time.as_secs(), "{trouble:?}");
    } else {
        // If the layer did not cancel the statement, it would run as long as the trouble.
        assert!(seen.longest < time.as_secs_f64() / 2.0, "{trouble:?}");
    }
    assert_eq!(server.left_in_transaction().await, 0, "{trouble:?}");
    assert_eq!(
        server.count(WRONG).await,
        0,
        "{trouble:?}: each has one effect"
    );
}

/// Deliveries that were processed without their effect or with several effects, and effects without a processed
/// delivery.
const WRONG: &str = "
    select count(*)
    from (select delivery_id, count(*) as times from effects group by delivery_id) as effect
    full join idempotent_webhook.deliveries as claim using (delivery_id)
    where effect.times is distinct from 1 or claim.delivery_id is null";

async fn application(server: &Server, is_slow: Arc<AtomicBool>) -> Router {
    let pool = PgPoolOptions::new()
        .max_connections(POOL)
        .connect(&server.url())
        .await
        .unwrap();
    let recovery = Recovery::new(pool.clone());
    let layer = IdempotentWebhook::new(pool, "fire", provider())
        .handler_timeout(HANDLER_TIMEOUT)
        .keep(Keep::failed(&recovery).retry_delays([Duration::from_millis(300); 200]));
    let handler =
        async move |tx, delivery| handle(tx, delivery, is_slow.load(Ordering::Relaxed)).await;
    let router = Router::new().route("/", post(handler).layer(layer));
    // The recovery runs until the test ends.
    std::mem::forget(recovery.spawn(router.clone()));
    router
}

fn provider() -> Provider {
    presets::github(Secret::new(SECRET).unwrap())
}

/// Leaves one effect.
async fn handle(
    mut tx: DedupeTx,
    delivery: Delivery,
    is_slow: bool,
) -> Result<StatusCode, HandlerError> {
    let time = if is_slow { 60.0 } else { 0.0 };
    sqlx::query("insert into effects (delivery_id) select $1 from pg_sleep($2)")
        .bind(delivery.id().as_str())
        .bind(time)
        .execute(&mut *tx)
        .await?;
    Ok(StatusCode::OK)
}

/// What was observed in Postgres.
#[derive(Default)]
struct Seen {
    /// The highest number of backends of the application.
    backends: i64,
    /// The longest time that a statement of a handler has run, in seconds.
    longest: f64,
}

impl Seen {
    async fn look(&mut self, server: &Server) {
        let mut connection = server.connect().await;
        // The other session counts as one of the backends.
        let look = "
            select
                count(*) - 1,
                coalesce(extract(epoch from max(now() - query_start) filter (
                    where state = 'active' and query like 'insert into effects%'
                )), 0)::float8
            from pg_stat_activity
            where backend_type = 'client backend' and pid <> pg_backend_pid()";
        let (backends, longest): (i64, f64) = sqlx::query_as(look)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        self.backends = self.backends.max(backends);
        self.longest = self.longest.max(longest);
        connection.close().await.unwrap();
    }
}

/// Senders, each with one delivery under way.
struct Sending {
    processed: Arc<AtomicU64>,
    refused: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    senders: Vec<JoinHandle<()>>,
}

impl Sending {
    fn start(router: &Router) -> Self {
        let (processed, refused, is_over) =
            <(Arc<AtomicU64>, Arc<AtomicU64>, Arc<AtomicBool>)>::default();
        let sender = |sender| {
            let (router, processed) = (router.clone(), processed.clone());
            let (refused, is_over) = (refused.clone(), is_over.clone());
            tokio::spawn(async move {
                for number in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let delivery = TestDelivery::new(&provider()).id(format!("{sender}-{number}"));
                    let request = delivery.request::<Body>();
                    match router.clone().oneshot(request).await.unwrap().status() {
                        StatusCode::OK => processed.fetch_add(1, Ordering::Relaxed),
                        StatusCode::SERVICE_UNAVAILABLE => refused.fetch_add(1, Ordering::Relaxed),
                        other => panic!("{other}"),
                    };
                    sleep(Duration::from_millis(50)).await;
                }
            })
        };
        Self {
            senders: (0..SENDERS).map(sender).collect(),
            processed,
            refused,
            is_over,
        }
    }

    /// Waits until a few more deliveries of each sender are processed.
    async fn goes_on(&self) {
        let enough = self.processed.load(Ordering::Relaxed) + 5 * SENDERS;
        let all = async {
            while self.processed.load(Ordering::Relaxed) < enough {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(60), all)
            .await
            .expect("deliveries are processed");
    }

    async fn stop(self) {
        self.is_over.store(true, Ordering::Relaxed);
        for sender in self.senders {
            sender.await.unwrap();
        }
    }
}
