//! The recipes of the guide.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use idempotent_webhook::{
    DedupeTx, Delivery, Endpoint, HandlerError, IdempotentWebhook, Keep, LateClaim, Recency,
    presets,
};
use serde::Deserialize;
use sqlx::{PgConnection, PgPool};

use super::{function, page};
use crate::support::{
    Database, TestApp, answer, assert_rows, github, now, recovery, secret, send, stripe,
};

#[test]
fn the_guide_has_these_recipes() {
    let (here, guide) = (include_str!("recipes.rs"), page("recipes.md"));
    for name in [
        "saved",
        "deleted",
        "changed",
        "ended",
        "refresh",
        "mark_paid",
        "save",
    ] {
        let name = format!("{name}(");
        assert_eq!(function(here, &name), function(&guide, &name));
    }
    let is_echo = |text: &str| {
        let (_, method) = text.split_once("impl Event {\n").unwrap();
        method.split("\n}").next().unwrap().to_owned()
    };
    assert_eq!(is_echo(here), is_echo(&guide));
}

async fn saved(tx: &mut DedupeTx, contact: &str, changed: i64, name: &str) -> sqlx::Result<()> {
    if tx.advance(contact, changed).await? == Recency::Older {
        return Ok(());
    }
    sqlx::query(
        "insert into contacts (id, name) values ($1, $2)
         on conflict (id) do update set name = excluded.name",
    )
    .bind(contact)
    .bind(name)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

async fn deleted(tx: &mut DedupeTx, contact: &str) -> sqlx::Result<()> {
    // No event is newer than a deletion, regardless of its time.
    tx.advance(contact, i64::MAX).await?;
    sqlx::query("delete from contacts where id = $1")
        .bind(contact)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

#[derive(Deserialize)]
struct OfContact {
    contact: String,
    /// `None` if the event is a deletion.
    name: Option<String>,
}

/// All events are from the same second.
async fn contact(mut tx: DedupeTx, Json(event): Json<OfContact>) -> Result<(), HandlerError> {
    match &event.name {
        Some(name) => saved(&mut tx, &event.contact, 1000, name).await?,
        None => deleted(&mut tx, &event.contact).await?,
    }
    Ok(())
}

#[tokio::test]
async fn what_is_deleted_stays_deleted_in_every_order_within_a_second() {
    let app = TestApp::github(contact).await;
    let create = "create table contacts (id text primary key, name text not null)";
    app.database.run(create).await;
    const CREATED: &str = r#""name":"A""#;
    const UPDATED: &str = r#""name":"B""#;
    const DELETED: &str = r#""name":null"#;
    for (case, order) in [
        [CREATED, UPDATED, DELETED],
        [CREATED, DELETED, UPDATED],
        [DELETED, CREATED, UPDATED],
    ]
    .into_iter()
    .enumerate()
    {
        for (number, event) in order.into_iter().enumerate() {
            let body = format!(r#"{{"contact":"c_{case}",{event}}}"#);
            let sent = app.send(github(&format!("{case}-{number}"), body)).await;
            assert_eq!(sent, answer(200, "processed", ""));
        }
        let left = app.database.count("select count(*) from contacts").await;
        assert_eq!(left, 0, "{order:?}");
    }
    // A contact that was not deleted exists.
    let body = format!(r#"{{"contact":"c_kept",{CREATED}}}"#);
    assert_eq!(app.send(github("kept", body)).await.status, 200);
    app.database
        .until("(select name from contacts) = 'A'")
        .await;
}

struct Subscription {
    id: String,
    customer: String,
    began: i64,
    plan: String,
}

async fn changed(tx: &mut DedupeTx, new: &Subscription, created: i64) -> sqlx::Result<()> {
    // Skips an older subscription of the customer, and an older event of the subscription.
    if tx.advance(&new.customer, new.began).await? == Recency::Older
        || tx.advance(&new.id, created).await? == Recency::Older
    {
        return Ok(());
    }
    sqlx::query("update accounts set subscription = $2, plan = $3 where customer = $1")
        .bind(&new.customer)
        .bind(&new.id)
        .bind(&new.plan)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

async fn ended(tx: &mut DedupeTx, old: &Subscription) -> sqlx::Result<()> {
    tx.advance(&old.id, i64::MAX).await?;
    sqlx::query(
        "update accounts set subscription = null, plan = null
         where customer = $1 and subscription = $2",
    )
    .bind(&old.customer)
    .bind(&old.id)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

#[derive(Deserialize)]
struct OfSubscription {
    customer: String,
    began: i64,
    /// When the subscription changed. `None` if the subscription has ended.
    created: Option<i64>,
}

async fn subscription(
    mut tx: DedupeTx,
    Json(event): Json<OfSubscription>,
) -> Result<(), HandlerError> {
    let subscription = Subscription {
        id: format!("sub_{}_{}", event.customer, event.began),
        plan: format!("plan {}", event.began),
        customer: event.customer,
        began: event.began,
    };
    match event.created {
        Some(created) => changed(&mut tx, &subscription, created).await?,
        None => ended(&mut tx, &subscription).await?,
    }
    Ok(())
}

/// Each order of three events.
const ORDERS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

#[tokio::test]
async fn events_of_an_old_subscription_leave_the_new_one_alone_in_every_order() {
    let app = TestApp::github(subscription).await;
    let create = "create table accounts (customer text primary key, subscription text, plan text)";
    app.database.run(create).await;
    const OLD_BEGAN: &str = r#""began":1,"created":1"#;
    // The old subscription changed after the new one began.
    const OLD_CHANGED: &str = r#""began":1,"created":3"#;
    const OLD_ENDED: &str = r#""began":1,"created":null"#;
    const NEW_BEGAN: &str = r#""began":2,"created":2"#;
    const NEW_ENDED: &str = r#""began":2,"created":null"#;
    for (case, (events, plan)) in [
        ([OLD_BEGAN, OLD_ENDED, NEW_BEGAN], "plan 2"),
        ([OLD_CHANGED, OLD_ENDED, NEW_BEGAN], "plan 2"),
        ([OLD_ENDED, NEW_BEGAN, NEW_ENDED], "none"),
    ]
    .into_iter()
    .enumerate()
    {
        for (of, order) in ORDERS.into_iter().enumerate() {
            let customer = format!("{case}{of}");
            let insert = format!("insert into accounts (customer) values ('{customer}')");
            app.database.run(&insert).await;
            for number in order {
                let body = format!(r#"{{"customer":"{customer}",{}}}"#, events[number]);
                let sent = app
                    .send(github(&format!("{customer}-{number}"), body))
                    .await;
                assert_eq!(sent, answer(200, "processed", ""));
            }
            let is_left = format!(
                "select count(*) from accounts
                 where customer = '{customer}' and coalesce(plan, 'none') = '{plan}'"
            );
            assert_eq!(app.database.count(&is_left).await, 1, "{case}: {order:?}");
        }
    }
}

/// Each idempotency key that this application sends starts with this prefix.
const OURS: &str = "shop/";

#[derive(Deserialize)]
struct Event {
    request: Option<Call>,
}

#[derive(Deserialize)]
struct Call {
    idempotency_key: Option<String>,
}

impl Event {
    fn is_echo(&self) -> bool {
        let call = self.request.as_ref();
        let key = call.and_then(|call| call.idempotency_key.as_deref());
        key.is_some_and(|key| key.starts_with(OURS))
    }
}

async fn unless_echo(mut tx: DedupeTx, Json(event): Json<Event>) -> Result<(), HandlerError> {
    if !event.is_echo() {
        sqlx::query("insert into effects default values")
            .execute(&mut *tx)
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_echo_is_claimed_and_has_no_effect() {
    let app = TestApp::of(presets::stripe(secret()), unless_echo).await;
    for (id, request, effects) in [
        (1, r#"{"id":"req_1","idempotency_key":"shop/refund/7"}"#, 0),
        (
            2,
            r#"{"id":"req_2","idempotency_key":"a key of somebody else"}"#,
            1,
        ),
        (3, r#"{"id":null,"idempotency_key":null}"#, 2),
        (4, "null", 3),
    ] {
        let body = format!(
            r#"{{"id":"evt_{id}","object":"event","type":"charge.refunded","request":{request}}}"#
        );
        let sent = app.send(stripe(body, now())).await;
        assert_eq!(sent, answer(200, "processed", ""));
        assert_rows!(app.database, claims: id, effects: effects);
    }
}

static FETCHES: AtomicU32 = AtomicU32::new(0);

async fn fetch(id: &str) -> std::io::Result<String> {
    let fetches = FETCHES.fetch_add(1, Ordering::Relaxed) + 1;
    Ok(format!("{id}, fetch {fetches}"))
}

/// Must exceed the difference between your hosts' clocks, and the time by which the provider's API lags behind its
/// events.
const MARGIN: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct Changed {
    customer: String,
}

async fn refresh(
    State(pool): State<PgPool>,
    claim: LateClaim,
    delivery: Delivery,
    Json(event): Json<Changed>,
) -> Result<StatusCode, HandlerError> {
    let received = delivery.first_received_at() + MARGIN;
    let received = received.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (is_known, now): (bool, f64) = sqlx::query_as(
        "select
            exists (select from customers where id = $1 and fetched_at > $2),
            extract(epoch from clock_timestamp())::float8",
    )
    .bind(&event.customer)
    .bind(received.as_secs_f64())
    .fetch_one(&pool)
    .await?;
    if is_known && !delivery.is_reprocessed() {
        return Ok(StatusCode::OK);
    }
    let name = fetch(&event.customer).await?;
    let mut tx = claim.begin().await?;
    // If two fetches run at the same time, the row keeps the result of the later one.
    sqlx::query(
        "insert into customers (id, name, fetched_at) values ($1, $2, $3)
         on conflict (id) do update set name = excluded.name, fetched_at = excluded.fetched_at
         where customers.fetched_at < excluded.fetched_at",
    )
    .bind(&event.customer)
    .bind(name)
    .bind(now)
    .execute(&mut *tx)
    .await?;
    Ok(StatusCode::OK)
}

#[tokio::test]
async fn what_was_received_before_the_last_fetch_is_claimed_without_another() {
    let database = Database::new().await;
    database
        .run("create table customers (id text primary key, name text, fetched_at float8)")
        .await;
    let recovery = recovery(&database.pool);
    let archive = Duration::from_secs(60 * 60);
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()))
        .late_claim()
        .keep(Keep::all(&recovery).processed_for(archive));
    let app = Router::new()
        .route("/", post(refresh).layer(layer))
        .with_state(database.pool.clone());
    let deliver = async |id: &str| {
        let sent = send(&app, github(id, r#"{"customer":"cus_1"}"#)).await;
        assert_eq!(sent, answer(200, "processed", ""));
    };
    let is_fetch = async |number: u32| {
        assert_eq!(FETCHES.load(Ordering::Relaxed), number);
        let is_it = format!("select count(*) from customers where name = 'cus_1, fetch {number}'");
        assert_eq!(database.count(&is_it).await, 1);
    };

    deliver("a").await;
    is_fetch(1).await;
    // Received after the fetch.
    deliver("b").await;
    is_fetch(2).await;
    // As if the delivery had waited since before the fetch.
    database
        .run("update customers set fetched_at = fetched_at + 10")
        .await;
    deliver("c").await;
    is_fetch(2).await;
    assert_rows!(database, claims: 3, effects: 0);

    // An operator reprocesses the delivery.
    let endpoint = Endpoint::new(database.pool.clone(), "test");
    endpoint.reprocess("c").await.unwrap();
    recovery.run_due(&app).await.unwrap();
    assert_eq!(FETCHES.load(Ordering::Relaxed), 3);
}

struct Order {
    id: i64,
    status: String,
    note: String,
    version: i64,
}

/// Called by the handler of the webhook.
async fn mark_paid(tx: &mut PgConnection, order: i64) -> sqlx::Result<()> {
    sqlx::query("update orders set status = 'paid', version = version + 1 where id = $1")
        .bind(order)
        .execute(tx)
        .await?;
    Ok(())
}

/// Called in a request. Returns `false` if the order has changed since it was loaded: load it again.
async fn save(pool: &PgPool, order: &Order) -> sqlx::Result<bool> {
    let saved = sqlx::query(
        "update orders set status = $2, note = $3, version = version + 1
         where id = $1 and version = $4",
    )
    .bind(order.id)
    .bind(&order.status)
    .bind(&order.note)
    .bind(order.version)
    .execute(pool)
    .await?;
    Ok(saved.rows_affected() == 1)
}

async fn load(pool: &PgPool) -> Order {
    let (id, status, note, version) =
        sqlx::query_as("select id, status, note, version from orders")
            .fetch_one(pool)
            .await
            .unwrap();
    Order {
        id,
        status,
        note,
        version,
    }
}

#[tokio::test]
async fn a_stale_save_does_not_undo_what_the_webhook_wrote() {
    let app = TestApp::github(async |mut tx: DedupeTx| -> Result<(), HandlerError> {
        mark_paid(&mut tx, 1).await?;
        Ok(())
    })
    .await;
    let pool = &app.database.pool;
    app.database
        .run(
            "create table orders (id bigint, status text, note text, version bigint);
             insert into orders values (1, 'pending', '', 1)",
        )
        .await;
    let mut stale = load(pool).await;
    assert_eq!(app.send(github("paid", "{}")).await.status, 200);
    stale.note = "ring twice".to_owned();
    assert!(!save(pool, &stale).await.unwrap());
    assert_eq!(load(pool).await.status, "paid");

    let mut fresh = load(pool).await;
    fresh.note = stale.note;
    assert!(save(pool, &fresh).await.unwrap());
    let saved = load(pool).await;
    assert_eq!(
        (&*saved.status, &*saved.note, saved.version),
        ("paid", "ring twice", 3)
    );
}
