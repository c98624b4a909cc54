//! Features of pages with scripts: times in the reader's time zone, a checkbox that selects all rows, and pages that
//! reload themselves.

use std::time::{Duration, Instant};

use browser::{Browser, Look, Page};
use sqlx::Executor;

use crate::stage::{PREFIX, Stage, ada, assert_sound};

/// Sets all times of the deliveries to the same moment, long ago.
const LONG_AGO: &str = "
    update idempotent_webhook.kept_deliveries
    set first_received_at = timestamptz '2020-01-02 03:04:05Z',
        first_failed_at = timestamptz '2020-01-02 03:04:05Z',
        last_failed_at = timestamptz '2020-01-02 03:04:05Z'
";

const RUNNING: &str = "
    insert into idempotent_webhook.operator_actions (action, endpoint, selection, active_at)
    values ('retry', 'billing', 'dead deliveries', now() + interval '1 hour')
";

const ENDED: &str = "update idempotent_webhook.operator_actions set ended_at = now()";

#[tokio::test]
async fn times_are_in_the_zone_of_the_reader() {
    let (stage, browser) = tokio::join!(Stage::empty(), Browser::start());
    stage.dead("billing", "a-1", "no such order").await;
    stage.pool.execute(LONG_AGO).await.unwrap();
    let server = stage.serve(ada()).await;
    for (timezone, javascript, shown, exact) in [
        (
            "Asia/Tokyo",
            true,
            "Jan 2, 2020, 12:04 PM",
            "January 2, 2020 at 12:04:05 PM GMT+09:00",
        ),
        (
            "America/New_York",
            true,
            "Jan 1, 2020, 10:04 PM",
            "January 1, 2020 at 10:04:05 PM GMT-05:00",
        ),
        (
            "Asia/Tokyo",
            false,
            "2020-01-02 03:04 UTC",
            "2020-01-02 03:04:05 UTC",
        ),
    ] {
        let look = Look {
            timezone,
            javascript,
            ..Look::default()
        };
        let mut page = browser.page(look).await;
        for path in ["overview", "deliveries", "delivery?endpoint=billing&id=a-1"] {
            let url = server.url(&format!("{PREFIX}/{path}"));
            assert_eq!(page.goto(&url).await, 200);
            let time = "time[datetime='2020-01-02T03:04:05Z']";
            assert!(page.count(time).await >= 1, "{url}");
            assert_eq!(plain(&page.text_of(time).await), shown, "{url}");
            let title: String = page
                .eval(&format!("document.querySelector({time:?}).title"))
                .await;
            assert_eq!(plain(&title), exact, "{url}");
            assert_sound(&page).await;
        }
    }
}

/// Replaces the narrow space that browsers write before AM and PM.
fn plain(text: &str) -> String {
    text.replace('\u{202f}', " ")
}

#[tokio::test]
async fn the_hours_of_the_plot_are_in_the_zone_of_the_reader() {
    let (stage, browser) = tokio::join!(Stage::empty(), Browser::start());
    stage.processed("billing", "a-1").await;
    let activity = "
        insert into idempotent_webhook.activity (endpoint, hour, source, outcome, count, last_at)
        values ('billing', date_trunc('hour', now(), 'UTC'), 'request', 'processed', 7, now())";
    stage.pool.execute(activity).await.unwrap();
    let server = stage.serve(ada()).await;
    // The time zone differs from UTC by some hours and 45 minutes, so a full hour in UTC is never a full hour in this
    // time zone.
    for (javascript, minutes) in [(true, ":45"), (false, ":00 UTC")] {
        let look = Look {
            timezone: "Asia/Kathmandu",
            javascript,
            ..Look::default()
        };
        let mut page = browser.page(look).await;
        page.goto(&server.url(&format!("{PREFIX}/overview"))).await;
        let last: String = page
            .eval("[...document.querySelectorAll('svg title')].at(-1).textContent")
            .await;
        assert!(last.contains(minutes), "{last}");
        assert!(last.contains(": 7 processed, 0 duplicate"), "{last}");
    }
}

#[tokio::test]
async fn a_box_selects_all() {
    let (stage, browser) = tokio::join!(Stage::empty(), Browser::start());
    for id in ["a-1", "b-2", "c-3"] {
        stage.dead("billing", id, "no such order").await;
    }
    let server = stage.serve(ada()).await;
    let mut page = browser.page(Look::default()).await;
    page.goto(&server.url(&format!("{PREFIX}/deliveries")))
        .await;
    let all = "thead input";
    let checked = "tbody input:checked";
    page.click(all).await;
    assert_eq!(page.count(checked).await, 3);
    assert_sound(&page).await;
    page.click("tbody input").await;
    assert_eq!(page.count(checked).await, 2);
    let is_between: bool = page
        .eval("document.querySelector('thead input').indeterminate")
        .await;
    assert!(is_between);
    page.click("tbody input").await;
    assert_eq!(page.count("thead input:checked").await, 1);
    page.click(all).await;
    assert_eq!(page.count(checked).await, 0);

    page.click(all).await;
    assert_eq!(page.click_through("button[value=retry]").await, 200);
    assert_eq!(page.text_of("h1").await, "Retry 3 deliveries?");
    // The checkbox for all rows is not a delivery.
    assert_eq!(page.count(".confirm input[name=key]").await, 3);
}

#[tokio::test]
async fn a_page_loads_itself_again_unless_the_reader_is_busy_with_it() {
    let (stage, browser) = tokio::join!(Stage::empty(), Browser::start());
    stage.pool.execute(RUNNING).await.unwrap();
    let server = stage.serve(ada()).await;
    let url = server.url(&format!("{PREFIX}/action?id=1"));
    let mut page = browser.page(Look::default()).await;
    assert_eq!(page.goto(&url).await, 200);
    assert!(loads_itself_again(&page).await);

    page.goto(&url).await;
    page.eval::<()>("document.querySelector('main button').focus()")
        .await;
    assert!(
        !loads_itself_again(&page).await,
        "while a button has the focus"
    );
    page.eval::<()>("document.activeElement.blur()").await;
    assert!(loads_itself_again(&page).await);

    page.goto(&url).await;
    page.eval::<()>("getSelection().selectAllChildren(document.querySelector('dd'))")
        .await;
    assert!(!loads_itself_again(&page).await, "while a text is selected");
    page.eval::<()>("getSelection().removeAllRanges()").await;
    assert!(loads_itself_again(&page).await);

    stage.pool.execute(ENDED).await.unwrap();
    page.goto(&url).await;
    assert!(!loads_itself_again(&page).await, "once it has ended");
    page.assert_clean().await;
}

#[tokio::test]
async fn without_scripts_no_page_loads_itself_again() {
    let (stage, browser) = tokio::join!(Stage::empty(), Browser::start());
    stage.pool.execute(RUNNING).await.unwrap();
    let server = stage.serve(ada()).await;
    let look = Look {
        javascript: false,
        ..Look::default()
    };
    let mut page = browser.page(look).await;
    page.goto(&server.url(&format!("{PREFIX}/action?id=1")))
        .await;
    assert!(!loads_itself_again(&page).await);
    assert_eq!(page.click_through("main a.button").await, 200);
    assert_eq!(page.text_of("dd .state").await, "running");
}

/// Whether the page reloads its content within three of its reload intervals. A reload replaces only the content of the
/// page, and not the page.
async fn loads_itself_again(page: &Page) -> bool {
    page.eval::<()>("document.querySelector('main h1').id = 'old', undefined")
        .await;
    let until = Instant::now() + Duration::from_secs(6);
    while Instant::now() < until {
        if page.count("#old").await == 0 {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    false
}
