//! Clicks that were meant for an earlier page. An attacking site gets the reader to double-click, and opens a
//! confirmation page of the dashboard between the two clicks.

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use browser::{Browser, Look, Page, Server};

use crate::stage::{PREFIX, Stage, ada, assert_sound};

const CONFIRM: &str = "confirm?action=discard&endpoint=billing&state=dead&before=9999999999";

const BUTTON: &str = ".confirm button";

const HELD_BACK: &str = ".notice a";

async fn two_dead() -> Stage {
    let stage = Stage::empty().await;
    stage.dead("billing", "a-1", "no such order: 1").await;
    stage.dead("billing", "b-2", "no such order: 2").await;
    stage
}

async fn assert_nothing_done(stage: &Stage) {
    assert_eq!(stage.kept().await, ["billing a-1 dead", "billing b-2 dead"]);
    assert!(stage.audit().await.is_empty());
}

async fn discards(page: &mut Page, stage: &Stage) {
    assert_eq!(page.click_through(BUTTON).await, 200);
    stage.wait_for_actions().await;
    assert!(stage.kept().await.is_empty());
    let audit = ["ada: discard billing dead deliveries, changed 2"];
    assert_eq!(stage.audit().await, audit);
}

/// A page on which every press of the mouse button leads to another page.
async fn leading_to(target: &str) -> Server {
    let html = format!(
        "<!doctype html><html lang=en><title>Elsewhere</title><link rel=icon href='data:,'>
        <style>html, body {{ height: 100% }}</style><h1>Win a prize</h1>
        <script>addEventListener('mousedown', () => {{ location.href = {target:?} }})</script>"
    );
    Server::start(Router::new().route("/", get(async move || Html(html)))).await
}

#[tokio::test]
async fn a_double_click_on_another_site_changes_nothing() {
    let (stage, browser) = tokio::join!(two_dead(), Browser::start());
    let server = stage.serve(ada()).await;
    let confirm = server.url(&format!("{PREFIX}/{CONFIRM}"));
    let elsewhere = leading_to(&confirm).await;
    // `localhost` is another site than `127.0.0.1`, and not only another origin.
    let site = elsewhere.url("/").replace("127.0.0.1", "localhost");
    let mut page = browser.page(Look::default()).await;
    assert_eq!(page.goto(&confirm).await, 200);
    let button = page.place_of(BUTTON).await;
    page.goto(&site).await;
    page.click_at(button, 1).await;
    assert_eq!(page.wait_for_navigation().await, 200);
    assert_eq!(page.url().await, confirm);
    let held_back = page.place_of(HELD_BACK).await;

    for place in [button, held_back] {
        // Clicks as fast as possible: each further click comes as soon as the page is there to which the previous click
        // has led.
        for clicks in [2, 3] {
            page.goto(&site).await;
            for number in 1..=clicks {
                page.click_at(place, number).await;
            }
            page.findings().await;
            assert_nothing_done(&stage).await;
        }
        page.goto(&site).await;
        page.click_at(place, 1).await;
        assert_eq!(page.wait_for_navigation().await, 200);
        assert_sound(&page).await;
        assert_eq!(page.count("main form, main button").await, 0);
        page.click_at(place, 2).await;
        if place == held_back {
            assert_eq!(page.wait_for_navigation().await, 200);
            assert_eq!(page.count(BUTTON).await, 1);
        }
        page.click_at(place, 3).await;
        page.findings().await;
        assert_nothing_done(&stage).await;
    }
}

#[tokio::test]
async fn a_reader_who_has_come_from_another_site_goes_on() {
    for javascript in [true, false] {
        let (stage, browser) = tokio::join!(two_dead(), Browser::start());
        let server = stage.serve(ada()).await;
        let confirm = server.url(&format!("{PREFIX}/{CONFIRM}"));
        let html = format!(
            "<!doctype html><html lang=en><title>Chat</title><link rel=icon href='data:,'>
            <main><h1>Chat</h1><a href={confirm:?}>Shall we?</a></main>"
        );
        let chat = Server::start(Router::new().route("/", get(async move || Html(html)))).await;
        let look = Look {
            javascript,
            dark: javascript,
            width: if javascript { 320 } else { 1280 },
            ..Look::default()
        };
        let mut page = browser.page(look).await;
        page.goto(&server.url(&format!("{PREFIX}/overview"))).await;
        // The attacking page may also be another origin of the same site.
        for chat in [
            chat.url("/"),
            chat.url("/").replace("127.0.0.1", "localhost"),
        ] {
            page.goto(&chat).await;
            assert_eq!(page.click_through("a").await, 200);
            assert!(page.text().await.contains("from another site"));
            assert_sound(&page).await;
        }
        assert_eq!(page.click_through(HELD_BACK).await, 200);
        assert_eq!(page.url().await, confirm);
        assert_eq!(page.text_of("h1").await, "Discard 2 deliveries?");
        assert_eq!(page.count(".notice").await, 0);
        assert_sound(&page).await;
        assert_nothing_done(&stage).await;
        discards(&mut page, &stage).await;
        page.assert_clean().await;
    }
}

#[tokio::test]
async fn a_confirmation_takes_no_click_at_first() {
    for javascript in [true, false] {
        let (stage, browser) = tokio::join!(two_dead(), Browser::start());
        let server = stage.serve(ada()).await;
        let look = Look {
            javascript,
            ..Look::default()
        };
        let mut page = browser.page(look).await;
        page.goto(&server.url(&format!("{PREFIX}/{CONFIRM}"))).await;
        let button = page.place_of(BUTTON).await;
        // Keeps the button in the state in which the page appears, for as long as the test takes.
        page.eval::<()>(
            "(() => {
                const button = document.querySelector('.confirm button');
                button.style.animation = 'none';
                button.getAnimations();
                button.style.animation = '';
                for (const animation of button.getAnimations()) animation.pause();
            })()",
        )
        .await;
        for number in [1, 2, 3, 1] {
            page.click_at(button, number).await;
        }
        page.findings().await;
        assert!(page.url().await.ends_with(CONFIRM));
        assert_nothing_done(&stage).await;
        page.eval::<()>(
            "document.querySelector('.confirm button').getAnimations()
                .forEach((animation) => animation.play())",
        )
        .await;
        discards(&mut page, &stage).await;
    }
}

/// The second click selects a word on the page that the first click has led to. The reader did not mean that selection,
/// so it must not keep the page from reloading its content.
#[tokio::test]
async fn a_page_goes_on_after_a_double_click_that_has_led_to_it() {
    let (stage, browser) = tokio::join!(two_dead(), Browser::start());
    let server = stage.serve(ada()).await;
    let mut page = browser.page(Look::default()).await;
    let retry = CONFIRM.replace("discard", "retry");
    page.goto(&server.url(&format!("{PREFIX}/{retry}"))).await;
    let button = page.place_of(BUTTON).await;
    page.click_at(button, 1).await;
    assert_eq!(page.wait_for_navigation().await, 200);
    let word = page.place_of("dd .state").await;
    page.click_at(word, 2).await;
    assert_eq!(page.eval::<String>("String(getSelection())").await, "");
    page.eval::<String>("document.querySelector('h1').id = 'old'")
        .await;
    page.wait_until_true("document.querySelector('#old') === null", "another content")
        .await;
    // A selection that the reader makes is left alone.
    page.click_at(word, 1).await;
    page.click_at(word, 2).await;
    assert_ne!(page.eval::<String>("String(getSelection())").await, "");
    assert_sound(&page).await;
}
