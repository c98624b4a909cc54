//! Readers who may not act or may not see payloads, and requests that come from another site.

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use browser::{Browser, Look, Page, Server};
use idempotent_webhook::dashboard::Access;

use crate::page_list::Right;
use crate::pages::assert_has_each_page;
use crate::stage::{PREFIX, Stage, ada, assert_sound};

const PAGES: [&str; 11] = [
    "overview",
    "endpoint?endpoint=billing",
    "rejected",
    "deliveries",
    "deliveries?endpoint=billing&state=dead",
    "deliveries?endpoint=billing&state=due",
    "delivery?endpoint=billing&id=a-1",
    "delivery?endpoint=billing&id=b-2",
    "lookup?ids=a-1%0Ab-2%0Ac-3",
    "actions",
    "action?id=1",
];

/// The parts of requests that only readers who may see payloads get.
const SECRETS: [&str; 3] = [
    "secret-of-the-query",
    "secret-of-a-header",
    "no such order\"",
];

/// Every action that the dashboard offers.
const FORMS: [&[(&str, &str)]; 10] = [
    &[("action", "retry"), ("endpoint", "billing"), ("id", "a-1")],
    &[
        ("action", "discard"),
        ("endpoint", "billing"),
        ("id", "a-1"),
    ],
    &[("action", "forget"), ("endpoint", "billing"), ("id", "b-2")],
    &[
        ("action", "reprocess"),
        ("endpoint", "billing"),
        ("id", "b-2"),
    ],
    &[("action", "erase"), ("endpoint", "billing"), ("id", "a-1")],
    &[("action", "pause"), ("endpoint", "billing")],
    &[("action", "resume"), ("endpoint", "payouts")],
    &[("action", "adopt"), ("environment", "staging")],
    &[("action", "retry"), ("key", "endpoint=billing&id=a-1")],
    &[
        ("action", "discard"),
        ("endpoint", "billing"),
        ("state", "dead"),
        ("before", "4000000000"),
    ],
];

async fn stage() -> Stage {
    let stage = Stage::empty().await;
    stage.dead("billing", "a-1", "no such order").await;
    stage.processed("billing", "b-2").await;
    stage.due("billing", "c-3", "the ledger is away").await;
    stage.endpoint("payouts").pause().await.unwrap();
    let running = "insert into idempotent_webhook.operator_actions (action, endpoint, active_at)
        values ($1, 'billing', now() + interval '1 hour')";
    stage.run(running, "retry").await;
    stage
}

#[tokio::test]
async fn a_reader_sees_no_action_and_no_payload() {
    assert_has_each_page(PAGES.into_iter(), &[Right::Read]);
    let (stage, browser) = tokio::join!(stage(), Browser::start());
    let server = stage.serve(Access::read().named("bob")).await;
    let mut page = browser.page(Look::default()).await;
    for path in PAGES {
        let url = server.url(&format!("{PREFIX}/{path}"));
        assert_eq!(page.goto(&url).await, 200);
        assert_sound(&page).await;
        for action in [
            "form[method=post]:not([action=lookup])",
            "input[type=checkbox]",
            "input[name=action]",
            "a[href^=confirm]",
            "a[href^=act]:not([href^=action])",
            "a[href^=payload]",
            ".danger",
            ".primary",
        ] {
            assert_eq!(page.count(action).await, 0, "{action} on {url}");
        }
        assert_no_secrets(&page).await;
    }
}

async fn assert_no_secrets(page: &Page) {
    let html = page.html().await;
    for secret in SECRETS.into_iter().chain(["invoice.paid\\\""]) {
        assert!(!html.contains(secret), "{secret} on {}", page.url().await);
    }
    assert_eq!(page.count(".payload, .headers").await, 0);
}

#[tokio::test]
async fn payloads_are_a_right_of_their_own() {
    let (stage, browser) = tokio::join!(stage(), Browser::start());
    let mut page = browser.page(Look::default()).await;
    let delivery = "delivery?endpoint=billing&id=a-1";
    let payload = "payload?endpoint=billing&id=a-1";

    let server = stage.serve(Access::operate().named("ada")).await;
    page.goto(&server.url(&format!("{PREFIX}/{delivery}")))
        .await;
    assert_no_secrets(&page).await;
    assert_eq!(page.count("form[action=act]").await, 1);
    let forbidden = page.goto(&server.url(&format!("{PREFIX}/{payload}"))).await;
    assert_eq!(forbidden, 403);
    assert_no_secrets(&page).await;

    let server = stage
        .serve(Access::read().with_payloads().named("bob"))
        .await;
    page.goto(&server.url(&format!("{PREFIX}/{delivery}")))
        .await;
    assert_sound(&page).await;
    let html = page.html().await;
    for secret in SECRETS {
        assert!(html.contains(secret), "{secret}");
    }
    assert_eq!(page.count("form[action=act]").await, 0);
}

#[tokio::test]
async fn what_a_reader_posts_is_refused() {
    let (stage, browser) = tokio::join!(stage(), Browser::start());
    let server = stage.serve(Access::read().named("bob")).await;
    let mut page = browser.page(Look::default()).await;
    let before = (
        stage.kept().await,
        stage.claims().await,
        stage.audit().await,
    );
    let overview = server.url(&format!("{PREFIX}/overview"));
    for form in FORMS {
        for target in ["act", "confirm"] {
            page.goto(&overview).await;
            send_form(&page, target, form).await;
            assert_eq!(page.wait_for_navigation().await, 403, "{form:?}");
            assert!(page.text().await.contains("not change anything"));
        }
    }
    page.goto(&overview).await;
    send_form(&page, "cancel", &[("id", "1")]).await;
    assert_eq!(page.wait_for_navigation().await, 403);
    let url = server.url(&format!("{PREFIX}/confirm?action=pause&endpoint=billing"));
    assert_eq!(page.goto(&url).await, 403);
    let after = (
        stage.kept().await,
        stage.claims().await,
        stage.audit().await,
    );
    assert_eq!(before, after);
    page.assert_clean().await;
}

/// Sends a form that is not on the page.
async fn send_form(page: &Page, target: &str, fields: &[(&str, &str)]) {
    page.eval::<()>(&format!(
        "(() => {{
            const form = document.createElement('form');
            form.method = 'post';
            form.action = {target:?};
            for (const [name, value] of {fields}) {{
                const field = document.createElement('input');
                field.type = 'hidden';
                field.name = name;
                field.value = value;
                form.append(field);
            }}
            document.body.append(form);
            form.submit();
        }})()",
        fields = serde_json::to_string(fields).unwrap()
    ))
    .await;
}

#[tokio::test]
async fn what_another_site_posts_for_an_operator_is_refused() {
    let (stage, browser) = tokio::join!(stage(), Browser::start());
    let server = stage.serve(ada()).await;
    let html = "<!doctype html><html lang=en><title>Elsewhere</title>
        <link rel=icon href='data:,'><main><h1>Win a prize</h1></main>";
    let elsewhere = Server::start(Router::new().route("/", get(async move || Html(html)))).await;
    // Another origin of the same site, and another site.
    let another_site = elsewhere.url("/").replace("127.0.0.1", "localhost");
    let before = (
        stage.kept().await,
        stage.claims().await,
        stage.audit().await,
    );
    let mut page = browser.page(Look::default()).await;
    // Visits the dashboard first, so that the request to it does not count as foreign.
    page.goto(&server.url(&format!("{PREFIX}/overview"))).await;
    for origin in [elsewhere.url("/"), another_site] {
        for form in FORMS {
            for target in ["act", "confirm"] {
                page.goto(&origin).await;
                let target = server.url(&format!("{PREFIX}/{target}"));
                send_form(&page, &target, form).await;
                assert_eq!(
                    page.wait_for_navigation().await,
                    403,
                    "{form:?} of {origin}"
                );
                assert!(page.text().await.contains("came from another site"));
            }
        }
    }
    let after = (
        stage.kept().await,
        stage.claims().await,
        stage.audit().await,
    );
    assert_eq!(before, after);
    page.assert_clean().await;
    assert_sound(&page).await;
}
