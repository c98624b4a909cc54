//! A dashboard that is protected only by its network, under a foreign host name (DNS rebinding): what a site can do if
//! its own name resolves to an address in that network.

use axum::Router;
use browser::{Browser, Look, Server};
use idempotent_webhook::dashboard::Dashboard;

use crate::stage::{PREFIX, Stage, assert_sound};

#[tokio::test]
async fn only_the_hosts_of_the_dashboard_are_answered() {
    let (stage, browser) = tokio::join!(Stage::empty(), Browser::start());
    stage.dead("billing", "a-1", "secret-of-a-reason").await;
    let dashboard = Dashboard::new(stage.pool.clone())
        .authenticated_in_front()
        .hosts(["127.0.0.1"])
        .into_router();
    let server = Server::start(Router::new().nest(PREFIX, dashboard)).await;
    let known = server.url(PREFIX);
    let unknown = known.replace("127.0.0.1", "localhost");
    let mut page = browser.page(Look::default()).await;
    let pages = [
        "overview",
        "deliveries",
        "delivery?endpoint=billing&id=a-1",
        "confirm?action=discard&endpoint=billing&id=a-1",
    ];
    for path in pages {
        assert_eq!(page.goto(&format!("{unknown}/{path}")).await, 403, "{path}");
        assert!(page.text().await.contains("not a host of the dashboard"));
        assert!(!page.html().await.contains("secret-of-a-reason"));
        assert_eq!(page.count("main form").await, 0);
        assert_sound(&page).await;
    }
    // The browser treats the dashboard as the same origin, so scripts of the site can read and send anything there.
    for (path, method, kind) in [
        ("api/overview", "GET", ""),
        ("api/act", "POST", "application/json"),
        ("act", "POST", "application/x-www-form-urlencoded"),
    ] {
        let body = match kind {
            "" => "null",
            "application/json" => r#"'{"action":"discard","endpoint":"billing","id":"a-1"}'"#,
            _ => "'action=discard&endpoint=billing&id=a-1'",
        };
        let status: u16 = page
            .eval(&format!(
                "fetch('{path}', {{
                    method: '{method}',
                    headers: {{ 'content-type': '{kind}' }},
                    body: {body},
                }}).then((answer) => answer.status)"
            ))
            .await;
        assert_eq!(status, 403, "{path}");
    }
    page.findings().await;
    assert_eq!(stage.kept().await, ["billing a-1 dead"]);
    assert!(stage.audit().await.is_empty());

    for path in pages {
        assert_eq!(page.goto(&format!("{known}/{path}")).await, 200, "{path}");
        assert_sound(&page).await;
    }
    assert_eq!(page.click_through(".confirm button").await, 200);
    assert!(stage.kept().await.is_empty());
    page.assert_clean().await;
}
