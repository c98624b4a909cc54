//! Guarantees D5 and G11: the dashboard works under any path, and reports what is wrong with the database.

use super::*;

#[tokio::test]
async fn d4_without_its_tables_a_page_says_what_to_do() {
    let database = Database::empty().await;
    let board = Board::operator(&database.pool);
    let log = logged(async {
        let answer = board.get("overview").await;
        assert_eq!(answer.status, 503);
        answer.shows("run idempotent_webhook::migrate");
    })
    .await;
    let hint = "does not exist; has `idempotent_webhook::migrate` been run?";
    assert!(log.contains("WARN") && log.contains(hint), "{log}");
    assert!(!log.contains("at line"), "{log}");
}

/// The pool's error only says that there was no connection in time. The log must give the cause.
#[tokio::test]
async fn g11_a_page_without_postgres_logs_why() {
    let options = PgConnectOptions::new().host("127.0.0.1").port(1);
    let pool = PgPoolOptions::new()
        .acquire_timeout(Duration::from_secs(1))
        .connect_lazy_with(options);
    let board = Board::operator(&pool);
    let log = logged(async {
        assert_eq!(board.get("overview").await.status, 503);
    })
    .await;
    let cause = "nothing listens at 127.0.0.1:1: ";
    assert!(log.contains("WARN") && log.contains(cause), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn d5_it_works_under_any_prefix() {
    let app = with_a_dead_delivery().await;
    let dashboard = || {
        Dashboard::new(app.database.pool.clone())
            .authenticated_in_front()
            .into_router()
    };
    for (router, start, leads_to) in [
        (dashboard(), "/", "./overview"),
        (
            Router::new().nest("/hooks", dashboard()),
            "/hooks",
            "./hooks/overview",
        ),
        (
            Router::new().nest("/a", Router::new().nest("/b/c", dashboard())),
            "/a/b/c",
            "./c/overview",
        ),
        // A dashboard nested at `/hooks` with `nest` does not answer `/hooks/`, so these cases use `nest_service`.
        (
            Router::new().nest_service("/hooks", dashboard()),
            "/hooks",
            "./hooks/overview",
        ),
        (
            Router::new().nest_service("/hooks", dashboard()),
            "/hooks/",
            "./overview",
        ),
    ] {
        let board = Board(router);
        let get = async |uri: &str| {
            let request = Request::get(uri).header("sec-fetch-site", "none");
            board.send(request.body(Body::empty()).unwrap()).await
        };
        let answer = get(start).await;
        assert_eq!(answer.status, 303, "{start}");
        assert_eq!(answer.header("location"), leads_to);
        let prefix = start.trim_end_matches('/');
        let overview = get(&format!("{prefix}/overview")).await;
        assert_eq!(overview.status, 200);
        // All links are relative, and none leaves the level of the pages.
        for attribute in ["href=\"", "src=\"", "action=\""] {
            for link in overview.text().split(attribute).skip(1) {
                let link = link.split('"').next().unwrap();
                assert!(!link.contains('/') && !link.contains(':'), "{link}");
            }
        }
    }
}

/// The role has the rights that `migrate` documents, and no others.
#[tokio::test(flavor = "multi_thread")]
async fn g11_the_dashboard_works_for_a_role_with_the_documented_rights() {
    let app = with_a_dead_delivery().await;
    let role = format!("operating_{}", app.database.name);
    app.database
        .run(&format!(
            "create role {role} login;
             grant usage on schema idempotent_webhook to {role};
             grant select, insert, delete on all tables in schema idempotent_webhook to {role};
             grant update on idempotent_webhook.kept_deliveries, idempotent_webhook.kept_endpoints,
                idempotent_webhook.discarded, idempotent_webhook.operator_actions to {role}"
        ))
        .await;
    let options = app.database.options().username(&role);
    let pool = PgPool::connect_lazy_with(options);
    works_on(&app.database, &pool).await;
    pool.close().await;
    app.database
        .run(&format!("drop owned by {role}; drop role {role}"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn g11_the_dashboard_works_where_transactions_are_serializable() {
    let app = with_a_dead_delivery().await;
    let options = app.database.options();
    let options = options.options([("default_transaction_isolation", "serializable")]);
    works_on(&app.database, &PgPool::connect_lazy_with(options)).await;
}

/// A proxy that strips a prefix sends it in a header. The dashboard needs the prefix if the URL does not end in a
/// slash, because relative links would lead elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn d5_a_stripped_prefix_without_a_slash_is_found() {
    let database = Database::new().await;
    let board = Board::operator(&database.pool);
    for (prefix, leads_to) in [
        ("/admin/webhooks", "/admin/webhooks/overview"),
        ("/admin/webhooks/", "/admin/webhooks/overview"),
        ("//evil.example", "./overview"),
        ("https://evil.example", "./overview"),
        ("/\\evil.example", "./overview"),
        ("/a?b", "./overview"),
        ("", "./overview"),
    ] {
        let request = Request::get("/").header("x-forwarded-prefix", prefix);
        let answer = board.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.header("location"), leads_to, "{prefix}");
    }
}
