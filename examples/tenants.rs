//! Many tenants behind one route, with their secrets in a table. The example shows the separate delivery ids of the
//! tenants, the rotation of a secret, and a failing lookup of secrets.
//!
//!     cargo run --example tenants
//!
//! No server has to be running: the example creates its own database, on the server of `DATABASE_URL` if that is set,
//! and otherwise on a PostgreSQL server that it starts.

mod playground;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::post;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Secret, Secrets, TenantSecrets, presets,
};
use playground::{send, step};
use sqlx::PgPool;

/// How long a secret is cached after a lookup. This is short to keep the example short: the default of one minute costs
/// almost no lookups.
const CACHE: Duration = Duration::from_millis(500);

#[tokio::main]
async fn main() -> ExitCode {
    playground::run(example).await
}

fn webhooks(pool: PgPool) -> Router {
    let secrets = TenantSecrets::new(tenant_of, {
        let pool = pool.clone();
        move |tenant| secrets_of(tenant, pool.clone())
    })
    .cache(1000, CACHE)
    // GitHub's GUID is the same for every hook that gets an event, so two tenants may get the same id.
    .separate_ids();
    let layer = IdempotentWebhook::new(pool, "pushes", presets::github(secrets));
    Router::new().route("/webhooks/{tenant}", post(push).layer(layer))
}

/// Returns the tenant that a request claims to be for. Only its signature proves that.
fn tenant_of(head: &Parts) -> Option<String> {
    head.uri
        .path()
        .strip_prefix("/webhooks/")
        .map(str::to_owned)
}

/// The secrets that are valid now. During a rotation, this includes the previous secret.
async fn secrets_of(
    tenant: String,
    pool: PgPool,
) -> Result<Option<Secrets>, Box<dyn Error + Send + Sync>> {
    let found: Option<(String, Option<String>)> =
        sqlx::query_as("select secret, previous_secret from tenants where name = $1")
            .bind(tenant)
            .fetch_optional(&pool)
            .await?;
    let Some((secret, previous)) = found else {
        return Ok(None);
    };
    // An empty secret in the table is an error here, so it cannot open the endpoint to everybody.
    let secrets = Secrets::new(Secret::new(secret)?);
    Ok(Some(match previous {
        Some(previous) => secrets.and(Secret::new(previous)?),
        None => secrets,
    }))
}

async fn push(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
    sqlx::query("insert into pushes (tenant, delivery_id) values ($1, $2)")
        .bind(delivery.tenant())
        .bind(delivery.id())
        .execute(&mut *tx)
        .await?;
    Ok(StatusCode::OK)
}

async fn example(pool: PgPool) -> playground::Result<()> {
    execute(
        &pool,
        "create table tenants (name text primary key, secret text not null, previous_secret text);
         create table pushes (tenant text, delivery_id text);
         insert into tenants values ('acme', 'acme-1'), ('globex', 'globex-1')",
    )
    .await?;
    let app = webhooks(pool.clone());
    let delivery = |tenant: &str, secret: &str, id: &str| -> playground::Result<_> {
        let github = presets::github(Secret::new(secret)?);
        Ok(TestDelivery::new(&github)
            .uri(&format!("/webhooks/{tenant}"))
            .id(id))
    };

    println!("Tenants have their own ids");
    let to_acme = delivery("acme", "acme-1", "a")?;
    let to_globex = delivery("globex", "globex-1", "a")?;
    let answer = send(&app, &to_acme).await?;
    step("a delivery to acme", answer, "200 processed")?;
    let answer = send(&app, &to_globex).await?;
    step("the same id to globex", answer, "200 processed")?;
    let answer = send(&app, &to_acme).await?;
    step("a retry of the first delivery", answer, "200 duplicate")?;

    println!("Tenants have their own secrets");
    let stolen = send(&app, &delivery("acme", "globex-1", "b")?).await?;
    let unknown = send(&app, &delivery("nobody", "globex-1", "b")?).await?;
    let rejected = "401 rejected: signature missing or not valid";
    step("to acme, with the secret of globex", &stolen, rejected)?;
    step("to a tenant that is unknown", &unknown, rejected)?;
    step("the two answers are the same", stolen == unknown, "true")?;

    println!("A secret is rotated");
    let by_acme = async |secret, id| send(&app, &delivery("acme", secret, id)?).await;
    execute(
        &pool,
        "update tenants set secret = 'acme-2', previous_secret = secret where name = 'acme'",
    )
    .await?;
    // Give the new secret to the provider only after this wait. Until then, a process may know only the old secret.
    tokio::time::sleep(CACHE).await;
    let answer = by_acme("acme-1", "c").await?;
    step("the old secret", answer, "200 processed")?;
    let answer = by_acme("acme-2", "d").await?;
    step("the new secret", answer, "200 processed")?;
    execute(
        &pool,
        "update tenants set previous_secret = null where name = 'acme'",
    )
    .await?;
    // Until this wait is over, a process may still accept the old secret.
    tokio::time::sleep(CACHE).await;
    let answer = by_acme("acme-1", "e").await?;
    step("the old secret, withdrawn", answer, rejected)?;
    let answer = by_acme("acme-2", "e").await?;
    step("the new secret", answer, "200 processed")?;

    println!("The lookup fails");
    execute(&pool, "alter table tenants rename to gone").await?;
    tokio::time::sleep(CACHE).await;
    let answer = by_acme("acme-2", "f").await?;
    step("a delivery", answer, "503 failed: temporarily unavailable")?;
    execute(&pool, "alter table gone rename to tenants").await?;
    let answer = by_acme("acme-2", "f").await?;
    step("its retry, later", answer, "200 processed")?;

    println!("Every delivery was processed once");
    for (tenant, expected) in [("acme", "a c d e f"), ("globex", "a")] {
        let ids: String = sqlx::query_scalar(
            "select string_agg(delivery_id, ' ' order by delivery_id)
             from pushes
             where tenant = $1",
        )
        .bind(tenant)
        .fetch_one(&pool)
        .await?;
        step(tenant, ids, expected)?;
    }
    Ok(())
}

async fn execute(pool: &PgPool, sql: &'static str) -> sqlx::Result<()> {
    sqlx::raw_sql(sql).execute(pool).await.map(drop)
}
