//! The guide's handwritten deduplication works.

use std::error::Error;
use std::slice;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use sqlx::{PgConnection, PgPool};

use super::moving_in::PROCESSED_EVENTS;
use super::{function, page};
use crate::support::{Database, github, send, send_copies};

struct Event {
    id: String,
    swallows: bool,
}

/// For this test, each request is authentic.
fn verify(headers: &HeaderMap, body: &Bytes) -> Option<Event> {
    let id = headers.get("x-github-delivery")?.to_str().ok()?;
    Some(Event {
        id: id.to_owned(),
        swallows: body == "swallows",
    })
}

async fn paid(connection: &mut PgConnection, event: &Event) -> sqlx::Result<()> {
    sqlx::query("insert into effects (delivery_id) values ($1)")
        .bind(&event.id)
        .execute(&mut *connection)
        .await?;
    if event.swallows {
        let _ = sqlx::query("select 1 / 0").execute(connection).await;
    }
    Ok(())
}

async fn webhook(State(pool): State<PgPool>, headers: HeaderMap, body: Bytes) -> StatusCode {
    // Checks the signature of the raw bytes in constant time, its age, and that the id is not blank.
    let Some(event) = verify(&headers, &body) else {
        return StatusCode::UNAUTHORIZED;
    };
    // In a task: axum drops this future when the sender hangs up.
    match tokio::spawn(process(pool, event)).await {
        Ok(Ok(())) => StatusCode::OK,
        // An error, or a panic.
        Ok(Err(_)) | Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

async fn process(pool: PgPool, event: Event) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut tx = pool.begin().await?;
    // A duplicate waits for the row of the first delivery, and holds a connection while it waits.
    sqlx::query("set local lock_timeout = '3s'")
        .execute(&mut *tx)
        .await?;
    let claimed =
        sqlx::query("insert into processed_events (event_id) values ($1) on conflict do nothing")
            .bind(&event.id)
            .execute(&mut *tx)
            .await?;
    if claimed.rows_affected() == 0 {
        return Ok(());
    }
    // Without a limit, one slow handler holds its connection and its locks forever.
    let limit = Duration::from_secs(20);
    tokio::time::timeout(limit, paid(&mut tx, &event)).await??;
    // If `paid` has ignored a SQL error, Postgres answers the commit with a rollback, but sqlx returns `Ok`.
    sqlx::query("select 1").execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(())
}

#[test]
fn the_guide_has_this_code() {
    let (here, guide) = (include_str!("unique_index.rs"), page("unique_index.md"));
    for name in ["webhook(", "process("] {
        assert_eq!(function(here, name), function(&guide, name));
    }
}

#[tokio::test]
async fn the_code_by_hand_of_the_guide_is_right() {
    let database = Database::new().await;
    database.run(PROCESSED_EVENTS).await;
    let pool = database.another_pool(5).await;
    let by_hand = Router::new().route("/", post(webhook)).with_state(pool);
    let effects = async || database.count("select count(*) from effects").await;
    for sent in send_copies(slice::from_ref(&by_hand), 5, || github("a", "{}")).await {
        assert_eq!(sent.status, 200);
    }
    assert_eq!(effects().await, 1);
    let swallowed = send(&by_hand, github("b", "swallows")).await;
    assert_eq!(swallowed.status, 503);
    assert_eq!(effects().await, 1);
    // The failed delivery has not taken its id.
    assert_eq!(send(&by_hand, github("b", "{}")).await.status, 200);
    assert_eq!(effects().await, 2);
}
