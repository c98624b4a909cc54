//! Contenders that use other crates. All do the same work for a delivery: verify, claim, write one
//! row, commit.
//!
//! The benchmark `throughput` starts this program, with the contender in `BENCHMARK_VARIANT` and
//! the database in `BENCHMARK_DATABASE`.

mod axum_sqlx_tx;
mod fraiseql;

use axum::Router;
use tokio::io::AsyncReadExt;

const SECRET: &str = "benchmark";

#[tokio::main]
async fn main() {
    let database = std::env::var("BENCHMARK_DATABASE").expect("a database");
    let router = match std::env::var("BENCHMARK_VARIANT").as_deref() {
        Ok("axum-sqlx-tx") => axum_sqlx_tx::router(&database),
        Ok("fraiseql-webhooks") => fraiseql::router(&database).await,
        other => panic!("no contender {other:?}"),
    };
    serve(router).await;
}

async fn serve(router: Router) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a free port");
    println!("{}", listener.local_addr().expect("an address"));
    let mut parent = tokio::io::stdin();
    tokio::select! {
        served = axum::serve(listener, router) => served.expect("it serves"),
        // Standard input is a pipe from the benchmark.
        _ = parent.read_u8() => {}
    }
}
