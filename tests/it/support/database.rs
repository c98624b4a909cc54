use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, PgPool, Postgres, Transaction};
use throwaway_postgres::{Durability, ThrowawayPostgres};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::{OnceCell, OwnedMutexGuard};

use super::citus;
use super::rows::Rows;

/// The database of one test, on the server that all tests share.
pub struct Database {
    pub name: String,
    pub pool: PgPool,
    options: PgConnectOptions,
    /// One connection that looks at what a test has left behind. It does not come from the test's pool, because a test
    /// may exhaust that pool on purpose. Tests cannot share the connection, because each test has its own runtime.
    observer: PgPool,
    /// The lock that a test holds while it uses the Citus database.
    turn: Option<OwnedMutexGuard<()>>,
}

static SERVER: OnceCell<ThrowawayPostgres> = OnceCell::const_new();
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// The template of most tests' databases, with the crate's tables, and `effects` for the handlers to write to.
const TEMPLATE: &str = "migrated";

async fn server() -> &'static ThrowawayPostgres {
    SERVER
        .get_or_init(async || {
            let server = ThrowawayPostgres::start(Durability::Lossy)
                .await
                .unwrap_or_else(|error| panic!("{error}"));
            make_template(&server).await;
            server
        })
        .await
}

async fn make_template(server: &ThrowawayPostgres) {
    create(server, TEMPLATE, "template1").await;
    let pool = PgPool::connect_lazy_with(server.options(TEMPLATE));
    fill(&pool).await;
    // Postgres copies a database only while nobody is connected to it.
    pool.close().await;
}

async fn fill(pool: &PgPool) {
    idempotent_webhook::migrate(pool).await.unwrap();
    pool.execute("create table effects (delivery_id text)")
        .await
        .unwrap();
}

async fn create(server: &ThrowawayPostgres, name: &str, template: &str) {
    let mut admin = server.options("postgres").connect().await.unwrap();
    admin
        .execute(AssertSqlSafe(format!(
            "create database {name} template {template} strategy file_copy"
        )))
        .await
        .unwrap();
}

/// The names of databases for a thread that removes them, because `drop` cannot wait until a database is removed.
static REMOVER: OnceLock<Sender<String>> = OnceLock::new();

/// Drops the database of a finished test, because each database takes 8 MB.
impl Drop for Database {
    fn drop(&mut self) {
        // All tests share the Citus database.
        if self.turn.is_some() {
            return;
        }
        let options = self.options.clone().database("postgres");
        let remover = REMOVER.get_or_init(|| {
            let (remover, names) = mpsc::channel();
            std::thread::spawn(move || remove(&options, names));
            remover
        });
        // If there is no remover, the database ends with the server.
        let _ = remover.send(self.name.clone());
    }
}

fn remove(options: &PgConnectOptions, names: Receiver<String>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    for name in names {
        runtime.block_on(async {
            // If the server is busy, the database stays until the server ends.
            if let Ok(mut admin) = options.connect().await {
                let sql = format!("drop database if exists {name} with (force)");
                admin.execute(AssertSqlSafe(sql)).await.ok();
            }
        });
    }
}

impl Database {
    /// A database with the crate's tables, and `effects` for the handlers to write to.
    pub async fn new() -> Self {
        Self::copied_from(TEMPLATE).await
    }

    /// An empty database.
    pub async fn empty() -> Self {
        Self::copied_from("template1").await
    }

    async fn copied_from(template: &str) -> Self {
        if let Some(options) = citus::options() {
            let turn = citus::turn().await;
            citus::empty(&options).await;
            let database = Self::with(options, Some(turn));
            if template == TEMPLATE {
                fill(&database.pool).await;
                citus::distribute(&database.pool).await;
            }
            return database;
        }
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let server = server().await;
        create(server, &name, template).await;
        Self::with(server.options(&name), None)
    }

    /// A copy made by `pg_dump` and `pg_restore`.
    pub async fn restored(&self) -> Self {
        let bin = throwaway_postgres::find_or_install().unwrap();
        let copy = Self::copied_from("template1").await;
        let socket = self.options.get_socket().unwrap().display().to_string();
        let program = |name: &str| {
            let mut program = std::process::Command::new(bin.join(name));
            program.args(["-h", &socket, "-U", "postgres"]);
            program
        };
        let mut dump = program("pg_dump");
        let dump = dump.args(["-Fc", &self.name]).output().unwrap();
        assert!(dump.status.success(), "{dump:?}");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), dump.stdout).unwrap();
        let mut restore = program("pg_restore");
        let restore = restore.args(["-d", &copy.name]).arg(file.path());
        let restored = restore.output().unwrap();
        assert!(restored.status.success(), "{restored:?}");
        copy
    }

    fn with(options: PgConnectOptions, turn: Option<OwnedMutexGuard<()>>) -> Self {
        Self {
            name: options.get_database().unwrap_or_default().to_owned(),
            pool: Self::pool(options.clone(), 5),
            observer: Self::pool(options.clone(), 1),
            options,
            turn,
        }
    }

    fn pool(options: PgConnectOptions, connections: u32) -> PgPool {
        PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(Duration::from_secs(20))
            .connect_lazy_with(options)
    }

    pub fn options(&self) -> PgConnectOptions {
        self.options.clone()
    }

    /// Another pool on the same database, as another process would have.
    pub async fn another_pool(&self, connections: u32) -> PgPool {
        Self::pool(self.options(), connections)
    }

    /// Options to connect over TCP. Over TCP, unlike over a Unix socket, a client that writes to a closed connection
    /// can still read what the server sent before it hung up.
    pub async fn options_over_tcp(&self) -> PgConnectOptions {
        self.options_through(async |mut client, mut server| {
            copy_bidirectional(&mut client, &mut server).await.ok();
        })
        .await
    }

    /// Options to connect over TCP, through this relay. With Citus, the options connect to the server itself, without
    /// the relay.
    pub async fn options_through<R>(
        &self,
        relay: impl Fn(TcpStream, UnixStream) -> R + Send + 'static,
    ) -> PgConnectOptions
    where
        R: Future<Output = ()> + Send + 'static,
    {
        let options = self.options();
        let Some(folder) = options.get_socket() else {
            return options;
        };
        let socket = folder.join(".s.PGSQL.5432");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let client = listener.accept().await.unwrap().0;
                let server = UnixStream::connect(&socket).await.unwrap();
                tokio::spawn(relay(client, server));
            }
        });
        PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(address.port())
            .ssl_mode(PgSslMode::Disable)
            .username("postgres")
            .database(&self.name)
    }

    pub async fn run(&self, sql: &str) {
        self.pool
            .execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned())))
            .await
            .unwrap();
    }

    /// Makes all claims this old, such as `9 days`.
    pub async fn age_claims(&self, age: &str) {
        self.run(&format!(
            "update idempotent_webhook.deliveries set received_at = now() - interval '{age}'"
        ))
        .await;
    }

    /// Registers for how long an endpoint's provider retries. A process that claims the endpoint's deliveries also
    /// registers this.
    pub async fn has_window(&self, endpoint: &str, window: &str) {
        self.run(&format!(
            "insert into idempotent_webhook.redelivery_windows (endpoint, redelivery_window)
             values ('{endpoint}', interval '{window}')"
        ))
        .await;
    }

    /// The result of a query that returns one number.
    pub async fn count(&self, sql: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned()))
            .fetch_one(&self.observer)
            .await
            .unwrap()
    }

    pub async fn rows(&self) -> Rows {
        Rows::count(&self.observer).await.unwrap()
    }

    /// How many connections to this database are in a transaction.
    pub async fn in_transaction(&self) -> i64 {
        self.count(
            "select count(*) from pg_stat_activity
             where datname = current_database() and pid <> pg_backend_pid()
                 and state in ('active', 'idle in transaction', 'idle in transaction (aborted)')
                 and backend_type = 'client backend'",
        )
        .await
    }

    /// How many connections to this database are in a transaction that has written something, as a claim does.
    /// Connections that are on their way back to the pool after a rollback do not count.
    pub async fn writing(&self) -> i64 {
        self.count(
            "select count(*) from pg_stat_activity
             where datname = current_database() and backend_xid is not null",
        )
        .await
    }

    /// Waits until a SQL condition holds.
    pub async fn until(&self, condition: &str) {
        for _ in 0..1000 {
            if self
                .count(&format!("select count(*) where {condition}"))
                .await
                == 1
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("timed out waiting until {condition}");
    }
}

/// Starts a transaction in another session that runs this SQL and stays open.
pub async fn another(database: &Database, sql: &str) -> Transaction<'static, Postgres> {
    let mut tx = database.another_pool(1).await.begin().await.unwrap();
    tx.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned())))
        .await
        .unwrap();
    tx
}

/// Asserts how many deliveries are claimed, and how many effects the handlers have left. It is a macro, so that a
/// failure is reported at the line of the test.
macro_rules! assert_rows {
    ($database:expr, claims: $claims:expr, effects: $effects:expr $(, $($message:tt)+)?) => {
        assert_eq!(
            $database.rows().await,
            $crate::support::Rows {
                claims: $claims,
                effects: $effects,
            }
            $(, $($message)+)?
        )
    };
}
pub(crate) use assert_rows;
