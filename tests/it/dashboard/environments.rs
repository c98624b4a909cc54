//! Guarantee Deploy 1: the banner for a database that processes of another environment use, and its
//! adoption.

use super::*;

/// An application with the database of production. Processes of these other environments use the
/// same database.
async fn used_by(others: &[&str]) -> TestApp {
    let app = with_a_dead_delivery().await;
    app.database
        .run("insert into idempotent_webhook.environment (name) values ('production')")
        .await;
    for other in others {
        let sql =
            format!("insert into idempotent_webhook.other_environments values ('{other}', now())");
        app.database.run(&sql).await;
    }
    app
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_1_a_banner_names_the_environments() {
    let app = used_by(&["<b>staging</b>", ""]).await;
    let board = Board::operator(&app.database.pool);
    for page in ["overview", "endpoint?endpoint=test"] {
        let page = board.page(page).await;
        page.shows(
            "This database belongs to a different environment than some processes that use it.",
        );
        page.shows("<code>production</code>");
        page.shows("<code>&lt;b&gt;staging&lt;/b&gt;</code>");
        page.shows("no environment");
        page.hides("<b>staging");
        // This operator does not have the right to adopt a database.
        page.hides("Adopt");
    }
    let environment = board.json("overview").await["environment"].clone();
    let expected = serde_json::json!({"name": "production", "others": ["", "<b>staging</b>"]});
    assert_eq!(environment, expected);

    // The processes of the other environments are gone.
    app.database
        .run("update idempotent_webhook.other_environments set seen_at = now() - interval '3 minutes'")
        .await;
    board.page("overview").await.hides("another environment");
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_1_a_database_is_adopted_by_those_who_may() {
    let app = used_by(&["staging"]).await;
    let pool = &app.database.pool;
    let form = "action=adopt&environment=staging";
    let all = Access::operate().with_payloads().with_erasure();
    for access in [
        all.clone(),
        Access::read().with_adoption(),
        all.clone().with_adoption().of_endpoints(["test"]),
        all.clone().with_adoption().of_tenants(["red"]),
    ] {
        let board = Board::of(pool, access);
        assert_eq!(board.post("act", form).await.status, 403);
        assert_eq!(board.get(&format!("confirm?{form}")).await.status, 403);
    }
    assert_eq!(actions(&app.database).await, []);

    let board = Board::of(pool, all.with_adoption().named("ada"));
    board.page("overview").await.shows("Adopt it for staging…");
    let confirmation = board.page(&format!("confirm?{form}")).await;
    confirmation.shows("Adopt this database for staging?");
    confirmation.shows("It belongs to the environment <code>production</code>.");
    for name in ["", "a%20b", "%0a"] {
        let form = format!("action=adopt&environment={name}");
        assert_eq!(board.post("act", &form).await.status, 400);
    }
    assert_eq!(board.post("act", form).await.status, 303);
    assert_eq!(actions(&app.database).await, [action("adopt", None, 1)]);
    let paused = "select count(*) from idempotent_webhook.kept_endpoints
        where endpoint = 'test' and paused_at is not null";
    assert_eq!(app.database.count(paused).await, 1);
    let page = board.page("overview").await;
    page.hides("another environment");
    page.shows("paused");
    board
        .page("actions")
        .await
        .shows("the database: staging, before that production");
    board
        .page("action?id=1")
        .await
        .shows("staging, before that production");
    // The button is pressed again.
    assert_eq!(board.post("act", form).await.status, 400);
}
