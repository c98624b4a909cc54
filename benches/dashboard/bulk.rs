//! Actions on all dead deliveries: whether the reported count stays correct, and whether an action
//! gets slower as it proceeds.

use std::time::{Duration, Instant};

use sqlx::PgPool;

use crate::LARGE;
use crate::browser::Browser;

/// How long an action runs until it is cancelled.
const CANCELLED_AFTER: Duration = Duration::from_secs(5);

/// The number of parts into which the rate of an action is split when it is printed.
const PARTS: i64 = 5;

pub async fn run(pool: &PgPool) {
    let browser = Browser::new(pool.clone());
    println!("\nactions on all that is dead, each a second, one part after the other\n");
    // Retried deliveries die again, so the same number is left to discard.
    for action in ["retry", "discard"] {
        let dead = count(pool, "state = 'dead'").await;
        let others = count(pool, "state <> 'dead'").await;

        let id = begin(&browser, action).await;
        tokio::time::sleep(CANCELLED_AFTER).await;
        let link = browser.post("cancel", &format!("id={id}")).await;
        assert_eq!(link, format!("action?id={id}"));
        let cancelled = end(pool, id).await;
        assert_eq!(count(pool, "state = 'dead'").await, dead - cancelled);
        println!("{action}, cancelled after {cancelled}: as many are no longer dead");

        let left = dead - cancelled;
        let id = begin(&browser, action).await;
        let rates = rates(pool, id, left).await;
        let changed = end(pool, id).await;
        assert_eq!(changed, left, "each one once");
        assert_eq!(count(pool, "state = 'dead'").await, 0);
        let rates: Vec<_> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
        println!("{action} of the other {changed}: {}", rates.join(", "));
        match action {
            "retry" => {
                assert_eq!(count(pool, "state <> 'dead'").await, others + dead);
                die_again(pool).await;
            }
            _ => {
                assert_eq!(count(pool, "state <> 'dead'").await, others);
                let orphans: i64 = sqlx::query_scalar(
                    "select count(*)
                     from idempotent_webhook.kept_requests
                     left join idempotent_webhook.kept_deliveries as kept
                         using (endpoint, tenant, delivery_id)
                     where kept.state is null",
                )
                .fetch_one(pool)
                .await
                .unwrap();
                assert_eq!(orphans, 0);
            }
        }
    }
}

async fn begin(browser: &Browser, action: &str) -> i64 {
    let form = format!("action={action}&endpoint={LARGE}&state=dead&before=4000000000");
    let link = browser.post("act", &form).await;
    link.strip_prefix("action?id=").unwrap().parse().unwrap()
}

/// Counts deliveries of the large endpoint.
async fn count(pool: &PgPool, condition: &str) -> i64 {
    let sql = format!(
        "select count(*)
         from idempotent_webhook.kept_deliveries
         where endpoint = '{LARGE}' and {condition}"
    );
    sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
        .fetch_one(pool)
        .await
        .unwrap()
}

/// How many deliveries an action has changed so far, and whether it has finished.
async fn progress(pool: &PgPool, id: i64) -> (i64, bool) {
    sqlx::query_as(
        "select changed, ended_at is not null
         from idempotent_webhook.operator_actions
         where id = $1",
    )
    .bind(id)
    .fetch_one(pool)
    .await
    .unwrap()
}

/// Waits until an action has finished, and returns how many deliveries it has changed.
async fn end(pool: &PgPool, id: i64) -> i64 {
    loop {
        let (changed, has_ended) = progress(pool, id).await;
        if has_ended {
            return changed;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The number of deliveries changed per second, for each part of the action.
async fn rates(pool: &PgPool, id: i64, all: i64) -> Vec<f64> {
    let mut rates = Vec::new();
    let (mut since, mut before) = (Instant::now(), 0);
    for part in 1..=PARTS {
        let (mut changed, mut has_ended) = (0, false);
        while changed < all * part / PARTS && !has_ended {
            tokio::time::sleep(Duration::from_millis(10)).await;
            (changed, has_ended) = progress(pool, id).await;
        }
        rates.push((changed - before) as f64 / since.elapsed().as_secs_f64());
        (since, before) = (Instant::now(), changed);
    }
    rates
}

async fn die_again(pool: &PgPool) {
    sqlx::query(
        "update idempotent_webhook.kept_deliveries
         set state = 'dead', next_attempt_at = null
         where endpoint = $1 and state = 'due' and reason is not null and attempts = 12",
    )
    .bind(LARGE)
    .execute(pool)
    .await
    .unwrap();
    for table in ["kept_deliveries", "kept_requests"] {
        let vacuum = format!("vacuum analyze idempotent_webhook.{table}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(vacuum))
            .execute(pool)
            .await
            .unwrap();
    }
}
