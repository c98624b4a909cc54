//! A session that has expired: a middleware around the dashboard redirects to a login on another
//! origin.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{Html, IntoResponse, Redirect};
use axum::routing::get;
use browser::{Browser, Finding, Look, Server};
use idempotent_webhook::dashboard::Dashboard;

use crate::stage::{PREFIX, Stage, ada};

async fn login() -> Server {
    let html = "<!doctype html><html lang=en><title>Login</title><link rel=icon href='data:,'>
        <main><h1>Login</h1></main>";
    Server::start(Router::new().route("/login", get(async move || Html(html)))).await
}

/// The dashboard as `set` configures it. Every form is sent after the session has expired.
async fn serve(stage: &Stage, login: &Server, set: impl Fn(Dashboard) -> Dashboard) -> Server {
    let login = login.url("/login");
    let ended = move |request: Request, next: Next| {
        let login = login.clone();
        async move {
            match request.method().is_safe() {
                true => next.run(request).await,
                false => Redirect::to(&login).into_response(),
            }
        }
    };
    let dashboard = Dashboard::new(stage.pool.clone()).authorize(|_| ada());
    let dashboard: Router = set(dashboard).into_router();
    Server::start(Router::new().nest(PREFIX, dashboard.layer(from_fn(ended)))).await
}

#[tokio::test]
async fn a_form_leads_to_a_login_that_the_dashboard_knows() {
    let (stage, login, browser) = tokio::join!(Stage::empty(), login(), Browser::start());
    stage.dead("billing", "a-1", "no such order").await;
    let server = serve(&stage, &login, |dashboard| {
        dashboard.login_origin(&login.url(""))
    })
    .await;
    for javascript in [true, false] {
        let look = Look {
            javascript,
            ..Look::default()
        };
        let mut page = browser.page(look).await;
        page.goto(&login.url("/login")).await;
        page.goto(&server.url(&format!("{PREFIX}/delivery?endpoint=billing&id=a-1")))
            .await;
        assert_eq!(page.click_through("form[action=act] button").await, 200);
        assert_eq!(page.url().await, login.url("/login"));
        assert_eq!(page.text_of("h1").await, "Login");
        page.assert_clean().await;
        assert_eq!(stage.kept().await, ["billing a-1 dead"]);
    }
}

#[tokio::test]
async fn to_another_origin_the_browser_does_not_follow() {
    let (stage, login, browser) = tokio::join!(Stage::empty(), login(), Browser::start());
    stage.dead("billing", "a-1", "no such order").await;
    for server in [
        serve(&stage, &login, |dashboard| dashboard).await,
        serve(&stage, &login, |dashboard| {
            dashboard.login_origin("https://login.example.com")
        })
        .await,
    ] {
        let mut page = browser.page(Look::default()).await;
        page.goto(&server.url(&format!("{PREFIX}/delivery?endpoint=billing&id=a-1")))
            .await;
        page.click("form[action=act] button").await;
        let found = page.findings().await;
        let is_blocked = |finding: &Finding| matches!(finding, Finding::Violation(text) if text.contains("form-action"));
        assert!(found.iter().any(is_blocked), "{found:?}");
        assert!(!page.url().await.starts_with(&login.url("/")));
        assert_eq!(stage.kept().await, ["billing a-1 dead"]);
    }
}
