//! The cost of finding out which events on a page of a provider's list were never processed.

use std::time::{Duration, Instant, SystemTime};

use idempotent_webhook::reconcile::{EventPage, EventSource, ListedEvent, PageQuery, SourceError};
use idempotent_webhook::{IdempotentWebhook, Keep, Reconcile, Recovery, Secret, presets};
use sqlx::PgPool;

use crate::server::Server;
use crate::{APART, DAY, filled};

/// The number of events on a page of a provider's list.
const PAGE: usize = 100;

/// How many events of a page were never processed.
const MISSING: usize = 7;

const ROUNDS: usize = 200;

/// The ids of deliveries in the table, and of some that are not in it.
struct Page(Vec<String>);

impl EventSource for Page {
    fn name(&self) -> String {
        "page".to_owned()
    }

    async fn page(&self, _: &PageQuery) -> Result<EventPage, SourceError> {
        let event = |id: &String| {
            let body = format!(r#"{{"id":"{id}","type":"invoice.paid"}}"#);
            ListedEvent::new(SystemTime::now() - Duration::from_secs(1), body)
        };
        Ok(EventPage::new(self.0.iter().map(event), None))
    }
}

pub(crate) async fn run(server: &Server) {
    println!("a page of {PAGE} listed events, {MISSING} of them missing, in ms");
    println!("rows          without a page    with a page: median, longest");
    let sizes = [
        ("listed_1", 10_000),
        ("listed_2", 1_000_000),
        ("listed_3", 10_000_000),
    ];
    let mut tables = Vec::new();
    for (name, rows) in sizes {
        tables.push((
            rows,
            filled(server, name, rows, Duration::ZERO, APART).await,
            Vec::new(),
            Vec::new(),
        ));
    }
    for _ in 0..ROUNDS {
        for (_, pool, without, with) in &mut tables {
            without.push(time(pool, Vec::new(), 0).await);
            let mut page: Vec<String> = sqlx::query_scalar(
                "select delivery_id
                 from idempotent_webhook.deliveries
                 where delivery_id > gen_random_uuid()::text
                 order by delivery_id
                 limit $1",
            )
            .bind(i64::try_from(PAGE - MISSING).unwrap())
            .fetch_all(&*pool)
            .await
            .unwrap();
            page.extend((0..MISSING).map(|n| format!("evt_{n}")));
            with.push(time(pool, page, MISSING).await);
        }
    }
    for (rows, _, mut without, mut with) in tables {
        without.sort_by(f64::total_cmp);
        with.sort_by(f64::total_cmp);
        println!(
            "{rows:>10}    {:>14.2}    {:>19.2}, {:>7.2}",
            without[ROUNDS / 2],
            with[ROUNDS / 2],
            with[ROUNDS - 1]
        );
    }
}

/// How long a dry run takes, which changes nothing.
async fn time(pool: &PgPool, page: Vec<String>, missing: usize) -> f64 {
    let recovery = Recovery::new(pool.clone());
    let provider = presets::stripe(Secret::new("a secret").unwrap());
    let layer =
        IdempotentWebhook::new(pool.clone(), "test", provider).keep(Keep::failed(&recovery));
    let reconcile = Reconcile::new(&layer, Page(page), "/")
        .unwrap()
        .grace(Duration::ZERO)
        .since(SystemTime::now() - DAY);
    let started = Instant::now();
    let found = reconcile.dry_run().await.unwrap();
    let took = started.elapsed().as_secs_f64() * 1000.0;
    assert_eq!(found.len(), missing);
    took
}
