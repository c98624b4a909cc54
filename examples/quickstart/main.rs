//! Webhooks of four providers with a real Postgres, and a tour of the layer.
//!
//!     cargo run --example quickstart              the tour, then serve until Ctrl-C
//!     cargo run --example quickstart -- --exit    the tour only; fails if it went wrong
//!     cargo run --example quickstart -- --serve   serve only
//!
//! No server has to be running: the example uses `DATABASE_URL` if that is set, and otherwise
//! starts a PostgreSQL server.

mod application;
mod recovery;
mod senders;
mod tour;

use std::error::Error;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use application::Application;
use idempotent_webhook::Recovery;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use throwaway_postgres::{Durability, ThrowawayPostgres};
use tokio::net::TcpListener;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    TourThenServe,
    TourOnly,
    ServeOnly,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mode = match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        [] => Mode::TourThenServe,
        ["--exit"] => Mode::TourOnly,
        ["--serve"] => Mode::ServeOnly,
        _ => {
            eprintln!("usage: cargo run --example quickstart [-- --exit | --serve]");
            return ExitCode::from(2);
        }
    };
    match run(mode).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether everything in the tour went as expected.
async fn run(mode: Mode) -> Result<bool, Box<dyn Error>> {
    // If the example has started a server, it is stopped when this function returns.
    let (pool, _server) = database().await?;
    idempotent_webhook::migrate(&pool).await?;
    let application = Application::new(pool.clone()).await?;
    let (listener, address) = listen().await?;

    println!("Serving on http://{address}");
    println!("  POST /webhooks/stripe /webhooks/github /webhooks/shopify /webhooks/acme");
    println!("  POST /events/github");
    println!("  POST /serial/github");
    println!(
        "  POST /recovery/kept /recovery/acknowledged /recovery/all /recovery/accepted /recovery/late"
    );
    println!("  POST /recovery/reprocess?endpoint=all&delivery_id=...");
    println!("  GET  /ledger /recovery");
    println!("Secrets:");
    for secret in application.secrets() {
        println!("  {secret}");
    }
    println!();
    let recovery = Recovery::new(pool.clone()).poll_interval(Duration::from_secs(1));
    let router = application.router(&recovery)?;
    let recovery = recovery.spawn(router.clone());
    let server = axum::serve(listener, router).with_graceful_shutdown(stopped());
    let server = tokio::spawn(async { server.await });
    // Listens for the signal from now on, so that the tour can be interrupted.
    let asked_to_stop = tokio::spawn(stopped());

    let as_expected = match mode {
        Mode::ServeOnly => true,
        _ => tour::run(&application, address).await?,
    };
    if mode == Mode::TourOnly {
        recovery.stop().await;
    } else {
        show(&application, address);
        asked_to_stop.await?;
        recovery.stop_with(server).await;
        println!("Stopped.");
    }
    Ok(as_expected)
}

fn show(application: &Application, address: SocketAddr) {
    println!(
        "Try it: the header `x-webhook-outcome` is `processed`, and `duplicate` if you send the same request again. \
         The signature for Stripe is valid for five minutes.\n"
    );
    for curl in application.curls(address) {
        println!("{curl}\n");
    }
    println!("Serving until Ctrl-C.");
    // From here on, the log shows what an operator would see.
    tracing_subscriber::registry()
        .with(
            tracing_subscriber::fmt::layer()
                .with_ansi(std::io::stderr().is_terminal())
                .with_writer(std::io::stderr),
        )
        .with(Targets::new().with_target("idempotent_webhook", tracing::Level::DEBUG))
        .init();
}

/// The database of `DATABASE_URL`, or a new database on a server that is started for it.
async fn database() -> Result<(PgPool, Option<ThrowawayPostgres>), Box<dyn Error>> {
    let pool = PgPoolOptions::new().max_connections(10);
    if let Ok(url) = std::env::var("DATABASE_URL") {
        println!("Using the database of DATABASE_URL");
        return Ok((pool.connect(&url).await?, None));
    }
    let server = ThrowawayPostgres::start(Durability::Durable).await?;
    println!("Started a PostgreSQL server. Look into it with");
    println!("  {}", server.psql());
    println!("  table idempotent_webhook.deliveries;");
    let pool = pool.connect_with(server.options("postgres")).await?;
    Ok((pool, Some(server)))
}

async fn listen() -> Result<(TcpListener, SocketAddr), Box<dyn Error>> {
    let port: u16 = match std::env::var("PORT") {
        Ok(port) => port
            .parse()
            .map_err(|_| format!("PORT={port} is not a port"))?,
        Err(_) => 3000,
    };
    let listener = TcpListener::bind(("127.0.0.1", port))
        .await
        .map_err(|error| {
            format!("cannot listen on 127.0.0.1:{port}: {error}; PORT=0 picks a free port")
        })?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Resolves at Ctrl-C, or when the process is asked to stop.
async fn stopped() {
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}
