//! Stripe payments, each inserted once by an actix-web handler.

use std::env;
use std::error::Error;
use std::net::TcpListener;
use std::time::SystemTime;

use actix_web::http::StatusCode;
use actix_web::web::{Bytes, Data, PayloadConfig};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, post};
use idempotent_webhook::provider::{Verified, VerifiedDelivery, VerifyError};
use idempotent_webhook::{Provider, Secret, presets};
use serde_json::Value;
use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;

#[post("/webhooks/stripe")]
async fn stripe(
    request: HttpRequest,
    body: Bytes,
    provider: Data<Provider>,
    pool: Data<PgPool>,
) -> HttpResponse {
    let Ok(head) = head(&request) else {
        return HttpResponse::BadRequest().finish();
    };
    let delivery = match provider.verify(&head, &body, SystemTime::now()) {
        Ok(Verified::Delivery(delivery)) => delivery,
        Ok(Verified::Handshake(handshake)) => return answer(handshake.response()),
        Err(VerifyError::Signature(_)) => return HttpResponse::Unauthorized().finish(),
        // Authentic, but without a usable id.
        _ => return HttpResponse::BadRequest().finish(),
    };
    if delivery.event_type() != Some("payment_intent.succeeded") {
        return HttpResponse::Ok().finish();
    }
    let Ok(event) = serde_json::from_slice(&body) else {
        return HttpResponse::BadRequest().finish();
    };
    match paid(&pool, &delivery, event).await {
        Ok(()) => HttpResponse::Ok().finish(),
        Err(error) => {
            eprintln!("{}: {error}", delivery.id());
            HttpResponse::build(status(&error)).finish()
        }
    }
}

const CLAIM: &str = "select idempotent_webhook.claim('billing', '', $1, $2)";
const INSERT: &str = "insert into payments (event_id, amount) values ($1, $2)";

async fn paid(pool: &PgPool, delivery: &VerifiedDelivery, event: Value) -> sqlx::Result<()> {
    let mut tx = pool.begin().await?;
    let is_claimed: bool = sqlx::query_scalar(CLAIM)
        .bind(delivery.id())
        .bind(delivery.event_type())
        .fetch_one(&mut *tx)
        .await?;
    if is_claimed {
        sqlx::query(INSERT)
            .bind(delivery.id())
            .bind(event["data"]["object"]["amount"].as_i64())
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
    }
    Ok(())
}

/// 503 if another process holds the claim for longer than `lock_timeout`. Stripe will send the event again.
fn status(error: &sqlx::Error) -> StatusCode {
    let code = error.as_database_error().and_then(|error| error.code());
    match code.as_deref() {
        Some("55P03") => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Converts the request head: actix-web uses the types of `http` 0.2.
fn head(request: &HttpRequest) -> http::Result<http::request::Parts> {
    let head = http::Request::builder().method(request.method().as_str());
    let mut head = head.uri(request.uri().to_string());
    for (name, value) in request.headers() {
        head = head.header(name.as_str(), value.as_bytes());
    }
    Ok(head.body(())?.into_parts().0)
}

fn answer(response: http::Response<Bytes>) -> HttpResponse {
    let status = StatusCode::from_u16(response.status().as_u16());
    let mut answer = HttpResponse::build(status.unwrap_or_default());
    for (name, value) in response.headers() {
        answer.append_header((name.as_str(), value.as_bytes()));
    }
    answer.body(response.into_body())
}

/// The wait for a claim ends before Stripe gives up, and Postgres ends the claim of a frozen process.
const LIMITS: [(&str, &str); 2] = [
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "30s"),
];

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options: PgConnectOptions = env::var("DATABASE_URL")?.parse()?;
    let pool = PgPool::connect_with(options.options(LIMITS)).await?;
    idempotent_webhook::migrate(&pool).await?;
    let table =
        "create table if not exists payments (event_id text primary key, amount bigint not null)";
    sqlx::query(table).execute(&pool).await?;

    let secret = Secret::new(env::var("STRIPE_WEBHOOK_SECRET")?)?;
    let provider = Data::new(presets::stripe(secret));
    let pool = Data::new(pool);
    let app = move || {
        let app = App::new().app_data(PayloadConfig::new(1024 * 1024));
        app.app_data(provider.clone())
            .app_data(pool.clone())
            .service(stripe)
    };

    let port = env::var("PORT").unwrap_or("3000".to_owned());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}"))?;
    println!("listening on http://{}", listener.local_addr()?);
    HttpServer::new(app).listen(listener)?.run().await?;
    Ok(())
}
