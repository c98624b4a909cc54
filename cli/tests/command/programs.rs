//! `status` and `why`, with a dashboard on a real Postgres: their output and exit status.

use axum::Router;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, Redirect};
use axum::routing::get;
use idempotent_webhook::dashboard::{Access, Dashboard};
use sqlx::{Executor, PgPool};

use crate::application::{database, serve};
use crate::run::{Run, run_in, shows_nothing_of};

const READER: &str = "token-of-a-reader-0123456789";
const ADMIN: &str = "token-of-an-admin-0123456789";

const DEAD: &str = "
    insert into idempotent_webhook.kept_deliveries
        (endpoint, delivery_id, event_type, state, attempts, first_failed_at, last_failed_at, reason, history)
    values ('billing', 'evt_dead', 'invoice.paid', 'dead', 1, now(), now(), 'no customer \"Ada\"',
        idempotent_webhook.with_attempt('[]', 'provider', 500::int2, 'no customer \"Ada\"'));
    insert into idempotent_webhook.kept_requests (endpoint, delivery_id, format, method, uri, headers, body)
    values ('billing', 'evt_dead', 1, 'POST', '/?secret', '', 'a payload');
    insert into idempotent_webhook.deliveries (endpoint, delivery_id) values ('billing', 'evt_done')
";

/// Serves the dashboard of a database, and returns its address.
async fn dashboard(pool: &PgPool) -> String {
    let dashboard = Dashboard::new(pool.clone()).authorize(|head| {
        match head
            .headers
            .get(AUTHORIZATION)
            .and_then(|token| token.to_str().ok())
        {
            Some(token) if token == format!("Bearer {READER}") => Access::read(),
            Some(token) if token == format!("Bearer {ADMIN}") => Access::operate().with_payloads(),
            _ => Access::none(),
        }
    });
    let router = Router::new().nest_service("/admin/webhooks", dashboard.into_router());
    format!("{}admin/webhooks", serve(router).await)
}

async fn ask(arguments: &[&str], dashboard: &str, token: &'static str) -> Run {
    let all = [arguments, &["--dashboard", dashboard]].concat();
    let all: Vec<String> = all.into_iter().map(str::to_owned).collect();
    let run = move || {
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        run_in([("WEBHOOK_TOKEN", token)], &all, b"")
    };
    let run = tokio::task::spawn_blocking(run).await.unwrap();
    shows_nothing_of(token, &run);
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_4_status_ends_with_0_if_all_endpoints_are_well_and_with_1_if_one_is_not() {
    let pool = database().await;
    let url = dashboard(&pool).await;
    let none = ask(&["status"], &url, READER).await;
    none.ends(1).says("No endpoint is known");

    pool.execute(DEAD).await.unwrap();
    let unwell = ask(&["status"], &url, READER).await;
    unwell.ends(1).says("unwell  billing: failing");
    unwell.says("due 0, dead 1, recorded 0; last success: none counted");
    let json = ask(&["status", "--json"], &url, READER).await;
    let told: serde_json::Value = serde_json::from_str(&json.ends(1).out).unwrap();
    assert_eq!(told["endpoints"][0]["dead"]["number"], 1);
    ask(&["status", "--endpoint", "other"], &url, READER)
        .await
        .is_error("There is no such endpoint");

    let mended = "delete from idempotent_webhook.kept_deliveries;
        insert into idempotent_webhook.redelivery_windows values ('billing', interval '1 day')";
    pool.execute(mended).await.unwrap();
    let well = ask(&["status", "--endpoint", "billing"], &url, READER).await;
    assert_eq!(well.ends(0).out, "well    billing: quiet\n");
    let json = ask(&["status", "--json"], &url, READER).await;
    let told: serde_json::Value = serde_json::from_str(&json.ends(0).out).unwrap();
    assert_eq!(told["well"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_4_why_tells_a_delivery_without_its_payload() {
    let pool = database().await;
    let url = dashboard(&pool).await;
    pool.execute(DEAD).await.unwrap();
    for (token, reason) in [
        (READER, "no customer \"…\""),
        (ADMIN, "no customer \"Ada\""),
    ] {
        let dead = ask(&["why", "evt_dead"], &url, token).await;
        dead.ends(1).says("evt_dead at billing: dead\n");
        dead.says("event type: invoice.paid")
            .says("attempts: 1")
            .says("waits for: operator");
        dead.says(" by provider, status 500: ").says(reason);
        dead.says("sent again by the provider: not known");
        let json = ask(
            &["why", "evt_dead", "--json", "--endpoint", "billing"],
            &url,
            token,
        )
        .await;
        let told: serde_json::Value = serde_json::from_str(&json.ends(1).out).unwrap();
        assert_eq!(
            told["deliveries"][0]["failed_attempts"][0]["reason"],
            reason
        );
        for run in [dead, json] {
            assert!(
                !run.out.contains("payload") && !run.out.contains("secret"),
                "{}",
                run.out
            );
        }
    }
    ask(&["why", "evt_done"], &url, READER)
        .await
        .ends(0)
        .says("evt_done at billing: processed\n");
    for arguments in [
        &["why", "evt_none"][..],
        &["why", "evt_done", "--endpoint", "other"],
        &["why", "evt_done", "--tenant", "red"],
    ] {
        ask(arguments, &url, READER)
            .await
            .ends(1)
            .says("Not known: it was never received");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_4_a_wrong_token_is_told_apart_from_an_outage() {
    let pool = database().await;
    let url = dashboard(&pool).await;
    for asked in [&["status"][..], &["why", "evt_done"], &["status", "--json"]] {
        let refused = ask(asked, &url, "another-token-0123456789").await;
        refused.is_error(
            "has refused the token, or the token lacks the right (403 Forbidden): You may not see",
        );
        let elsewhere = url.replace("/admin/webhooks", "/elsewhere");
        ask(asked, &elsewhere, READER)
            .await
            .is_error("is not a dashboard");
        ask(asked, "http://127.0.0.1:1", READER)
            .await
            .is_not_now("no answer from http://127.0.0.1:1");
    }
    // The database becomes unavailable.
    pool.close().await;
    ask(&["status"], &url, READER)
        .await
        .is_not_now("503 Service Unavailable: The database");

    let page = async |answer: StatusCode| (answer, Html("<p>not this</p>"));
    let router = Router::new()
        .route(
            "/login/api/status",
            get(async || Redirect::to("/elsewhere")),
        )
        .route(
            "/page/api/status",
            get(async move || page(StatusCode::OK).await),
        )
        .route("/json/api/status", get(async || "{}"))
        .route(
            "/busy/api/status",
            get(async move || page(StatusCode::TOO_MANY_REQUESTS).await),
        )
        .route(
            "/away/api/status",
            get(async move || page(StatusCode::BAD_GATEWAY).await),
        )
        .route(
            "/locked/api/status",
            get(async move || page(StatusCode::UNAUTHORIZED).await),
        );
    let base = serve(router).await;
    let at = async |path: &str| ask(&["status"], &format!("{base}{path}"), READER).await;
    at("login")
        .await
        .is_error("is not a dashboard, or one of another version: it has answered 303");
    at("page").await.is_error("is not a dashboard");
    at("json").await.is_error("is not a dashboard");
    at("locked").await.is_error("has refused the token");
    at("busy").await.is_not_now("429 Too Many Requests");
    at("away").await.is_not_now("502 Bad Gateway");
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_4_a_token_comes_from_a_file_or_a_variable_and_goes_over_tls() {
    let router = Router::new().route(
        "/api/status",
        get(async |headers: HeaderMap| {
            let is_right = headers
                .get("x-ops-token")
                .is_some_and(|token| token == READER);
            let status = if is_right {
                StatusCode::OK
            } else {
                StatusCode::FORBIDDEN
            };
            (status, r#"{"well": true, "endpoints": []}"#)
        }),
    );
    let url = serve(router).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    std::fs::write(&file, format!("{READER}\n")).unwrap();
    let file = file.to_str().unwrap().to_owned();
    let run = tokio::task::spawn_blocking(move || {
        let status = [
            "status",
            "--dashboard",
            &url,
            "--token-header",
            "X-Ops-Token",
        ];
        let of = |variables: &[(&str, &str)], more: &[&str], stdin: &[u8]| {
            let run = run_in(variables.iter().copied(), &[&status, more].concat(), stdin);
            shows_nothing_of(READER, &run);
            run
        };
        of(&[], &["--token-file", &file], b"").ends(0);
        of(&[], &["--token-file", "-"], READER.as_bytes()).ends(0);
        of(&[("OPS", READER)], &["--token-env", "OPS"], b"").ends(0);
        of(&[("WEBHOOK_TOKEN", READER)], &[], b"").ends(0);
        of(&[], &[], b"")
            .is_error("the token is missing: give it in the environment variable WEBHOOK_TOKEN");
        of(&[("WEBHOOK_TOKEN", " ")], &[], b"").is_error("the token is empty");
        of(&[("WEBHOOK_TOKEN", "a\nb")], &[], b"").is_error("cannot be in a header");
        of(&[], &["--token-file", "not-there"], b"").is_error("cannot read not-there");
        // A token cannot be an argument, which other users of the machine would see.
        of(&[], &["--token", "abc"], b"").is_error("--token");
        for address in [
            "http://ops.example.com",
            "https://ada:geheim@ops.example.com",
            "ops",
        ] {
            let status = ["status", "--dashboard", address];
            run_in([("WEBHOOK_TOKEN", READER)], &status, b"").is_error("'--dashboard <URL>'");
        }
    });
    run.await.unwrap();
}
