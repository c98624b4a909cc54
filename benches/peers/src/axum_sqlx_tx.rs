//! axum-sqlx-tx: one transaction for each request, with verification and claim in the handler.

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use sqlx::Postgres;
use sqlx::postgres::PgPoolOptions;

use crate::SECRET;

type Tx = ::axum_sqlx_tx::Tx<Postgres>;

pub fn router(database: &str) -> Router {
    let pool = PgPoolOptions::new()
        .max_connections(10)
        .connect_lazy(database)
        .expect("a database");
    let (state, layer) = Tx::setup(pool);
    Router::new()
        .route("/", post(handle))
        .layer(layer)
        .with_state(state)
}

async fn handle(mut tx: Tx, headers: HeaderMap, body: Bytes) -> Result<StatusCode, StatusCode> {
    let id = verify(&headers, &body)?;
    let failed = |_| StatusCode::INTERNAL_SERVER_ERROR;
    let claimed = sqlx::query(
        "insert into by_hand (delivery_id, event_type) values ($1, 'push')
         on conflict do nothing",
    )
    .bind(id)
    .execute(&mut tx)
    .await
    .map_err(failed)?;
    if claimed.rows_affected() == 0 {
        return Ok(StatusCode::OK);
    }
    sqlx::query("insert into effects (delivery_id) values ($1)")
        .bind(id)
        .execute(&mut tx)
        .await
        .map_err(failed)?;
    Ok(StatusCode::OK)
}

fn verify<'h>(headers: &'h HeaderMap, body: &[u8]) -> Result<&'h str, StatusCode> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let signature = text("x-hub-signature-256")
        .and_then(|value| value.strip_prefix("sha256="))
        .and_then(|hex| hex::decode(hex).ok())
        .ok_or(StatusCode::UNAUTHORIZED)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any length will do");
    mac.update(body);
    mac.verify_slice(&signature)
        .map_err(|_| StatusCode::UNAUTHORIZED)?;
    text("x-github-delivery").ok_or(StatusCode::BAD_REQUEST)
}
