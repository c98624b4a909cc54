//! The dashboard on a phone: everything is visible without scrolling sideways, and stays in its position when a page
//! reloads its content.

use browser::{Browser, Look, Page};
use sqlx::Executor;

use crate::pages::{DELIVERIES, PAGES, STATES, busy_stage};
use crate::stage::{PREFIX, Stage, ada, assert_sound};

/// The parts of the tables that are cut off, beyond the edge, or without a size.
const CUT_OFF: &str = r#"(() => {
    const problems = [];
    const width = document.documentElement.clientWidth;
    const tell = (element, problem) => problems.push(`${problem}: ${element.outerHTML.slice(0, 200)}`);
    for (const box of document.querySelectorAll(".scroll")) {
        if (box.scrollWidth > box.clientWidth) tell(box, "scrolls to the side");
    }
    for (const part of document.querySelectorAll("main *")) {
        if (!part.checkVisibility({ visibilityProperty: true }) || part.closest(".hidden, svg > *, option")) continue;
        const { left, right } = part.getBoundingClientRect();
        if (left < 0 || right > width + 0.5) tell(part, `from ${left} to ${right}`);
    }
    const texts = (cell) => {
        const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
        const found = [];
        while (walker.nextNode()) {
            const parent = walker.currentNode.parentElement;
            const isSeen = parent.checkVisibility({ visibilityProperty: true }) && !parent.closest(".hidden, title");
            if (isSeen && walker.currentNode.data.trim()) found.push(walker.currentNode);
        }
        return found;
    };
    for (const table of document.querySelectorAll("table")) {
        if (!table.matches(".stacked")) tell(table, "not stacked");
        const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent);
        for (const row of table.querySelectorAll("tbody tr")) {
            if (row.cells.length !== heads.length) tell(row, `not of ${heads.length} cells`);
            for (const cell of row.cells) {
                for (const text of texts(cell)) {
                    const range = document.createRange();
                    range.selectNodeContents(text);
                    for (const { left, right, width: wide, height } of range.getClientRects()) {
                        if (left < 0 || right > width + 0.5) tell(cell, `from ${left} to ${right}`);
                        if (wide === 0 && height === 0) tell(cell, "without a size");
                    }
                }
                for (const part of cell.querySelectorAll("*")) {
                    if (!part.checkVisibility({ visibilityProperty: true }) || part.closest(".hidden, svg > *")) continue;
                    const { overflowX } = getComputedStyle(part);
                    if (overflowX !== "visible" && part.scrollWidth > part.clientWidth + 1) tell(part, "clipped");
                }
                // On a phone, the head of the column is not visible, so the name is next to the value.
                const isNamed = cell.dataset.label || cell.matches("th") || cell.querySelector("button, .button, input");
                if (texts(cell).length > 0 && !isNamed) tell(cell, "without a name");
            }
        }
    }
    return problems;
})()"#;

async fn assert_all_is_seen(page: &Page) {
    let url = page.url().await;
    let problems: Vec<String> = page.eval(CUT_OFF).await;
    assert!(problems.is_empty(), "{url}: {problems:#?}");
    assert!(!page.has_horizontal_overflow().await, "{url}");
    page.assert_accessible().await;
}

async fn every_page(width: u32) {
    let (stage, browser) = tokio::join!(busy_stage(), Browser::start());
    let server = stage.serve(ada()).await;
    let look = Look {
        width,
        height: 640,
        ..Look::default()
    };
    let mut page = browser.page(look).await;
    let mut paths: Vec<String> = PAGES.iter().map(|(path, _)| (*path).to_owned()).collect();
    for (endpoint, id, _) in DELIVERIES {
        paths.push(format!("delivery?endpoint={endpoint}&id={id}"));
    }
    for number in 1..=STATES.len() {
        paths.push(format!("action?id={number}"));
    }
    for path in paths {
        page.goto(&server.url(&format!("{PREFIX}/{path}"))).await;
        assert_all_is_seen(&page).await;
        // Also checks the page with all details opened.
        page.eval::<()>(
            "document.querySelectorAll('details').forEach((all) => { all.open = true })",
        )
        .await;
        assert_all_is_seen(&page).await;
    }
    page.assert_clean().await;
}

#[tokio::test]
async fn on_a_phone_all_is_seen() {
    every_page(360).await;
}

#[tokio::test]
async fn on_a_small_phone_all_is_seen() {
    every_page(320).await;
}

#[tokio::test]
async fn on_a_phone_what_is_failing_comes_first() {
    let (stage, browser) = tokio::join!(busy_stage(), Browser::start());
    let server = stage.serve(ada()).await;
    for (width, is_first) in [(360, true), (1280, false)] {
        let look = Look {
            width,
            height: 640,
            ..Look::default()
        };
        let mut page = browser.page(look).await;
        page.goto(&server.url(&format!("{PREFIX}/overview"))).await;
        let precedes: bool = page
            .eval(
                "(() => {
                    const top = (selector) => document.querySelector(selector).getBoundingClientRect().top;
                    return top('table.groups') < top('table:not(.groups)');
                })()",
            )
            .await;
        assert_eq!(precedes, is_first, "{width}");
        assert_sound(&page).await;
    }
}

#[tokio::test]
async fn the_reader_stays_where_he_is_when_the_content_is_loaded_again() {
    let (stage, browser) = tokio::join!(busy_stage(), Browser::start());
    let server = stage.serve(ada()).await;
    let look = Look {
        width: 360,
        height: 640,
        ..Look::default()
    };
    let mut page = browser.page(look).await;
    for (path, summary) in [
        (
            "endpoint?endpoint=billing",
            "details[data-key=hours] > summary",
        ),
        ("overview", "table.groups details > summary"),
    ] {
        page.goto(&server.url(&format!("{PREFIX}/{path}"))).await;
        let opened = page.count("details[data-key][open]").await;
        page.click(summary).await;
        assert_eq!(page.count("details[data-key][open]").await, opened + 1);
        let place: f64 = page
            .eval("scrollBy(0, 200), document.querySelector('h1').id = 'old', scrollY")
            .await;
        assert!(place > 200.0, "{path} is scrolled to {place}");
        page.wait_until_true("document.querySelector('#old') === null", "another content")
            .await;
        assert_eq!(page.eval::<f64>("scrollY").await, place, "{path}");
        assert_eq!(page.count("details[data-key][open]").await, opened + 1);
        assert!(page.has_focus(summary).await, "{path}");
        // The scripts have processed the new content, too.
        let times: String = page
            .eval("document.querySelector('main time').textContent")
            .await;
        assert!(!times.contains("UTC"), "{times}");
        assert_sound(&page).await;
    }
}

#[tokio::test]
async fn what_is_long_is_seen() {
    let (stage, browser) = tokio::join!(Stage::empty(), Browser::start());
    let long = "endpoint-with-a-long-name-".repeat(8);
    stage
        .dead(&long, &"id-".repeat(80), &"reason".repeat(100))
        .await;
    stage.processed(&long, &"an-id-".repeat(40)).await;
    stage
        .pool
        .execute(
            "update idempotent_webhook.kept_deliveries
            set tenant_name = repeat('tenant', 20), event_type = repeat('type.', 40)",
        )
        .await
        .unwrap();
    let server = stage.serve(ada()).await;
    let look = Look {
        width: 320,
        ..Look::default()
    };
    let mut page = browser.page(look).await;
    for path in [
        "overview",
        &format!("endpoint?endpoint={long}"),
        "deliveries",
        "deliveries?state=processed",
        &format!("lookup?ids={}", "id-".repeat(80)),
        &format!("delivery?endpoint={long}&id={}", "id-".repeat(80)),
    ] {
        assert_eq!(
            page.goto(&server.url(&format!("{PREFIX}/{path}"))).await,
            200
        );
        assert_all_is_seen(&page).await;
    }
}
