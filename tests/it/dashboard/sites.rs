//! Guarantee D2: what a browser may do, and what another site may cause it to do.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn d2_actions_are_only_taken_from_pages_of_the_same_site() {
    let app = with_a_dead_delivery().await;
    let board = Board::operator(&app.database.pool);
    let form = "action=retry&endpoint=test&id=a";
    for headers in [
        &[][..],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "none")],
        &[("sec-fetch-site", "")],
        &[
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-site", "cross-site"),
        ],
        // `Sec-Fetch-Site` decides, regardless of `Origin`.
        &[
            ("sec-fetch-site", "cross-site"),
            ("origin", "https://ops.example"),
        ],
        &[
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-site", "same-origin"),
            ("origin", "https://ops.example"),
        ],
        &[("origin", "null")],
        &[("origin", "")],
        &[("origin", "https://evil.example")],
        &[("origin", "https://ops.example.evil")],
        &[("origin", "https://ops.example:444")],
        &[
            ("origin", "https://ops.example"),
            ("origin", "https://evil.example"),
        ],
    ] {
        let answer = board.post_from("act", form, headers).await;
        assert_eq!(answer.status, 403, "{headers:?}");
        assert_eq!(board.post_from("cancel", "id=1", headers).await.status, 403);
    }
    assert_eq!(actions(&app.database).await, []);
    for headers in [
        [("sec-fetch-site", "same-origin")],
        [("origin", "https://ops.example")],
        [("origin", "http://OPS.example")],
    ] {
        let answer = board.post_from("act", form, &headers).await;
        assert_eq!(answer.status, 303, "{headers:?}");
    }
    // The second and the third request change nothing, and are recorded once.
    assert_eq!(actions(&app.database).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn d2_no_get_changes_anything() {
    let app = with_a_dead_delivery().await;
    let board = Board::operator(&app.database.pool);
    for page in ["act?action=discard&endpoint=test&id=a", "cancel?id=1"] {
        let answer = board.get(page).await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("allow")),
            (405, "POST"),
            "{page}"
        );
    }
    for method in [Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
        let request = Request::builder()
            .method(&method)
            .uri("/act?action=discard&endpoint=test&id=a")
            .header("sec-fetch-site", "same-origin");
        let answer = board.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, 405, "{method}");
    }
    // The page that asks for confirmation does not perform the action.
    let form = "action=discard&endpoint=test&id=a";
    assert_eq!(board.post("confirm", form).await.status, 200);
    for page in pages() {
        board.page(page).await;
    }
    assert_eq!(actions(&app.database).await, []);
    app.database
        .until("exists (select from idempotent_webhook.kept_deliveries)")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d2_every_answer_has_the_headers_that_restrain_a_browser() {
    let app = with_a_dead_delivery().await;
    let board = Board::operator(&app.database.pool);
    let overview = board.page("overview").await;
    let assets: Vec<&str> = overview
        .text()
        .split('"')
        .filter(|value| value.starts_with("style-") || value.starts_with("script-"))
        .collect();
    assert_eq!(assets.len(), 2, "{}", overview.text());
    let mut answers = vec![
        board.get("").await,
        board.get("no-such-page").await,
        board.get("act").await,
        board.get("delivery?endpoint=test&id=unknown").await,
        board.get("deliveries?state=nonsense").await,
        board.get("deliveries?reason=nonsense").await,
        board.get("deliveries?endpoint=%00").await,
        board.get("payload?endpoint=test&id=a").await,
        board.get("capture?endpoint=test&id=a").await,
        board.post("act", "action=retry&endpoint=test&id=a").await,
        board.post("act", "nonsense").await,
        board.post_from("act", "", &[]).await,
        Board(Dashboard::new(app.database.pool.clone()).into_router())
            .get("")
            .await,
    ];
    let mut addresses: Vec<&str> = pages().collect();
    addresses.extend(&assets);
    for page in addresses {
        answers.push(board.page(page).await);
    }
    for answer in answers {
        let policy = answer.header("content-security-policy");
        for directive in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(directive), "{policy}");
        }
        assert!(!policy.contains("unsafe"));
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("cross-origin-opener-policy"), "same-origin");
        let cached = answer.header("cache-control");
        assert!(
            cached == "no-store" || cached.contains("immutable"),
            "{cached}"
        );
        assert_ne!(answer.status, 500);
    }
    assert_eq!(
        board.get(assets[0]).await.header("content-type"),
        "text/css; charset=utf-8"
    );
    // Files that may be cached contain nothing from a session, and pages are never cached.
    assert_eq!(overview.header("cache-control"), "no-store");
}

#[tokio::test(flavor = "multi_thread")]
async fn d2_what_a_sender_has_chosen_is_only_text() {
    let app = TestApp::keeping(|keep| keep, Failing::times(9).handler()).await;
    let hostile = r#"<script>alert(1)</script>"><img/src=x/onerror=alert(1)>'&amp;"#;
    let delivery = github_delivery()
        .id(hostile)
        .event_type("</textarea><script>")
        .body("</textarea>\u{202e}<script>\0");
    let sent = app.send(delivery.request()).await;
    assert_eq!((sent.status, &*sent.outcome), (500, "kept"));
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries
             set reason = '<script>\u{202e}', tenant_name = '<b>', history = history || history",
        )
        .await;
    let board = Board::operator(&app.database.pool);
    let encoded: String = form_encoded(hostile);
    for page in [
        "overview".into(),
        "deliveries".into(),
        "deliveries?event_type=%3C%2Ftextarea%3E%3Cscript%3E".into(),
        format!("delivery?endpoint=test&id={encoded}"),
        format!("lookup?ids={encoded}"),
        format!("confirm?action=discard&endpoint=test&id={encoded}"),
        format!("lookup?ids={encoded}%0Aunknown%3Cscript%3E"),
    ] {
        let page = board.page(&page).await;
        page.hides("<script>");
        page.hides("<img");
        page.hides("<b>");
        page.hides("\u{202e}");
        page.hides("style=");
    }
    let page = board
        .page(&format!("delivery?endpoint=test&id={encoded}"))
        .await;
    page.shows("⟨U+202E⟩");
    page.shows("⟨U+0000⟩");
}

fn form_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Gets a page with these headers.
async fn page_from(board: &Board, page: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::get(format!("/{page}")).header("host", "ops.example");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    board.send(request.body(Body::empty()).unwrap()).await
}

/// Another site can lead a user here in the middle of a double click, so that the second click
/// lands on a page of the dashboard. The page must have no actions.
#[tokio::test(flavor = "multi_thread")]
async fn d2_what_another_site_leads_to_has_no_actions() {
    let app = with_a_dead_delivery().await;
    let board = Board::operator(&app.database.pool);
    let pages = [
        "overview",
        "deliveries?state=dead&endpoint=test",
        "delivery?endpoint=test&id=a",
        "confirm?action=discard&endpoint=test&id=a",
        "confirm?action=discard&endpoint=test&state=dead&before=1",
        "confirm?action=pause&endpoint=test",
    ];
    for headers in [
        &[("sec-fetch-site", "cross-site")][..],
        &[("sec-fetch-site", "same-site")],
        &[
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-site", "same-origin"),
        ],
        // A site that links here can suppress the referrer.
        &[],
        &[("referer", "https://evil.example/")],
        &[("referer", "https://ops.example.evil/overview")],
        &[("referer", "nonsense")],
    ] {
        for page in pages {
            let answer = page_from(&board, page, headers).await;
            assert_eq!(answer.status, 200, "{page} {headers:?}");
            answer.hides("action=\"act\"");
            answer.hides("action=\"confirm\"");
            answer.hides("confirm?action=retry");
            answer.hides("data-refresh");
            let same = format!("href=\"./{}\">Show the actions", page.replace('&', "&amp;"));
            answer.shows(&same);
        }
    }
    for headers in [
        [("sec-fetch-site", "same-origin")],
        [("sec-fetch-site", "none")],
        [("referer", "https://ops.example/admin/overview")],
    ] {
        for page in pages {
            let answer = page_from(&board, page, &headers).await;
            answer.hides("Show the actions");
            assert!(answer.text().contains("action=\"act\"") || page.starts_with("deliveries"));
        }
    }
    // A page that does not exist has no actions anyway.
    for page in ["https:evil.example", "delivery?endpoint=test&id=unknown"] {
        let answer = page_from(&board, page, &[("sec-fetch-site", "cross-site")]).await;
        assert_eq!(answer.status, 404, "{page}");
        answer.hides("Show the actions");
    }
    // Without the right to act, there are no actions to show.
    let reader = Board::of(&app.database.pool, Access::read());
    let answer = page_from(&reader, "overview", &[("sec-fetch-site", "cross-site")]).await;
    answer.hides("Show the actions");
    assert_eq!(actions(&app.database).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn d2_what_was_shown_cannot_have_been_shown_in_the_future() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, first_failed_at, last_failed_at, last_received_at)
             values ('test', 'seen', 'dead', 1, now(), now(), now() - interval '1 minute'),
                ('test', 'later', 'dead', 1, now(), now(), now() + interval '1 hour')",
        )
        .await;
    let board = Board::operator(&database.pool);
    let form = "action=discard&endpoint=test&state=dead&before=9999999999";
    board
        .page(&format!("confirm?{form}"))
        .await
        .shows("Discard 1 delivery?");
    board.post("act", form).await;
    database.until(ALL_ENDED).await;
    assert_eq!(actions(&database).await, [action("discard", None, 1)]);
}

/// A request for an unknown host may be a DNS rebinding attack.
#[tokio::test(flavor = "multi_thread")]
async fn d2_only_the_named_hosts_are_served() {
    let app = with_a_dead_delivery().await;
    let dashboard = Dashboard::new(app.database.pool.clone())
        .authenticated_in_front()
        .hosts(["ops.example", "localhost:3000", "[::1]"]);
    let board = Board(dashboard.into_router());
    for (host, expected) in [
        ("ops.example", 200),
        ("OPS.example:8443", 200),
        ("localhost:3000", 200),
        ("[::1]:3000", 200),
        ("localhost", 403),
        ("localhost:3001", 403),
        ("ops.example.evil", 403),
        ("evil.example", 403),
        ("ops.example@evil.example", 403),
        ("", 403),
    ] {
        let headers = [("host", host), ("sec-fetch-site", "same-origin")];
        for (method, page) in [
            ("GET", "/overview"),
            ("GET", "/api/overview"),
            ("POST", "/act"),
        ] {
            let mut request = Request::builder().method(method).uri(page);
            for (name, value) in headers {
                request = request.header(name, value);
            }
            let form = Body::from("action=retry&endpoint=test&id=a");
            let answer = board.send(request.body(form).unwrap()).await;
            let expected = if method == "POST" && expected == 200 {
                303
            } else {
                expected
            };
            assert_eq!(answer.status, expected, "{method} {page} {host}");
        }
    }
    let without = Request::get("/overview").body(Body::empty()).unwrap();
    assert_eq!(board.send(without).await.status, 403);
    // HTTP/2 sends the host in the URI.
    let uri = Request::get("https://ops.example/overview");
    assert_eq!(
        board.send(uri.body(Body::empty()).unwrap()).await.status,
        200
    );
}

/// A proxy on plain HTTP changes the `Host` header.
#[tokio::test(flavor = "multi_thread")]
async fn d2_a_trusted_origin_may_act_where_a_proxy_changes_the_host() {
    let app = with_a_dead_delivery().await;
    let dashboard = Dashboard::new(app.database.pool.clone())
        .authorize(|_| Access::operate().named("ada"))
        .trusted_origin("http://Ops.example.com:8080");
    let board = Board(dashboard.into_router());
    let form = "action=retry&endpoint=test&id=a";
    for (origin, status) in [
        ("http://ops.example.com:8080", 303),
        ("http://ops.example.com", 403),
        ("https://ops.example.com:8080", 403),
        ("http://ops.example.com:8080.evil", 403),
        ("http://other.example", 403),
    ] {
        let answer = board.post_from("act", form, &[("origin", origin)]).await;
        assert_eq!(answer.status, status, "{origin}");
    }
    let came = [("referer", "http://ops.example.com:8080/admin/overview")];
    page_from(&board, "overview", &came)
        .await
        .hides("Show the actions");
}

/// After a session has expired, the next form leads to a login.
#[tokio::test(flavor = "multi_thread")]
async fn d2_forms_may_lead_to_the_login() {
    let database = Database::new().await;
    let dashboard = Dashboard::new(database.pool.clone())
        .authenticated_in_front()
        .login_origin("https://login.example.com");
    let board = Board(dashboard.into_router());
    let page = board.page("overview").await;
    let policy = page.header("content-security-policy");
    assert!(
        policy.contains("form-action 'self' https://login.example.com;"),
        "{policy}"
    );
}

#[tokio::test]
#[should_panic(expected = "not an origin: \"login.example.com\"")]
async fn d2_what_is_no_origin_is_refused_at_start() {
    let pool = PgPool::connect_lazy("postgres://nobody").unwrap();
    drop(Dashboard::new(pool).login_origin("login.example.com"));
}
