//! Guarantee G11: the layer works behind any version of PgBouncer in transaction mode.
//!
//!     cargo test --test it -- --ignored pgbouncer

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use idempotent_webhook::{IdempotentWebhook, presets, prune};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, PgPool};
use tempfile::TempDir;

use crate::support::{
    Database, answer, assert_rows, github, secret, send, send_copies, write_effect,
};

/// A PgBouncer process. It exits when the pipe to its standard input closes.
struct PgBouncer {
    folder: TempDir,
    keeper: Child,
}

impl PgBouncer {
    /// Starts PgBouncer in front of a database, with so few connections to it that clients must
    /// share them.
    async fn start(database: &Database, setting: &str) -> Self {
        let folder = TempDir::with_prefix("pgbouncer-").unwrap();
        let options = database.options();
        let postgres = options.get_socket().unwrap();
        let ini = folder.path().join("pgbouncer.ini");
        fs::write(
            &ini,
            format!(
                "[databases]\n\
                 {name} = host={postgres} user=postgres\n\
                 [pgbouncer]\n\
                 listen_addr =\n\
                 unix_socket_dir = {folder}\n\
                 auth_type = any\n\
                 pool_mode = transaction\n\
                 default_pool_size = 3\n\
                 ignore_startup_parameters = extra_float_digits\n\
                 server_reset_query = deallocate all\n\
                 server_reset_query_always = 1\n\
                 {setting}\n",
                name = database.name,
                postgres = postgres.display(),
                folder = folder.path().display(),
            ),
        )
        .unwrap();
        let mut keeper = Command::new("sh");
        keeper
            .args([
                "-c",
                "pgbouncer --quiet \"$0\" & read -r _; kill $!; wait $!",
            ])
            .arg(&ini)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Like Postgres, PgBouncer does not run as root: it runs as the user of Postgres.
        let owner = fs::metadata(postgres).unwrap();
        if fs::metadata(folder.path()).unwrap().uid() != owner.uid() {
            chown(folder.path(), Some(owner.uid()), Some(owner.gid())).unwrap();
            keeper.uid(owner.uid()).gid(owner.gid());
        }
        Self {
            keeper: keeper.spawn().unwrap(),
            folder,
        }
    }

    async fn pool(&self, database: &Database) -> PgPool {
        let pool = PgPoolOptions::new().max_connections(10);
        self.pool_with(database, pool).await
    }

    async fn pool_with(&self, database: &Database, pool: PgPoolOptions) -> PgPool {
        let options = PgConnectOptions::new()
            .socket(self.folder.path())
            .port(6432)
            .username("postgres")
            .database(&database.name)
            .statement_cache_capacity(0);
        for _ in 0..500 {
            if options.connect().await.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        pool.connect_with(options)
            .await
            .expect("pgbouncer is installed and starts")
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        self.keeper.wait().unwrap();
    }
}

#[tokio::test]
#[ignore = "needs the program pgbouncer"]
async fn g11_behind_pgbouncer_in_transaction_mode() {
    let database = Database::new().await;
    let pgbouncer = PgBouncer::start(&database, "").await;
    let mut routers = Vec::new();
    for _ in 0..3 {
        let pool = pgbouncer.pool(&database).await;
        let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()));
        routers.push(Router::new().route("/", post(write_effect).layer(layer)));
    }
    for round in 0..30 {
        let request = || github(&round.to_string(), "{}");
        let answers = send_copies(&routers, 12, request).await;
        assert!(answers.iter().all(|a| a.status == 200), "{answers:?}");
        let processed = answers.iter().filter(|a| a.outcome == "processed");
        assert_eq!(processed.count(), 1);
    }
    assert_rows!(database, claims: 30, effects: 30);

    let late = Database::new().await;
    let waiting = PgBouncer::start(&late, "").await;
    let pools = [waiting.pool(&late).await, waiting.pool(&late).await];
    crate::late_claim::works_on(&late, pools).await;
    let pools = [waiting.pool(&late).await, waiting.pool(&late).await];
    crate::claim::function::works_on(&late, pools).await;

    let recovered = Database::new().await;
    let recovering = PgBouncer::start(&recovered, "").await;
    crate::recovery::keep::works_on(&recovered, recovering.pool(&recovered).await).await;

    // This pool deallocates its prepared statements between two statements, so no statement may be
    // a transaction of its own.
    let accepting = Database::new().await;
    let deallocating = PgBouncer::start(&accepting, "").await;
    crate::recovery::accept::accepts_in_groups(deallocating.pool(&accepting).await).await;

    let operated = crate::dashboard::database_with_a_dead_delivery().await;
    let operating = PgBouncer::start(&operated, "").await;
    crate::dashboard::works_on(&operated, &operating.pool(&operated).await).await;

    database.age_claims("9 days").await;
    let pool = pgbouncer.pool(&database).await;
    let week = Duration::from_secs(7 * 24 * 60 * 60);
    assert_eq!(prune(&pool, week).await.unwrap().deliveries, 30);

    // PgBouncer ends idle connections with an error of its own. The error is read from the socket
    // when a delivery gets such a connection.
    let pgbouncer = PgBouncer::start(&database, "client_idle_timeout = 0.2").await;
    let unpinged = PgPoolOptions::new()
        .max_connections(5)
        .test_before_acquire(false);
    let pool = pgbouncer.pool_with(&database, unpinged).await;
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()));
    let router = Router::new().route("/", post(write_effect).layer(layer));
    let mut connections = Vec::new();
    for _ in 0..5 {
        connections.push(pool.acquire().await.unwrap());
    }
    drop(connections);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(pool.num_idle(), 5);
    let answered = send(&router, github("idle", "{}")).await;
    assert_eq!(answered, answer(200, "processed", "done"));
    assert_rows!(database, claims: 1, effects: 31);
}
