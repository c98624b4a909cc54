//! The Postgres server, and the applications in front of it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Executor, PgPool};
use throwaway_postgres::{Durability, ThrowawayPostgres};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

use crate::application::{DATABASE, VARIANT};

pub const PEERS: [&str; 2] = ["axum-sqlx-tx", "fraiseql-webhooks"];

pub struct Server {
    postgres: ThrowawayPostgres,
    /// The proxy that applications connect to. If `None`, they connect directly.
    proxy_url: Option<String>,
}

impl Server {
    pub async fn start() -> Self {
        let postgres = ThrowawayPostgres::start(Durability::Durable).await;
        let server = Self {
            postgres: postgres.unwrap_or_else(|error| panic!("{error}")),
            proxy_url: None,
        };
        let pool = PgPool::connect_with(server.options()).await.unwrap();
        idempotent_webhook::migrate(&pool).await.unwrap();
        pool.execute(sqlx::raw_sql(
            "create table effects (delivery_id text);
             create table by_hand (
                 delivery_id text collate \"C\" primary key,
                 event_type text,
                 received_at timestamptz not null default now()
             )",
        ))
        .await
        .unwrap();
        pool.close().await;
        server
    }

    /// Makes applications that start from now on connect to this proxy.
    pub fn put_behind(&mut self, proxy_url: &str) {
        self.proxy_url = Some(proxy_url.to_owned());
    }

    pub fn database(&self, name: &str) -> PgConnectOptions {
        self.postgres.options(name)
    }

    fn options(&self) -> PgConnectOptions {
        self.database("postgres")
    }

    pub fn url(&self) -> String {
        self.options().to_url_lossy().to_string()
    }

    pub fn url_for_applications(&self) -> String {
        self.proxy_url.clone().unwrap_or_else(|| self.url())
    }

    pub fn socket(&self) -> PathBuf {
        self.folder().join(".s.PGSQL.5432")
    }

    pub fn folder(&self) -> PathBuf {
        self.options().get_socket().unwrap().clone()
    }

    /// The process id of the parent of all server processes.
    pub fn process_id(&self) -> u32 {
        let file = std::fs::read_to_string(self.folder().join("data/postmaster.pid")).unwrap();
        file.lines().next().unwrap().parse().unwrap()
    }

    /// A program that comes with the server.
    pub fn program(&self, name: &str) -> PathBuf {
        let server = std::fs::read_link(format!("/proc/{}/exe", self.process_id())).unwrap();
        server.with_file_name(name)
    }
}

/// A child that ends when this process does.
pub fn child(program: &Path) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(program);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Builds the program with the contenders that have dependencies of their own, and returns its
/// path.
pub fn build_peers() -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--package", "peers"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(built.success(), "the peers did not build");
    // This benchmark is in `release/deps`.
    let release = std::env::current_exe().unwrap();
    release.ancestors().nth(2).unwrap().join("peers")
}

/// An application under test.
pub struct Contender {
    pub name: String,
    pub address: SocketAddr,
    process: Child,
}

impl Contender {
    pub async fn own(server: &Server, variant: &str) -> Self {
        let program = std::env::current_exe().unwrap();
        Self::start(&program, variant, &server.url_for_applications()).await
    }

    pub async fn peer(server: &Server, peers: &Path, name: &str) -> Self {
        Self::start(peers, name, &server.url_for_applications()).await
    }

    async fn start(program: &Path, variant: &str, database: &str) -> Self {
        let mut process = child(program)
            .env(VARIANT, variant)
            .env(DATABASE, database)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = lines.next_line().await.unwrap().expect("it serves");
        Self {
            name: variant.to_owned(),
            address: address.parse().unwrap(),
            process,
        }
    }

    pub fn process_id(&self) -> u32 {
        self.process.id().expect("it runs")
    }
}
