//! How long each page takes.

use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;

use crate::browser::Browser;
use crate::{LARGE, median, pool};

const ROUNDS: usize = 10;

/// The longest time that a page may take, in milliseconds.
const LIMIT: f64 = 200.0;

/// How often `Next page` is followed to reach a page deep in a list.
const DEEP: usize = 100;

struct Page {
    name: String,
    path: String,
    /// A text that the page must show, so that an empty page is not timed.
    text: &'static str,
    times: Vec<f64>,
}

/// Loads all pages in turn, in several rounds, on one connection. The rounds matter because Postgres plans the first
/// executions of a prepared statement for their values, and may later change to one plan for all values.
pub async fn run(options: &PgConnectOptions) {
    let pool = pool(options, 1).await;
    let browser = Browser::new(pool.clone());
    let mut pages = all(&browser, &pool).await;
    for round in 0..=ROUNDS {
        for page in &mut pages {
            let (content, time) = browser.see(&page.path).await;
            // The first round fills the caches.
            if round > 0 {
                page.times.push(time.as_secs_f64() * 1e3);
            } else {
                assert!(content.contains(page.text), "{}: {content}", page.name);
            }
        }
    }
    println!("\npages, warm, in ms\n");
    println!(
        "{:<52} {:>8} {:>8} {:>8}",
        "", "minimum", "median", "maximum"
    );
    for page in pages {
        let minimum = page.times.iter().copied().fold(f64::INFINITY, f64::min);
        let maximum = page.times.iter().copied().fold(0.0, f64::max);
        let mark = if maximum > LIMIT { "  above 200" } else { "" };
        let median = median(page.times);
        println!(
            "{:<52} {minimum:>8.1} {median:>8.1} {maximum:>8.1}{mark}",
            page.name
        );
    }
    pool.close().await;
}

async fn all(browser: &Browser, pool: &PgPool) -> Vec<Page> {
    let mut pages = Vec::new();
    let mut add = |name: &str, path: &str, text| {
        pages.push(Page {
            name: name.to_owned(),
            path: path.to_owned(),
            text,
            times: Vec::new(),
        });
    };
    add("overview", "overview", "quiet_4");
    for state in ["failing", "dead", "due", "recorded"] {
        let path = format!("deliveries?state={state}");
        add(&format!("{state}, all endpoints"), &path, "Next page");
        let path = format!("deliveries?state={state}&endpoint={LARGE}");
        add(&format!("{state}, large"), &path, "Next page");
    }
    add("overview, for a program", "api/overview", "quiet_4");
    let endpoint = format!("endpoint?endpoint={LARGE}");
    add("endpoint, a day", &endpoint, "Handler timeout");
    add(
        "endpoint, a week",
        &format!("{endpoint}&days=7"),
        "Handler timeout",
    );
    add("rejected", "rejected", "no match");
    for (name, filter, text) in [
        ("all endpoints", String::new(), "Next page"),
        ("large", format!("&endpoint={LARGE}"), "Next page"),
        (
            "common event type",
            "&event_type=order.updated".into(),
            "Next page",
        ),
        (
            "rare event type",
            "&event_type=order.disputed".into(),
            "Next page",
        ),
        (
            "unknown event type",
            "&event_type=order.unknown".into(),
            "Next page",
        ),
        (
            "large, unknown event type",
            format!("&endpoint={LARGE}&event_type=x"),
            "Next page",
        ),
    ] {
        let path = format!("deliveries?state=processed{filter}");
        add(&format!("processed, {name}"), &path, text);
    }
    let (large, small) = (group(pool, "desc").await, group(pool, "asc").await);
    for (name, reason, text) in [
        ("large", &large, "Next page"),
        ("small", &small, "no stock"),
    ] {
        let path = format!("deliveries?state=dead&endpoint={LARGE}&reason={reason}");
        add(&format!("dead, large, {name} group"), &path, text);
        let path = format!("deliveries?state=dead&reason={reason}");
        add(&format!("dead, all endpoints, {name} group"), &path, text);
    }
    // This reason and this event type are both common, but no delivery has both.
    let path = format!("deliveries?state=dead&reason={large}&event_type=order.created");
    add(
        "dead, all endpoints, group and another event type",
        &path,
        "filters",
    );
    add(
        "dead, all endpoints, unknown tenant",
        "deliveries?state=dead&tenant=x",
        "filters",
    );
    for (name, event_type, text) in [
        ("common", "order.updated", "Next page"),
        ("rare", "order.disputed", "\"order.disputed\""),
        ("unknown", "order.unknown", "\"order.unknown\""),
    ] {
        let path = format!("deliveries?state=dead&endpoint={LARGE}&event_type={event_type}");
        add(&format!("dead, large, {name} event type"), &path, text);
        let path = format!("deliveries?state=failing&event_type={event_type}");
        add(
            &format!("failing, all endpoints, {name} event type"),
            &path,
            text,
        );
    }
    for (name, path) in [
        (
            "failing, all endpoints",
            "deliveries?state=failing".to_owned(),
        ),
        (
            "dead, large",
            format!("deliveries?state=dead&endpoint={LARGE}"),
        ),
        ("due, all endpoints", "deliveries?state=due".to_owned()),
        (
            "processed, all endpoints",
            "deliveries?state=processed".to_owned(),
        ),
        (
            "dead, large, large group",
            format!("deliveries?state=dead&endpoint={LARGE}&reason={large}"),
        ),
    ] {
        let deep = follow(browser, path).await;
        add(&format!("{name}, page {DEEP}"), &deep, "First page");
    }
    for (name, id, text) in [
        ("processed", "processed 12345", "has succeeded"),
        ("dead", "dead 12345", "runs again only if"),
        ("due", "due 12346", "once its endpoint is resumed"),
        ("recorded", "recorded 40001", "not kept"),
    ] {
        let id = md5(pool, id).await;
        add(
            &format!("delivery, {name}"),
            &format!("delivery?endpoint={LARGE}&id={id}"),
            text,
        );
    }
    let id = md5(pool, "dead 12345").await;
    add("look-up of 1 id", &format!("lookup?ids={id}"), "dead");
    let ids: Vec<String> = sqlx::query_scalar(
        "select md5((array['processed ', 'dead ', 'unknown '])[n % 3 + 1] || n * 7)
         from generate_series(1, 200) as n",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    let path = format!("lookup?ids={}", ids.join("%0A"));
    add("look-up of 200 ids", &path, "Not known");
    add("actions", "actions", "Next page");
    add("actions, in the middle", "actions?after=50000", "Next page");
    add("action", "action?id=50000", "retry");
    add("action on 50,000", "action?id=100001", "How they are now");
    let now = "4000000000";
    let every = format!("endpoint={LARGE}&state=dead&before={now}");
    for action in ["retry", "discard"] {
        for (name, filter, text) in [
            ("large", String::new(), "deliveries?"),
            (
                "large, large group",
                format!("&reason={large}"),
                "deliveries?",
            ),
            (
                "large, small group",
                format!("&reason={small}"),
                "deliveries?",
            ),
            (
                "large, common event type",
                "&event_type=order.updated".into(),
                "deliveries?",
            ),
            (
                "large, rare event type",
                "&event_type=order.disputed".into(),
                "?",
            ),
            (
                "large, unknown event type",
                "&event_type=order.unknown".into(),
                "?",
            ),
        ] {
            let path = format!("confirm?action={action}&{every}{filter}");
            add(&format!("confirm, {action} dead of {name}"), &path, text);
        }
    }
    pages
}

/// The group of deliveries that died for one reason: the largest group or the smallest, depending on `order`.
async fn group(pool: &PgPool, order: &'static str) -> String {
    let sql = format!(
        "select reason_group::text
         from idempotent_webhook.kept_deliveries
         where endpoint = '{LARGE}' and state = 'dead'
         group by reason_group
         order by count(*) {order}, reason_group
         limit 1"
    );
    sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
        .fetch_one(pool)
        .await
        .unwrap()
}

async fn md5(pool: &PgPool, text: &str) -> String {
    sqlx::query_scalar("select md5($1)")
        .bind(text)
        .fetch_one(pool)
        .await
        .unwrap()
}

/// Follows `Next page` from the first page. Returns the address of a page deep in the list.
async fn follow(browser: &Browser, first: String) -> String {
    let mut path = first;
    for _ in 1..DEEP {
        let (content, _) = browser.see(&path).await;
        let (before, _) = content.split_once("\" rel=\"next\"").expect("a next page");
        let (_, link) = before.rsplit_once("href=\"").unwrap();
        path = link.replace("&amp;", "&");
    }
    path
}
