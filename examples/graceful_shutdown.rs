//! A shutdown that waits for work whose client has gone.
//!
//!     cargo run --example graceful_shutdown
//!
//! A sender hangs up while its delivery is being handled, and immediately afterwards, the server is asked to stop.
//! Another sender falls silent in the middle of its request, which would hold up the server forever. After a time
//! limit, the shutdown no longer waits for the server. It still waits for the handler, although nobody waits for the
//! handler's answer.

use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{DedupeTx, HandlerError, IdempotentWebhook, Recovery, Secret, presets};
use sqlx::PgPool;
use throwaway_postgres::{Durability, ThrowawayPostgres};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

async fn slow(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
    println!("handler    starts");
    tokio::time::sleep(Duration::from_secs(2)).await;
    sqlx::query("insert into pushes default values")
        .execute(&mut *tx)
        .await?;
    println!("handler    finishes");
    Ok(StatusCode::OK)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = ThrowawayPostgres::start(Durability::Durable).await?;
    let pool = PgPool::connect_with(server.options("postgres")).await?;
    idempotent_webhook::migrate(&pool).await?;
    sqlx::query("create table pushes (at timestamptz default now())")
        .execute(&pool)
        .await?;

    let github = presets::github(Secret::new("a secret")?);
    let push = TestDelivery::new(&github);
    // By default, the whole shutdown may take 25 seconds, and may wait for the server for 10 of them.
    let recovery = Recovery::new(pool.clone()).stop_limit(Duration::from_secs(5));
    let layer = IdempotentWebhook::new(pool.clone(), "pushes", github).join(&recovery);
    let app = Router::new().route("/", post(slow).layer(layer));
    let recovery = recovery.spawn(app.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let sender = tokio::spawn(send_and_hang_up(push, listener.local_addr()?));
    let mut silent = TcpStream::connect(listener.local_addr()?).await?;
    silent.write_all(b"POST / HTTP/1.1\r\nHost: ").await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let server = axum::serve(listener, app).with_graceful_shutdown(async {
        let _ = stopped.await;
    });
    let server = tokio::spawn(async { server.await });

    // In production, this would be `tokio::signal::ctrl_c()`.
    sender.await??;
    println!("server     is asked to stop");
    drop(stop);
    let unfinished = recovery.stop_with(server).await;
    println!("unfinished {unfinished}");

    let pushes: i64 = sqlx::query_scalar("select count(*) from pushes")
        .fetch_one(&pool)
        .await?;
    pool.close().await;
    println!("database   has {pushes} push");
    match (pushes, &*unfinished.to_string()) {
        (1, "the server") => Ok(()),
        (1, _) => Err("only the server should have been held up".into()),
        _ => Err("the push was lost".into()),
    }
}

async fn send_and_hang_up(
    push: TestDelivery,
    address: std::net::SocketAddr,
) -> std::io::Result<()> {
    let (head, body) = push.request::<Bytes>().into_parts();
    let mut request = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n",
        body.len()
    )
    .into_bytes();
    for (name, value) in &head.headers {
        request.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    request.extend([b"\r\n", &*body].concat());
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(&request).await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    println!("sender     hangs up");
    Ok(())
}
