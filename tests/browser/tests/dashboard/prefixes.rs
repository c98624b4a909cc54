//! The links of the dashboard work regardless of where it is nested and how a proxy changes its paths.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};

use axum::Router;
use browser::{Browser, Look, Page, Proxy, Server};
use reqwest::Url;

use crate::stage::{PREFIX, Stage, ada, assert_sound};

async fn stage() -> Stage {
    let stage = Stage::empty().await;
    stage.dead("billing", "a-1", "no such order: 1").await;
    stage.due("billing", "b-2", "the ledger is away").await;
    stage.processed("billing", "c-3").await;
    // With 51 deliveries, the list has more than one page.
    stage.many_dead("imports", 51).await;
    stage.endpoint("imports").pause().await.unwrap();
    stage
}

#[tokio::test]
async fn nested() {
    let stage = stage().await;
    for prefix in [PREFIX, "/x"] {
        let server = Server::start(Router::new().nest(prefix, stage.dashboard(ada()))).await;
        assert_works(&stage, &server.url(prefix), &server.url(prefix)).await;
    }
}

#[tokio::test]
async fn nested_twice() {
    let stage = stage().await;
    let inner = Router::new().nest("/webhooks", stage.dashboard(ada()));
    let server = Server::start(Router::new().nest("/admin", inner)).await;
    assert_works(&stage, &server.url(PREFIX), &server.url(PREFIX)).await;
}

#[tokio::test]
async fn nested_as_a_service_also_with_a_slash_at_the_end() {
    let stage = stage().await;
    let router = Router::new().nest_service(PREFIX, stage.dashboard(ada()));
    let server = Server::start(router).await;
    let (base, slash) = (server.url(PREFIX), server.url(&format!("{PREFIX}/")));
    let browser = Browser::start().await;
    let mut page = browser.page(Look::default()).await;
    assert_eq!(page.goto(&base).await, 200);
    assert_eq!(page.url().await, server.url(&format!("{PREFIX}/overview")));
    assert_works(&stage, &slash, &base).await;
}

#[tokio::test]
async fn as_the_whole_router() {
    let stage = stage().await;
    let server = Server::start(stage.dashboard(ada())).await;
    assert_works(&stage, &server.url("/"), &server.url("")).await;
}

#[tokio::test]
async fn behind_a_proxy_that_strips_a_prefix() {
    let stage = stage().await;
    let server = Server::start(stage.dashboard(ada())).await;
    let proxy = Proxy::stripping("/ops", &server).await;
    assert_works(&stage, &proxy.url("/ops/"), &proxy.url("/ops")).await;
}

#[tokio::test]
async fn behind_a_proxy_that_adds_a_prefix() {
    let stage = stage().await;
    let router = Router::new().nest(PREFIX, stage.dashboard(ada()));
    let server = Server::start(router).await;
    let proxy = Proxy::adding(PREFIX, &server).await;
    assert_works(&stage, &proxy.url("/overview"), &proxy.url("")).await;
}

/// Asserts that all links from the first page lead to pages below the base, that these pages have their style and
/// script, and that actions work.
async fn assert_works(stage: &Stage, start: &str, base: &str) {
    let browser = Browser::start().await;
    let mut page = browser.page(Look::default()).await;
    assert_eq!(page.goto(start).await, 200, "{start}");
    assert_eq!(page.text_of("h1").await, "Overview");

    let actions = stage.audit().await.len();
    assert_eq!(
        page.click_through("form:has([value=resume]) button").await,
        200
    );
    assert_is_one_of_ours(&page, base).await;
    assert_eq!(page.text_of("h1").await, "Overview");
    assert_eq!(
        page.click_through("form:has([value=pause]) button").await,
        200
    );
    page.goto(&format!("{base}/delivery?endpoint=billing&id=a-1"))
        .await;
    assert_eq!(page.click_through("form[action=act] button").await, 200);
    assert_is_one_of_ours(&page, base).await;
    assert_eq!(page.text_of("h1").await, "Delivery");
    assert_eq!(stage.audit().await.len(), actions + 3);

    let visited = crawl(&mut page, &format!("{base}/overview"), base).await;
    for name in [
        "overview",
        "deliveries",
        "delivery",
        "lookup",
        "actions",
        "action",
        "confirm",
    ] {
        let path = format!("{base}/{name}");
        assert!(
            visited
                .iter()
                .any(|url| url.split('?').next() == Some(&path)),
            "{name}"
        );
    }
    assert!(
        visited.iter().any(|url| url.contains("after=")),
        "a second page"
    );
    let leave = "update idempotent_webhook.kept_endpoints set paused_at = null where endpoint = $1";
    stage.run(leave, "billing").await;
    stage.endpoint("imports").pause().await.unwrap();
    page.assert_clean().await;

    // The links of pages that do not exist work as well, at any depth.
    for path in ["unknown", "unknown/", "unknown/below/another"] {
        assert_eq!(page.goto(&format!("{base}/{path}")).await, 404);
        assert_is_one_of_ours(&page, base).await;
        assert_sound(&page).await;
    }
}

/// Follows links from the first page, and visits one page of each kind.
async fn crawl(page: &mut Page, start: &str, base: &str) -> Vec<String> {
    let mut known = HashSet::new();
    let mut visited = Vec::new();
    let mut waiting = VecDeque::from([start.to_owned()]);
    while let Some(url) = waiting.pop_front() {
        assert_eq!(page.goto(&url).await, 200, "{url}");
        assert_is_one_of_ours(page, base).await;
        visited.push(url);
        let links: Vec<(String, bool)> = page
            .eval(
                "[...document.querySelectorAll('a[href]')]
                    .filter((link) => !link.hash)
                    .map((link) => [link.href, link.hasAttribute('download')])",
            )
            .await;
        for (link, is_download) in links {
            if known.insert(kind(&link)) {
                match is_download {
                    true => assert_eq!(reqwest::get(&link).await.unwrap().status(), 200, "{link}"),
                    false => waiting.push_back(link),
                }
            }
        }
    }
    visited
}

/// The kind of a link. Links that differ only in which delivery, endpoint or other object they lead to have the same
/// kind.
fn kind(link: &str) -> String {
    let url = Url::parse(link).unwrap();
    let of = |(name, value): (Cow<str>, Cow<str>)| match &*name {
        "action" | "state" => format!("{name}={value}"),
        name => name.to_owned(),
    };
    let names: Vec<_> = url.query_pairs().map(of).collect();
    format!("{} {}", url.path(), names.join(" "))
}

/// Asserts that the address of the page is below the base, and so is everything that the page loads, links to, or sends
/// forms to.
async fn assert_is_one_of_ours(page: &Page, base: &str) {
    let mut addresses: Vec<String> = page
        .eval(
            "[...document.querySelectorAll('[href], [src], [action]')]
                // `form.action` would be the form's field named `action`, so this reads the attribute.
                .map((element) => ['href', 'src', 'action'].map((name) => element.getAttribute(name)))
                .map((values) => new URL(values.find((value) => value), document.baseURI).href)",
        )
        .await;
    addresses.push(page.url().await);
    for address in addresses {
        assert!(
            address.starts_with(&format!("{base}/")),
            "{address} is not below {base}"
        );
    }
    let is_styled: bool = page
        .eval("document.styleSheets[0].cssRules.length > 0")
        .await;
    assert!(is_styled, "{} has no style", page.url().await);
}
