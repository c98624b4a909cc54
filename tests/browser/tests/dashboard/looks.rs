//! Every page in light and dark colours, in wide and narrow windows, with scripts and without.

use browser::{Browser, Look, Server};
use idempotent_webhook::dashboard::Access;

use crate::pages::{DELIVERIES, PAGES, STATES, busy_stage};
use crate::stage::{PREFIX, Stage, ada, assert_sound};

async fn every_page(dark: bool, width: u32) {
    let (stage, browser) = tokio::join!(busy_stage(), Browser::start());
    let server = stage.serve(ada()).await;
    let forbidden = stage.serve(Access::none()).await;
    let first_list = server.url(&format!("{PREFIX}/deliveries?endpoint=imports"));
    for javascript in [true, false] {
        let look = Look {
            dark,
            width,
            javascript,
            ..Look::default()
        };
        let mut page = browser.page(look).await;
        for (path, status) in PAGES {
            let url = server.url(&format!("{PREFIX}/{path}"));
            assert_eq!(page.goto(&url).await, status, "{url}");
            assert_sound(&page).await;
            assert_eq!(page.count("link[rel=stylesheet]").await, 1);
            let is_styled: bool = page.eval("document.styleSheets.length === 1").await;
            assert!(is_styled, "{url} has no style");
        }
        for (endpoint, id, state) in DELIVERIES {
            let url = server.url(&format!("{PREFIX}/delivery?endpoint={endpoint}&id={id}"));
            assert_eq!(page.goto(&url).await, 200, "{url}");
            assert_sound(&page).await;
            assert_eq!(page.text_of(".lead .state").await, state, "{url}");
        }
        for (number, state) in (1..).zip(STATES) {
            let url = server.url(&format!("{PREFIX}/action?id={number}"));
            assert_eq!(page.goto(&url).await, 200, "{url}");
            assert_sound(&page).await;
            assert_eq!(page.text_of("dd .state").await, state, "{url}");
        }
        assert_eq!(page.goto(&first_list).await, 200);
        assert_eq!(page.count("tbody tr").await, 50);
        assert_eq!(page.click_through("a[rel=next]").await, 200);
        assert_sound(&page).await;
        assert_eq!(page.count("tbody tr").await, 10);
        let url = forbidden.url(&format!("{PREFIX}/overview"));
        assert_eq!(page.goto(&url).await, 403);
        assert_sound(&page).await;
    }
}

#[tokio::test]
async fn every_page_is_sound_in_light_and_wide() {
    every_page(false, 1280).await;
}

#[tokio::test]
async fn every_page_is_sound_in_dark_and_wide() {
    every_page(true, 1280).await;
}

#[tokio::test]
async fn every_page_is_sound_in_light_and_narrow() {
    every_page(false, 360).await;
}

#[tokio::test]
async fn every_page_is_sound_in_dark_and_narrow() {
    every_page(true, 360).await;
}

#[tokio::test]
async fn before_anything_has_arrived_each_page_says_what_will_be_there() {
    let (stage, browser) = tokio::join!(Stage::empty(), Browser::start());
    let server: Server = stage.serve(ada()).await;
    for (dark, width, javascript) in [(false, 1280, true), (true, 360, false)] {
        let look = Look {
            dark,
            width,
            javascript,
            ..Look::default()
        };
        let mut page = browser.page(look).await;
        for (path, text) in [
            ("overview", "as soon as its first delivery has arrived"),
            ("deliveries", "Nothing is failing here"),
            ("deliveries?state=dead", "Nothing is dead here"),
            ("deliveries?state=due", "Nothing is due"),
            ("deliveries?state=recorded", "Nothing is recorded here"),
            (
                "deliveries?state=processed",
                "Processed deliveries will be listed here",
            ),
            ("rejected", "None."),
            ("lookup?ids=unknown", "No deliveries have been deleted here"),
            ("actions", "What operators do"),
        ] {
            let url = server.url(&format!("{PREFIX}/{path}"));
            assert_eq!(page.goto(&url).await, 200);
            assert_sound(&page).await;
            assert!(page.text().await.contains(text), "{url}");
        }
    }
}
