//! D1 to D5: the dashboard, over HTTP. `tests/browser` looks at it in a browser.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::routing::post;
use http_body_util::BodyExt;
use idempotent_webhook::dashboard::{Access, Dashboard};
use idempotent_webhook::recovery::{Filter, KeptState};
use idempotent_webhook::{
    DedupeTx, Delivery, Endpoint, HandlerError, IdempotentWebhook, Keep, presets,
};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tower::ServiceExt;

use crate::support::{
    Database, Failing, NOTHING_KEPT, SOON, TestApp, gated, github, github_delivery, logged,
    recover, secret, soon, spawn_send, write_effect,
};

const PAGES: [&str; 8] = [
    "overview",
    "deliveries",
    "deliveries?state=due",
    "delivery?endpoint=test&id=a",
    "lookup",
    "lookup?ids=a",
    "actions",
    "confirm?action=discard&endpoint=test&id=a",
];

/// What a browser gets.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    #[track_caller]
    fn shows(&self, text: &str) {
        assert!(self.text().contains(text), "{text}: {}", self.text());
    }

    #[track_caller]
    fn hides(&self, text: &str) {
        assert!(!self.text().contains(text), "{text}: {}", self.text());
    }
}

/// A dashboard, as somebody with some rights sees it.
struct Board(Router);

impl Board {
    fn of(pool: &PgPool, access: Access) -> Self {
        let dashboard = Dashboard::new(pool.clone()).authorize(move |_| access.clone());
        Self(dashboard.into_router())
    }

    fn operator(pool: &PgPool) -> Self {
        Self::of(pool, Access::operate().with_payloads().named("ada"))
    }

    async fn send(&self, request: Request<Body>) -> Answer {
        let (head, body) = self.0.clone().oneshot(request).await.unwrap().into_parts();
        Answer {
            status: head.status,
            headers: head.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    async fn get(&self, page: &str) -> Answer {
        let request = Request::get(format!("/{page}")).body(Body::empty());
        self.send(request.unwrap()).await
    }

    /// A page that has to be there.
    async fn page(&self, page: &str) -> Answer {
        let answer = self.get(page).await;
        assert_eq!(answer.status, 200, "{page}: {}", answer.text());
        answer
    }

    /// A form of a page of the dashboard.
    async fn post(&self, page: &str, form: &str) -> Answer {
        let headers = [("sec-fetch-site", "same-origin")];
        self.post_from(page, form, &headers).await
    }

    async fn post_from(&self, page: &str, form: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::post(format!("/{page}")).header("host", "ops.example");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Body::from(form.to_owned());
        self.send(request.body(body).unwrap()).await
    }
}

/// An application with a dead delivery `a`.
async fn with_a_dead_delivery() -> TestApp {
    let set = |keep: Keep| keep.retry_delays([]);
    let app = TestApp::keeping(set, Failing::times(1).handler()).await;
    let dead = github_delivery()
        .id("a")
        .event_type("push")
        .uri("/?token=geheim")
        .body(r#"{"id":12345678901234567890}"#);
    assert_eq!(app.send(dead.request()).await.outcome, "kept");
    app
}

/// What operators did: what, on which delivery, who, how many, and whether it has ended.
async fn actions(database: &Database) -> Vec<(String, Option<String>, Option<String>, i64, bool)> {
    sqlx::query_as(
        "select action, delivery_id, operator, changed, ended_at is not null
         from idempotent_webhook.operator_actions
         order by id",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

fn action(
    action: &str,
    delivery: Option<&str>,
    changed: i64,
) -> (String, Option<String>, Option<String>, i64, bool) {
    let delivery = delivery.map(str::to_owned);
    (action.into(), delivery, Some("ada".into()), changed, true)
}

#[tokio::test(flavor = "multi_thread")]
async fn d1_without_an_authorizer_there_is_no_page() {
    let app = with_a_dead_delivery().await;
    let board = Board(Dashboard::new(app.database.pool.clone()).into_router());
    let log = logged(async {
        for page in PAGES {
            let answer = board.get(page).await;
            assert_eq!(answer.status, 403, "{page}");
            answer.hides("test");
        }
    })
    .await;
    assert!(log.contains("has no authorizer"), "{log}");
    let retried = board.post("act", "action=retry&endpoint=test&id=a").await;
    assert_eq!(retried.status, 403);
    assert_eq!(actions(&app.database).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn d1_the_authorizer_decides_for_each_request() {
    let app = with_a_dead_delivery().await;
    let dashboard = Dashboard::new(app.database.pool.clone()).authorize_async(|head| {
        let user = head.headers.get("x-user").cloned();
        async move {
            tokio::task::yield_now().await;
            match user.as_ref().and_then(|user| user.to_str().ok()) {
                Some("ada") => Access::operate().named("ada"),
                Some("bob") => Access::read(),
                _ => Access::none().with_payloads(),
            }
        }
    });
    let board = Board(dashboard.into_router());
    let as_user = async |method: &str, page: &str, user: &str| {
        let request = Request::builder()
            .method(method)
            .uri(format!("/{page}"))
            .header("x-user", user)
            .header("sec-fetch-site", "same-origin");
        let form = "action=retry&endpoint=test&id=a";
        board.send(request.body(Body::from(form)).unwrap()).await
    };
    for page in PAGES {
        assert_eq!(as_user("GET", page, "eve").await.status, 403, "{page}");
        assert_eq!(as_user("GET", page, "ada").await.status, 200, "{page}");
    }
    let payload = "payload?endpoint=test&id=a";
    for user in ["ada", "bob", "eve"] {
        assert_eq!(as_user("GET", payload, user).await.status, 403, "{user}");
    }
    assert_eq!(as_user("POST", "act", "eve").await.status, 403);
    assert_eq!(as_user("POST", "act", "bob").await.status, 403);
    assert_eq!(actions(&app.database).await, []);
    assert_eq!(as_user("POST", "act", "ada").await.status, 303);
    assert_eq!(
        actions(&app.database).await,
        [action("retry", Some("a"), 1)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn d1_readers_see_no_action_and_can_do_none() {
    let app = with_a_dead_delivery().await;
    let board = Board::of(&app.database.pool, Access::read());
    for page in PAGES
        .into_iter()
        .filter(|page| !page.starts_with("confirm"))
    {
        let answer = board.page(page).await;
        answer.hides("method=\"post\"");
        answer.hides("confirm?");
    }
    for (page, form) in [
        ("act", "action=retry&endpoint=test&id=a"),
        ("act", "action=discard&endpoint=test&id=a"),
        ("act", "action=pause&endpoint=test"),
        (
            "act",
            "action=discard&endpoint=test&state=dead&before=9999999999",
        ),
        ("cancel", "id=1"),
        ("confirm", "action=discard&endpoint=test&id=a"),
    ] {
        assert_eq!(board.post(page, form).await.status, 403, "{page}?{form}");
        let asked = board.get(&format!("{page}?{form}")).await.status;
        assert!([403, 405].contains(&asked.as_u16()), "{page}?{form}");
    }
    assert_eq!(actions(&app.database).await, []);
    let dead = Filter::new().state(KeptState::Dead);
    let endpoint = Endpoint::new(app.database.pool.clone(), "test");
    assert_eq!(endpoint.kept(&dead, 10).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn d1_payloads_headers_and_queries_are_a_right_of_their_own() {
    let app = with_a_dead_delivery().await;
    let page = "delivery?endpoint=test&id=a";
    for access in [Access::read(), Access::operate()] {
        let board = Board::of(&app.database.pool, access.clone());
        let shown = board.page(page).await;
        shown.hides("12345678901234567890");
        shown.hides("geheim");
        shown.hides("x-github-delivery");
        shown.shows("27 bytes");
        let payload = board.get("payload?endpoint=test&id=a").await;
        assert_eq!(payload.status, 403);
        payload.hides("12345678901234567890");

        let board = Board::of(&app.database.pool, access.with_payloads());
        let shown = board.page(page).await;
        shown.shows("&quot;id&quot;: 12345678901234567890");
        shown.shows("geheim");
        shown.shows("x-github-delivery");
        shown.hides("x-hub-signature");
        let payload = board.get("payload?endpoint=test&id=a").await;
        assert_eq!(payload.text(), r#"{"id":12345678901234567890}"#);
        assert_eq!(payload.header("content-type"), "application/octet-stream");
        assert!(
            payload
                .header("content-disposition")
                .starts_with("attachment")
        );
    }
}

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
        // The first one counts, whatever the other says.
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
    assert_eq!(actions(&app.database).await.len(), 3);
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
    // To ask is not to do.
    let form = "action=discard&endpoint=test&id=a";
    assert_eq!(board.post("confirm", form).await.status, 200);
    for page in PAGES {
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
        board.post("act", "action=retry&endpoint=test&id=a").await,
        board.post("act", "nonsense").await,
        board.post_from("act", "", &[]).await,
        Board(Dashboard::new(app.database.pool.clone()).into_router())
            .get("")
            .await,
    ];
    for page in PAGES.into_iter().chain(assets.iter().copied()) {
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
    // Nothing of a session is in what is cached, and a page is never cached.
    assert_eq!(overview.header("cache-control"), "no-store");
}

#[tokio::test(flavor = "multi_thread")]
async fn d2_what_a_sender_has_chosen_is_only_text() {
    let app = TestApp::keeping(|keep| keep, Failing::times(9).handler()).await;
    let hostile = r#"<script>alert(1)</script>"><img/src=x/onerror=alert(1)>'&amp;"#;
    let delivery = github_delivery()
        .id(hostile)
        .event_type("</textarea><script>")
        .body("</textarea>\u{202e}<script>\0".as_bytes().to_vec());
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

#[tokio::test(flavor = "multi_thread")]
async fn d3_the_overview_says_how_each_endpoint_is() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, next_attempt_at, first_failed_at,
                 last_failed_at, reason)
             select endpoint, 'a', 'due', 1, now() - interval '3 hours', now(), now(), 'x'
             from unnest(array['failing', 'paused', 'probing', 'left']) as endpoint;
             insert into idempotent_webhook.kept_endpoints
                (endpoint, served_at, paused_at, probe_at)
             values
                ('failing', now(), null, null),
                ('paused', now(), now(), null),
                ('probing', now(), null, now()),
                ('left', now() - interval '5 minutes', null, null),
                ('fine', null, null, null);
             insert into idempotent_webhook.activity
                (endpoint, hour, source, outcome, count, last_at)
             values ('fine', date_trunc('hour', now(), 'UTC'), 'request', 'processed', 7, now())",
        )
        .await;
    let board = Board::operator(&database.pool);
    let overview = board.page("overview").await;
    let row = |endpoint: &str| {
        let row = overview
            .text()
            .split("<tr>")
            .find(|row| row.contains(&format!(">{endpoint}</a>")) && row.contains("<svg"));
        row.unwrap().to_owned()
    };
    for (endpoint, state) in [
        ("failing", "failing"),
        ("paused", "paused"),
        ("probing", "probing"),
        ("left", "unhandled"),
        ("fine", "fine"),
    ] {
        let row = row(endpoint);
        assert!(row.contains(&format!("data-state=\"{state}\"")), "{row}");
    }
    assert!(row("failing").contains("3 h"));
    assert!(row("fine").contains("7 processed"), "{}", row("fine"));
    assert!(row("paused").contains("Resume"));
    assert!(row("fine").contains("Pause"));
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_a_running_recovery_says_which_endpoints_it_serves() {
    let app = TestApp::keeping(|keep| keep, write_effect).await;
    let recovery = recover(&app);
    app.database
        .until(
            "exists (
                select from idempotent_webhook.kept_endpoints
                where endpoint = 'test' and served_at > now() - interval '1 min'
            )",
        )
        .await;
    recovery.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_failures_are_grouped_by_reason_without_ids_and_numbers() {
    async fn fails(_: DedupeTx, delivery: Delivery, body: Bytes) -> Result<(), HandlerError> {
        let id = delivery.id().as_str();
        if id.starts_with("ledger") {
            return Err(HandlerError::new("the ledger is away"));
        }
        Err(HandlerError::new(match (delivery.attempt(), &*body) {
            (1, b"{}") => format!("no such order: {id} of evt_{id}x"),
            (1, _) => format!("no such customer: {id}"),
            _ => format!("out of stock: {id}"),
        }))
    }
    let once = |keep: Keep| keep.retry_delays([SOON]);
    let app = TestApp::keeping(once, fails).await;
    for id in ["order-1", "ledger-1", "order-22", "ledger-2", "order-333"] {
        assert_eq!(app.send(github(id, "{}")).await.outcome, "kept");
    }
    let board = Board::operator(&app.database.pool);
    shows_reasons(
        &board,
        [("3", "no such order: "), ("2", "the ledger is away")],
    )
    .await;

    for id in ["order-1", "order-22"] {
        assert_eq!(app.send(github(id, "[]")).await.outcome, "kept");
    }
    shows_reasons(
        &board,
        [
            ("2", "no such customer: "),
            ("2", "the ledger is away"),
            ("1", "no such order: "),
        ],
    )
    .await;

    let recovery = recover(&app);
    let all_dead = "not exists (
        select from idempotent_webhook.kept_deliveries where state <> 'dead'
    )";
    app.database.until(all_dead).await;
    recovery.stop().await;
    shows_reasons(
        &board,
        [("3", "out of stock: "), ("2", "the ledger is away")],
    )
    .await;
}

/// The overview has these reasons, the first of which leads to what failed for it.
async fn shows_reasons<const N: usize>(board: &Board, reasons: [(&str, &str); N]) {
    let overview = board.page("overview").await;
    let rows: Vec<&str> = overview
        .text()
        .split("<tr>")
        .filter(|row| row.contains("reason="))
        .collect();
    assert_eq!(rows.len(), N, "{rows:?}");
    for (row, (number, reason)) in rows.iter().zip(reasons) {
        let number = format!(">{number}</a>");
        assert!(row.contains(&number) && row.contains(reason), "{row}");
    }
    let link = rows[0]
        .split("href=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let listed = board.page(&link.replace("&amp;", "&")).await;
    let [(number, first), others @ ..] = &reasons[..] else {
        unreachable!("there are some")
    };
    // Of each delivery, and in the heading.
    let shown = number.parse::<usize>().unwrap() + 1;
    assert_eq!(listed.text().matches(first).count(), shown);
    for (_, other) in others {
        listed.hides(other);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_of_many_reasons_those_that_occurred_last_are_shown() {
    let database = Database::new().await;
    // Of 300 reasons, the one that came first is the one that occurred last.
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, first_failed_at, last_failed_at, reason,
                 reason_group)
             select 'test', number || '-' || at, 'dead', 1, at, at, reason, md5(reason)::uuid
             from generate_series(1, 300) as number
             cross join lateral translate(number::text, '0123456789', 'abcdefghij') as word
             cross join lateral (values ('reason ' || word || ';')) as reasons (reason)
             cross join lateral (values
                (timestamptz '2026-01-01' + number * interval '1 second'),
                (timestamptz '2026-02-01' - number * interval '1 second')
             ) as times (at)",
        )
        .await;
    let overview = Board::operator(&database.pool).page("overview").await;
    assert_eq!(overview.text().matches("reason ").count(), 50);
    // 1 and 50, but not 51.
    overview.shows("reason b;");
    overview.shows("reason fa;");
    overview.hides("reason fb;");
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_a_row_without_a_group_hides_no_reason() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, first_failed_at, last_failed_at, reason,
                 reason_group)
             select 'test', 'id-' || number, 'dead', 1, now(), now(), 'reason ' || number,
                case when number > 1 then md5(number::text)::uuid end
             from generate_series(1, 3) as number",
        )
        .await;
    let overview = Board::operator(&database.pool).page("overview").await;
    overview.shows("reason 2");
    overview.shows("reason 3");
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_the_list_shows_each_delivery_once_page_by_page() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, tenant, delivery_id, event_type, state, attempts, first_failed_at,
                 last_failed_at, next_attempt_at, reason)
             select 'e' || number % 3, (number % 2)::text, 'id-' || number, 'type-' || number % 5,
                case number % 4 when 0 then 'due' else 'dead' end, 1, now(),
                -- Many at the same instant.
                date_trunc('hour', now()) - (number / 40) * interval '1 second', now(), 'x'
             from generate_series(1, 240) as number",
        )
        .await;
    let board = Board::operator(&database.pool);
    for (page, expected) in [
        ("deliveries", 240),
        ("deliveries?state=dead", 180),
        ("deliveries?state=due", 60),
        ("deliveries?endpoint=e1", 80),
        ("deliveries?event_type=type-3", 48),
        ("deliveries?state=due&event_type=type-3", 12),
        ("deliveries?endpoint=unknown", 0),
    ] {
        let (mut next, mut ids, mut pages) = (page.to_owned(), Vec::new(), 0);
        loop {
            let answer = board.page(&next).await;
            ids.extend(linked(&answer));
            pages += 1;
            match next_page(&answer) {
                Some(link) => next = link,
                None => break,
            }
        }
        assert_eq!(ids.len(), expected, "{page}");
        assert_eq!(pages, expected.div_ceil(50).max(1), "{page}");
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), expected, "{page}: twice");
    }
}

/// The links to deliveries of a page.
fn linked(page: &Answer) -> Vec<String> {
    let links = page.text().split("href=\"delivery?").skip(1);
    links
        .map(|link| link.split('"').next().unwrap().to_owned())
        .collect()
}

/// The link to the next page.
fn next_page(page: &Answer) -> Option<String> {
    let (head, _) = page.text().split_once("\" rel=\"next\"")?;
    let (_, link) = head.rsplit_once("href=\"").unwrap();
    Some(link.replace("&amp;", "&"))
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_a_delivery_has_the_history_of_its_failed_attempts() {
    let delays = [Duration::from_millis(1); 30];
    let app = TestApp::keeping(
        |keep| keep.retry_delays(delays),
        Failing::times(100).handler(),
    )
    .await;
    app.send(github("a", "{}")).await;
    let board = Board::operator(&app.database.pool);
    let page = "delivery?endpoint=test&id=a";
    let first = board.page(page).await;
    assert_eq!(first.text().matches("<td>provider</td>").count(), 1);
    first.shows("not yet");

    let recovery = recover(&app);
    app.database
        .until("exists (select from idempotent_webhook.kept_deliveries where state = 'dead')")
        .await;
    recovery.stop().await;
    let last = board.page(page).await;
    assert_eq!(last.text().matches("<td>recovery</td>").count(), 20);
    last.shows("11 further attempt(s)");
    last.shows("data-state=\"dead\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_look_up_says_what_became_of_an_id() {
    let (mut gate, handler) = gated();
    let app = TestApp::github(handler).await;
    let sent = spawn_send(&app.router, github("running", "{}"));
    gate.reached().await;
    app.database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, tenant, delivery_id)
             values ('test', '', 'done'), ('other', 'acme', 'done');
             insert into idempotent_webhook.kept_deliveries
                (endpoint, tenant, delivery_id, state, attempts, last_failed_at, next_attempt_at)
             values
                ('test', '', 'waiting', 'due', 1, now(), now()),
                ('test', 'acme', 'gone', 'dead', 1, now(), null),
                ('test', '', 'done', 'dead', 1, now(), null);
             insert into idempotent_webhook.kept_requests
                (endpoint, tenant, delivery_id, format, method, uri, headers, body)
             select endpoint, tenant, delivery_id, 1, 'POST', '/', '', ''
             from idempotent_webhook.kept_deliveries;
             insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, last_failed_at)
             values ('test', 'noted', 'recorded', 1, now())",
        )
        .await;
    let board = Board::operator(&app.database.pool);
    let ids = "noted%0Arunning%0A%20done%20%0Awaiting%0D%0Agone%0Aunheard-of";
    let found = board.page(&format!("lookup?ids={ids}")).await;
    let state = |state: &str| {
        found
            .text()
            .matches(&format!("data-state=\"{state}\""))
            .count()
    };
    let all = ["in flight", "processed", "due", "dead", "recorded"].map(state);
    assert_eq!(all, [1, 2, 1, 1, 1], "{}", found.text());
    found.shows("<code>unheard-of</code>");
    found.shows("No deliveries have been deleted here yet");
    board
        .page("delivery?endpoint=test&id=running")
        .await
        .shows("data-state=\"in flight\"");

    app.database
        .run("insert into idempotent_webhook.pruned (before) values ('2026-01-02 03:04:05Z')")
        .await;
    let unknown = board.page("lookup?ids=unheard-of").await;
    unknown.shows("or received before");
    unknown.shows("2026-01-02T03:04:05Z");
    gate.open();
    assert_eq!(sent.await.unwrap().status, 200);

    let many: String = (0..201).map(|number| format!("{number}%0A")).collect();
    assert_eq!(board.get(&format!("lookup?ids={many}")).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_a_dead_delivery_is_retried_and_processed() {
    let app = with_a_dead_delivery().await;
    let board = Board::operator(&app.database.pool);
    let answer = board.post("act", "action=retry&endpoint=test&id=a").await;
    assert_eq!(answer.status, 303);
    assert_eq!(answer.header("location"), "delivery?endpoint=test&id=a");
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_eq!(app.database.rows().await.effects, 1);

    // Once more: there is nothing to do, and it says so.
    board.post("act", "action=retry&endpoint=test&id=a").await;
    let did = [action("retry", Some("a"), 1), action("retry", Some("a"), 0)];
    assert_eq!(actions(&app.database).await, did);
    let page = board.page("delivery?endpoint=test&id=a").await;
    page.shows("It was processed meanwhile.");
    page.shows("ada");
    board.page("actions").await.shows("no change");

    board.post("act", "action=forget&endpoint=test&id=a").await;
    assert_eq!(app.database.rows().await.claims, 0);
    assert_eq!(
        actions(&app.database).await[2],
        action("forget", Some("a"), 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_endpoints_are_paused_and_resumed() {
    let database = Database::new().await;
    let board = Board::operator(&database.pool);
    let is_paused = "exists (
        select from idempotent_webhook.kept_endpoints
        where endpoint = 'test' and paused_at is not null
    )";
    let answer = board.post("act", "action=pause&endpoint=test").await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("location")),
        (303, "overview")
    );
    database.until(is_paused).await;
    board.page("overview").await.shows("data-state=\"paused\"");
    board.post("act", "action=resume&endpoint=test").await;
    database.until(&format!("not {is_paused}")).await;
    let did = [action("pause", None, 1), action("resume", None, 1)];
    assert_eq!(actions(&database).await, did);
}

const MANY_DEAD: &str = "
    insert into idempotent_webhook.kept_deliveries
        (endpoint, delivery_id, state, attempts, first_failed_at, last_failed_at, reason)
    select endpoint, number::text, 'dead', 1, now(), now() - interval '1 min', 'it broke ' || number
    from generate_series(1, 5000) as number
    cross join unnest(array['test', 'other']) as endpoint;
    insert into idempotent_webhook.kept_requests
        (endpoint, delivery_id, format, method, uri, headers, body)
    select endpoint, delivery_id, 1, 'POST', '/', '', '{}'
    from idempotent_webhook.kept_deliveries
";

async fn unix_now(database: &Database) -> f64 {
    sqlx::query_scalar("select extract(epoch from now())::float8")
        .fetch_one(&database.pool)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_a_bulk_action_changes_what_was_seen_and_nothing_else() {
    let database = Database::new().await;
    database.run(MANY_DEAD).await;
    let before = unix_now(&database).await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, first_failed_at, last_failed_at, reason)
             values ('test', 'later', 'dead', 1, now(), now() + interval '1 s', 'it broke'),
                ('test', 'old', 'recorded', 1, now(), now() - interval '1 min', 'it broke')",
        )
        .await;
    let board = Board::operator(&database.pool);
    let form = format!("action=discard&endpoint=test&state=dead&before={before}");
    let confirm = board.page(&format!("confirm?{form}")).await;
    confirm.shows("Discard 5,000 deliveries?");
    let answer = board.post("act", &form).await;
    assert_eq!(answer.header("location"), "action?id=1");
    database
        .until(
            "exists (select from idempotent_webhook.operator_actions where ended_at is not null)",
        )
        .await;
    assert_eq!(actions(&database).await, [action("discard", None, 5000)]);
    database
        .until(
            "(select array_agg(delivery_id order by delivery_id)
              from idempotent_webhook.kept_deliveries where endpoint = 'test')
                = array['later', 'old']
             and (select count(*) from idempotent_webhook.kept_deliveries) = 5002
             and (select count(*) from idempotent_webhook.kept_requests) = 5000",
        )
        .await;
    let page = board.page("action?id=1").await;
    page.shows("5,000");
    page.shows("data-state=\"done\"");

    // Not all of an endpoint because a parameter was lost.
    for form in [
        "action=discard&endpoint=other&state=dead",
        "action=discard&endpoint=other&before=9999999999",
        "action=discard&state=dead&before=9999999999",
        "action=discard&endpoint=other",
        "action=forget&endpoint=other&state=dead&before=9999999999",
    ] {
        assert_eq!(board.post("act", form).await.status, 400, "{form}");
    }
    database
        .until("(select count(*) from idempotent_webhook.kept_deliveries) = 5002")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_a_cancelled_bulk_action_says_truly_how_many_it_changed() {
    let database = Database::new().await;
    database.run(MANY_DEAD).await;
    // Each batch takes its time.
    database
        .run(
            "create function slowly() returns trigger language plpgsql as
                $$ begin perform pg_sleep(0.3); return null; end $$;
             create trigger slowly after update on idempotent_webhook.kept_deliveries
                for each statement execute function slowly()",
        )
        .await;
    let board = Board::operator(&database.pool);
    let before = unix_now(&database).await;
    let form = format!("action=retry&endpoint=test&state=dead&before={before}");
    board.post("act", &form).await;
    database
        .until("exists (select from idempotent_webhook.operator_actions where changed > 0)")
        .await;
    let running = board.page("action?id=1").await;
    running.shows("data-state=\"running\"");
    running.shows("data-refresh");
    assert_eq!(board.post("cancel", "id=1").await.status, 303);
    database
        .until(
            "exists (select from idempotent_webhook.operator_actions where ended_at is not null)",
        )
        .await;
    board
        .page("action?id=1")
        .await
        .shows("data-state=\"cancelled\"");
    let (changed, retried): (i64, i64) = sqlx::query_as(
        "select changed, (
            select count(*) from idempotent_webhook.kept_deliveries where state = 'due'
         )
         from idempotent_webhook.operator_actions",
    )
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert_eq!(changed, retried);
    assert!((1000..5000).contains(&changed), "{changed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_selected_deliveries_are_changed_one_by_one() {
    let database = Database::new().await;
    database.run(MANY_DEAD).await;
    let board = Board::operator(&database.pool);
    let keys = "key=endpoint%3Dtest%26id%3D7&key=endpoint%3Dother%26id%3D8";
    let filter = "endpoint=test&state=dead";
    let confirm = board
        .post("confirm", &format!("action=discard&{filter}&{keys}"))
        .await;
    confirm.shows("Discard 2 deliveries?");
    confirm.shows("They are deleted");
    confirm.shows("href=\"deliveries?endpoint=test&amp;state=dead\">Do nothing");
    let confirm = board
        .page("confirm?action=discard&endpoint=test&id=7")
        .await;
    confirm.shows("It is deleted");
    let answer = board.post("act", &format!("action=discard&{keys}")).await;
    assert_eq!(answer.header("location"), "actions");
    let did = [
        action("discard", Some("7"), 1),
        action("discard", Some("8"), 1),
    ];
    assert_eq!(actions(&database).await, did);
    database
        .until("(select count(*) from idempotent_webhook.kept_deliveries) = 9998")
        .await;
    for nothing in ["action=discard", &format!("action=discard&{filter}")] {
        let none = board.post("confirm", nothing).await;
        assert_eq!(none.status, 400);
        none.shows("No delivery is selected.");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_an_action_whose_process_was_killed_is_interrupted() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.operator_actions (action, endpoint, active_at, changed)
             values ('retry', 'test', now() - interval '2 min', 3000)",
        )
        .await;
    let board = Board::operator(&database.pool);
    let page = board.page("action?id=1").await;
    page.shows("data-state=\"interrupted\"");
    page.shows("3,000");
    page.hides("data-refresh");
    assert_eq!(board.get("action?id=2").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn d4_a_page_does_not_wait_for_ever() {
    let database = Database::new().await;
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_secs(1))
        .connect_lazy_with(database.options());
    let board = Board::operator(&pool);
    let held = pool.acquire().await.unwrap();
    let answer = soon(board.get("overview")).await;
    assert_eq!(answer.status, 503);
    answer.shows("The database did not answer in time.");
    drop(held);
    board.page("overview").await;

    // A lock that somebody holds.
    let mut blocking = database.pool.begin().await.unwrap();
    sqlx::query("lock table idempotent_webhook.kept_deliveries")
        .execute(&mut *blocking)
        .await
        .unwrap();
    let answer = soon(board.get("overview")).await;
    assert_eq!(answer.status, 503);
    blocking.rollback().await.unwrap();
    board.page("overview").await;
}

#[tokio::test]
async fn d4_without_its_tables_a_page_says_what_to_do() {
    let database = Database::empty().await;
    let board = Board::operator(&database.pool);
    let answer = board.get("overview").await;
    assert_eq!(answer.status, 503);
    answer.shows("run idempotent_webhook::migrate");
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
        (
            Router::new().nest_service("/hooks", dashboard()),
            "/hooks/",
            "./overview",
        ),
    ] {
        let board = Board(router);
        let get = async |uri: &str| {
            board
                .send(Request::get(uri).body(Body::empty()).unwrap())
                .await
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

/// With the rights that `migrate` documents, and no others.
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
                idempotent_webhook.operator_actions to {role}"
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

/// Every page, and an action of each kind, on a database with a dead delivery `a`.
pub async fn works_on(database: &Database, pool: &PgPool) {
    let board = Board::operator(pool);
    for page in PAGES {
        board.page(page).await;
    }
    let before = unix_now(database).await;
    for form in [
        "action=pause&endpoint=test".to_owned(),
        "action=resume&endpoint=test".to_owned(),
        "action=retry&endpoint=test&id=a".to_owned(),
        "action=forget&endpoint=test&id=a".to_owned(),
        "action=discard&endpoint=test&id=a".to_owned(),
        format!("action=retry&endpoint=test&state=dead&before={before}"),
    ] {
        let answer = board.post("act", &form).await;
        assert_eq!(answer.status, 303, "{form}: {}", answer.text());
    }
    database
        .until(
            "not exists (
                select from idempotent_webhook.operator_actions
                where ended_at is null or note like 'The database%'
            )",
        )
        .await;
    database.until(NOTHING_KEPT).await;
}

/// A database on which the dashboard [works](works_on).
pub async fn database_with_a_dead_delivery() -> Database {
    with_a_dead_delivery().await.database
}

#[tokio::test(flavor = "multi_thread")]
async fn g11_the_dashboard_works_where_transactions_are_serializable() {
    let app = with_a_dead_delivery().await;
    let options = app.database.options();
    let options = options.options([("default_transaction_isolation", "serializable")]);
    works_on(&app.database, &PgPool::connect_lazy_with(options)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d1_the_layer_and_the_dashboard_live_in_one_router() {
    let database = Database::new().await;
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", presets::github(secret()));
    let dashboard = Dashboard::new(database.pool.clone()).authorize(|_| Access::read());
    let router = Router::new()
        .route("/webhook", post(write_effect).layer(layer))
        .nest("/admin", dashboard.into_router());
    let board = Board(router);
    let delivery = github_delivery().uri("/webhook").id("a").request();
    assert_eq!(board.send(delivery).await.status, 200);
    let found = board.page("admin/lookup?ids=a").await;
    found.shows("data-state=\"processed\"");
    assert_eq!(board.get("elsewhere").await.status, 404);
}
