//! A provider loses a third of its webhooks, before and while the application runs. The application compares the
//! provider's list of events with the events that it has processed. In the end, each event has been processed once.
//!
//!     cargo run --example reconcile
//!
//! No server has to be running: the example creates its own database, on the server of `DATABASE_URL` if that is set,
//! and otherwise on a PostgreSQL server that it starts.

mod playground;

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use idempotent_webhook::reconcile::{Http, StripeEvents};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Keep, Provider, Reconcile, Recovery,
    Secret, presets,
};
use playground::{send, step};
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::net::TcpListener;
use tokio::sync::Mutex;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// The time between two reconciliations. In production, use the default, 15 minutes.
const EVERY: Duration = Duration::from_secs(1);

/// How old an event must be to be reconciled. In production, use the default, 10 minutes. Stripe's times are in whole
/// seconds, so an event looks up to a second older than it is. With a grace period of two seconds, a webhook still has
/// at least one second to arrive.
const GRACE: Duration = Duration::from_secs(2);

/// How long to wait until all webhooks are processed. It takes a few seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of events on a page of the list. Stripe's default is 10, and its maximum is 100.
const PAGE: usize = 10;

/// A provider with the API of Stripe.
#[derive(Clone)]
struct Sender {
    stripe: Provider,
    /// Oldest first.
    events: Arc<Mutex<Vec<Value>>>,
}

impl Sender {
    /// Adds an event.
    async fn record(&self, id: String, event_type: &str, at: SystemTime) -> playground::Result<()> {
        let created = at.duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
        let event = json!({"id": id, "object": "event", "type": event_type, "created": created});
        self.events.lock().await.push(event);
        Ok(())
    }

    /// `count` invoices are paid, and every third webhook is lost. Returns how many were lost.
    async fn pay(
        &self,
        app: &Router,
        prefix: &str,
        count: usize,
        at: SystemTime,
    ) -> playground::Result<usize> {
        let mut lost = 0;
        for number in 1..=count {
            let id = format!("evt_{prefix}_{number}");
            self.record(id.clone(), "invoice.paid", at).await?;
            if number % 3 == 0 {
                lost += 1;
            } else {
                send(app, &self.webhook(&id)).await?;
            }
        }
        Ok(lost)
    }

    fn webhook(&self, id: &str) -> TestDelivery {
        TestDelivery::new(&self.stripe)
            .uri("/webhooks/stripe")
            .id(id)
            .event_type("invoice.paid")
    }

    /// Serves the list of events. Returns its address.
    async fn serve(&self) -> playground::Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}", listener.local_addr()?);
        let api = Router::new()
            .route("/v1/events", get(list))
            .with_state(self.clone());
        tokio::spawn(axum::serve(listener, api).into_future());
        Ok(address)
    }
}

/// `GET /v1/events`, which lists the newest event first.
async fn list(
    State(sender): State<Sender>,
    Query(query): Query<HashMap<String, String>>,
) -> Json<Value> {
    let seconds = |name| query.get(name).and_then(|text| text.parse::<u64>().ok());
    let since = seconds("created[gte]").unwrap_or(0);
    let until = seconds("created[lte]").unwrap_or(u64::MAX);
    let after = query.get("starting_after");
    let events = sender.events.lock().await;
    let mut rest = events
        .iter()
        .rev()
        .skip_while(|event| after.is_some_and(|id| event["id"] != **id))
        .skip(after.iter().len())
        .filter(|event| (since..=until).contains(&event["created"].as_u64().unwrap_or_default()));
    let data: Vec<&Value> = rest.by_ref().take(PAGE).collect();
    let has_more = rest.next().is_some();
    Json(json!({"object": "list", "data": data, "has_more": has_more}))
}

async fn payment(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
    sqlx::query("insert into payments (event_id, event_type, reconciled) values ($1, $2, $3)")
        .bind(delivery.id())
        .bind(delivery.event_type())
        .bind(delivery.is_reconciled())
        .execute(&mut *tx)
        .await?;
    Ok(StatusCode::OK)
}

#[tokio::main]
async fn main() -> ExitCode {
    playground::run(example).await
}

async fn example(pool: PgPool) -> playground::Result<()> {
    // The table has no key, so that a second effect of an event would be a second row.
    sqlx::query("create table payments (event_id text, event_type text, reconciled bool)")
        .execute(&pool)
        .await?;
    let sender = Sender {
        stripe: presets::stripe(Secret::new("whsec_example")?),
        events: Arc::default(),
    };
    let address = sender.serve().await?;

    let recovery = Recovery::new(pool.clone());
    let layer = IdempotentWebhook::new(pool.clone(), "billing", sender.stripe.clone())
        .keep(Keep::all(&recovery));
    // Stripe's list contains all events of the account, so this names the types to which the endpoint subscribes.
    let events = StripeEvents::new(Secret::new("rk_example")?, ["invoice.*"])
        .http(Http::new().base(address));
    let reconcile = Reconcile::new(&layer, events, "/webhooks/stripe")?
        .every(EVERY)
        .grace(GRACE)
        // By default, reconciliation ignores events from before the endpoint's first delivery.
        .since(SystemTime::now() - 2 * HOUR);
    let app = Router::new().route("/webhooks/stripe", post(payment).layer(layer));

    println!("An hour ago, every third webhook was lost");
    let an_hour_ago = SystemTime::now() - HOUR;
    let mut lost = sender.pay(&app, "early", 30, an_hour_ago).await?;
    sender
        .record("evt_customer".into(), "customer.created", an_hour_ago)
        .await?;
    step("payments", payments(&pool).await?, "20")?;

    println!("A dry run shows what is missing, and changes nothing");
    let missing = reconcile.dry_run().await?;
    step("missing", missing.len(), &lost.to_string())?;
    for one in missing.iter().take(3) {
        let event_type = one.event_type.as_deref().unwrap_or_default();
        println!("    {} {event_type}", one.id);
    }
    println!("    …");
    step("payments", payments(&pool).await?, "20")?;

    println!("Reconciliation runs");
    let recovery = recovery.with(reconcile).spawn(app.clone());
    wait_for_payments(&pool, 30).await?;
    step("payments", payments(&pool).await?, "30")?;

    println!("Later webhooks are lost, too");
    lost += sender.pay(&app, "late", 12, SystemTime::now()).await?;
    wait_for_payments(&pool, 42).await?;
    step("payments", payments(&pool).await?, "42")?;

    println!("A lost webhook arrives after all");
    let answer = send(&app, &sender.webhook("evt_early_3")).await?;
    step("the answer", answer, "200 duplicate")?;

    recovery.stop().await;

    println!("Each event of the endpoint has one effect");
    let wrong: i64 = sqlx::query_scalar(
        "select count(*)
         from (select event_id from payments group by event_id having count(*) <> 1) as wrong",
    )
    .fetch_one(&pool)
    .await?;
    step("events with another number of payments", wrong, "0")?;
    step("payments", payments(&pool).await?, "42")?;
    let others: i64 =
        sqlx::query_scalar("select count(*) from payments where event_type <> 'invoice.paid'")
            .fetch_one(&pool)
            .await?;
    step("payments for other event types", others, "0")?;
    // Every third webhook was lost.
    let told: i64 = sqlx::query_scalar(
        "select count(*)
         from payments
         where reconciled = (split_part(event_id, '_', 3)::int % 3 = 0)",
    )
    .fetch_one(&pool)
    .await?;
    step("handlers that knew if it was lost", told, "42")?;
    let missed: i64 = sqlx::query_scalar("select missed from idempotent_webhook.reconciliations")
        .fetch_one(&pool)
        .await?;
    step("found by reconciliation", missed, &lost.to_string())?;
    Ok(())
}

async fn payments(pool: &PgPool) -> sqlx::Result<i64> {
    sqlx::query_scalar("select count(*) from payments")
        .fetch_one(pool)
        .await
}

async fn wait_for_payments(pool: &PgPool, count: i64) -> playground::Result<()> {
    let all = async {
        while payments(pool).await? < count {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok::<_, sqlx::Error>(())
    };
    match tokio::time::timeout(PATIENCE, all).await {
        Ok(counted) => Ok(counted?),
        Err(_) => Err(format!("There are not {count} payments after {PATIENCE:?}.").into()),
    }
}
