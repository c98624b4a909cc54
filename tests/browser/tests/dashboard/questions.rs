//! Questions of operators, with the data of the example `dashboard`. The dashboard answers each question within two
//! clicks from the overview.

#[expect(
    dead_code,
    reason = "examples have a database of their own, and print their steps"
)]
#[path = "../../../../examples/playground/mod.rs"]
mod playground;
#[expect(
    dead_code,
    reason = "the example is busy for as long as it is looked at"
)]
#[path = "../../../../examples/dashboard/shop.rs"]
mod shop;
#[path = "../../../../examples/dashboard/yesterday.rs"]
mod yesterday;

use std::time::{Duration, Instant};

use axum::Router;
use browser::{Browser, Look, Page, Server};
use idempotent_webhook::Recovery;
use shop::{Shop, VERSION, VERSION_BEFORE};

use crate::stage::{PREFIX, Stage, ada, assert_sound};

/// How long deliveries may take to run, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The reason for the failures after the deploy.
const REASON: &str = "no tax rate for the customer";

/// Asks a question on the overview of the shop, with scripts and without.
async fn ask(question: impl AsyncFn(&Stage, &mut Page)) {
    let browser = Browser::start().await;
    for javascript in [true, false] {
        let stage = Stage::empty().await;
        let recovery = Recovery::new(stage.pool.clone());
        let shop = Shop::new(&stage.pool, &recovery).await.unwrap();
        yesterday::happened(&stage.pool).await.unwrap();
        let recovery = recovery.spawn(shop.router);
        let server = Server::start(Router::new().nest(PREFIX, stage.dashboard(ada()))).await;
        let look = Look {
            javascript,
            ..Look::default()
        };
        let mut page = browser.page(look).await;
        let overview = server.url(&format!("{PREFIX}/overview"));
        assert_eq!(page.goto(&overview).await, 200);
        question(&stage, &mut page).await;
        assert_sound(&page).await;
        recovery.stop().await;
    }
}

async fn one<T>(stage: &Stage, query: &'static str) -> T
where
    T: Send + Unpin + for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
{
    let value = sqlx::query_scalar(query).fetch_one(&stage.pool).await;
    value.unwrap()
}

/// The row that contains a text, as pairs of column name and cell text.
async fn row(page: &Page, text: &str) -> Vec<(String, String)> {
    page.eval(&format!(
        "[...[...document.querySelectorAll('main tbody tr')]
            .find((row) => row.innerText.includes({text:?})).cells]
            .map((cell) => [cell.dataset.label ?? '', cell.innerText.trim()])"
    ))
    .await
}

fn cell(row: &[(String, String)], name: &str) -> String {
    let found = row.iter().find(|(label, _)| label == name);
    found
        .unwrap_or_else(|| panic!("no {name} in {row:?}"))
        .1
        .clone()
}

fn number(row: &[(String, String)], name: &str) -> i64 {
    cell(row, name).replace(',', "").parse().unwrap()
}

#[tokio::test]
async fn did_it_arrive() {
    ask(async |stage, page| {
        let id: String = one(
            stage,
            "select delivery_id from idempotent_webhook.deliveries
            where endpoint = 'billing' order by received_at limit 1",
        )
        .await;
        page.fill("[type=search]", &id).await;
        assert_eq!(page.click_through(".search button").await, 200);
        let found = row(page, &id).await;
        assert_eq!(cell(&found, "State"), "processed");
        assert_eq!(cell(&found, "Endpoint"), "billing");

        page.fill("[type=search]", "evt_unheard_of").await;
        assert_eq!(page.click_through(".search button").await, 200);
        let rejected: String = one(
            stage,
            "select to_char(sum(count), 'FM999,999,999') from idempotent_webhook.rejections",
        )
        .await;
        let text = page.text().await;
        let answer = format!("Never received, or rejected: {rejected} in the last 24 hours");
        assert!(text.contains(&answer), "no {answer:?} in {text}");
        // The page with the search result links to the rejected requests.
        assert_eq!(page.click_through("main a[href=rejected]").await, 200);
    })
    .await;
}

#[tokio::test]
async fn what_fails_since_when_and_why() {
    ask(async |stage, page| {
        let found = row(page, REASON).await;
        assert_eq!(number(&found, "Deliveries"), 26);
        assert!(cell(&found, "Endpoints").starts_with("billing"));
        let since: String = one(
            stage,
            "select to_char(min(first_failed_at) at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')
            from idempotent_webhook.kept_deliveries
            where endpoint = 'billing'",
        )
        .await;
        let shown: String = page
            .eval(&format!(
                "[...document.querySelectorAll('table.groups tbody tr')]
                    .find((row) => row.innerText.includes({REASON:?}))
                    .querySelector('[data-label=Since] time').dateTime"
            ))
            .await;
        assert_eq!(shown, since);
    })
    .await;
}

#[tokio::test]
async fn is_it_our_deploy() {
    ask(async |stage, page| {
        assert_eq!(
            page.click_through("th a[href='endpoint?endpoint=billing']")
                .await,
            200
        );
        let began: String = one(
            stage,
            "select to_char(min(hour) at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')
            from idempotent_webhook.activity
            where endpoint = 'billing' and version = '1.9.0'",
        )
        .await;
        assert_eq!(page.count(".began li").await, 1);
        let said = page.text_of(".began li").await;
        assert!(
            said.ends_with(&format!(": version {VERSION} began")),
            "{said}"
        );
        let at: String = page
            .eval("document.querySelector('.began time').dateTime")
            .await;
        assert_eq!(at, began);

        let [new, old] = [row(page, VERSION).await, row(page, VERSION_BEFORE).await];
        let share = |row: &[(String, String)]| {
            number(row, "Failed attempts") * 1000 / number(row, "Processed")
        };
        assert!(share(&new) > 5 * share(&old), "{new:?} {old:?}");
        // The time within which half of the handlers finish.
        let times = [&new, &old].map(|row| cell(row, "Half of the handlers within"));
        assert_eq!(times, ["20 ms", "10 ms"]);
    })
    .await;
}

#[tokio::test]
async fn retry_these_and_tell_me_how_it_ended() {
    ask(async |stage, page| {
        // Makes three deliveries count as received today. For their ids, the handler fails.
        let done = sqlx::query(
            "update idempotent_webhook.kept_deliveries set first_received_at = now()
            where delivery_id in ('evt_31006', 'evt_31015', 'evt_31024')",
        )
        .execute(&stage.pool)
        .await;
        assert_eq!(done.unwrap().rows_affected(), 3);
        let retry = "table.groups a[href*='action=retry'][href*='endpoint=billing']";
        assert_eq!(page.click_through(retry).await, 200);
        assert_eq!(page.text_of("h1").await, "Retry 26 deliveries?");
        assert_eq!(page.click_through(".confirm button").await, 200);
        assert_eq!(page.text_of("h1").await, "Action");

        let javascript = page.count("main time[title*='GMT']").await > 0;
        let until = Instant::now() + PATIENCE;
        loop {
            let facts: Vec<(String, String)> = page
                .eval(
                    "[...document.querySelectorAll('h2 ~ .facts > div')]
                        .map((fact) => [...fact.children].map((part) => part.innerText))",
                )
                .await;
            let of = |name: &str| -> i64 {
                let found = facts.iter().find(|(known, _)| known == name);
                found.map_or(0, |(_, number)| number.parse().unwrap())
            };
            let failed = of("Failed again, and due") + of("Dead");
            if of("Processed") == 23 && failed == 3 {
                break;
            }
            assert!(Instant::now() < until, "{facts:?}");
            if javascript {
                tokio::time::sleep(Duration::from_millis(100)).await;
            } else if page.count("main a.button").await > 0 {
                assert_eq!(page.click_through("main a.button").await, 200);
            } else {
                assert_eq!(page.reload().await, 200);
            }
        }
        let failed = row(page, "the stock of an article is negative").await;
        assert_eq!(number(&failed, "Deliveries"), 3);
        assert_eq!(cell(&failed, "Endpoint"), "billing");
        let processed: i64 = one(
            stage,
            "select count(*) from idempotent_webhook.deliveries
            where endpoint = 'billing' and delivery_id like 'evt_310__'",
        )
        .await;
        assert_eq!(processed, 23);
    })
    .await;
}

#[tokio::test]
async fn which_requests_do_we_reject_and_why() {
    ask(async |stage, page| {
        assert_eq!(page.click_through("nav a[href=rejected]").await, 200);
        let found = row(page, "no match").await;
        let requests: i64 = one(
            stage,
            "select sum(count)::int8 from idempotent_webhook.rejections where cause = 'no_match'",
        )
        .await;
        assert_eq!(number(&found, "Requests"), requests);
        assert_eq!(cell(&found, "Endpoint"), "deployments");
        assert!(
            cell(&found, "Last reason").starts_with("signature matches none of the secrets"),
            "{found:?}"
        );
    })
    .await;
}
