//! Guarantee D1: who may see and do what.

use super::page_list::Entry;
use super::*;
use crate::support::endpoint;

#[tokio::test(flavor = "multi_thread")]
async fn d1_without_an_authorizer_there_is_no_page() {
    let app = with_a_dead_delivery().await;
    let board = Board(Dashboard::new(app.database.pool.clone()).into_router());
    let log = logged(async {
        for page in pages() {
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
    for page in pages() {
        assert_eq!(as_user("GET", page, "eve").await.status, 403, "{page}");
        assert_eq!(as_user("GET", page, "ada").await.status, 200, "{page}");
    }
    for content in ["payload?endpoint=test&id=a", "capture?endpoint=test&id=a"] {
        for user in ["ada", "bob", "eve"] {
            assert_eq!(as_user("GET", content, user).await.status, 403, "{user}");
        }
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

/// The right to each page is checked before the page is built.
#[tokio::test(flavor = "multi_thread")]
async fn d1_each_page_needs_the_right_of_its_entry() {
    let app = with_a_dead_delivery().await;
    app.database
        .run(
            "insert into idempotent_webhook.operator_actions (action, endpoint, endpoints, ended_at)
             values ('pause', 'test', array['test'], now())",
        )
        .await;
    let levels = [
        (Access::none(), false, false),
        (Access::read(), true, false),
        (Access::operate(), true, true),
    ];
    for (level, may_read, may_operate) in levels {
        for (access, sees_payloads, sees_all_tenants) in [
            (level.clone(), false, true),
            (level.clone().with_payloads(), true, true),
            (level.clone().of_tenants(["red"]), false, false),
            (level.with_payloads().of_tenants(["red"]), true, false),
        ] {
            let board = Board::of(&app.database.pool, access.clone());
            for entry in &PAGES {
                let has_right = match entry.needs {
                    Right::Read => may_read,
                    Right::SeePayloads => may_read && sees_payloads,
                    Right::Operate => may_operate,
                };
                let may = has_right && (sees_all_tenants || !entry.is_of_all_tenants);
                for address in addresses(entry.page) {
                    for answer in ask(&board, entry, address).await {
                        let (status, access) = (answer.status.as_u16(), &access);
                        match may {
                            false => assert_eq!(status, 403, "{address}: {access:?}"),
                            // A delivery of another tenant is reported as unknown.
                            true if !sees_all_tenants => {
                                assert!([200, 303, 404].contains(&status), "{address}: {access:?}");
                            }
                            true => {
                                assert!([200, 303].contains(&status), "{address}: {access:?}");
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Requests the page in each way that it supports, as a browser and as a program.
async fn ask(board: &Board, entry: &Entry, address: &str) -> Vec<Answer> {
    let form = address.split_once('?').map_or("", |(_, form)| form);
    let mut answers = Vec::new();
    if entry.takes != Takes::Post {
        answers.push(board.get(&format!("api/{address}")).await);
        if !entry.is_for_programs {
            answers.push(board.get(address).await);
        }
    }
    if entry.takes != Takes::Get {
        answers.push(board.post(entry.name, form).await);
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn d1_readers_see_no_action_and_can_do_none() {
    let app = with_a_dead_delivery().await;
    let board = Board::of(&app.database.pool, Access::read());
    for page in pages().filter(|page| !page.starts_with("confirm")) {
        let answer = board.page(page).await;
        answer.hides("action=\"act\"");
        answer.hides("action=\"confirm\"");
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
    assert_eq!(endpoint.kept(&dead, None, 10).await.unwrap().len(), 1);
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
        shown.hides("capture?");
        let capture = board.get("capture?endpoint=test&id=a").await;
        assert_eq!(capture.status, 403);
        capture.hides("x-github-event");

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
        shown.shows("capture?");
        let capture = board.get("capture?endpoint=test&id=a").await;
        assert_eq!(capture.status, 200);
        assert_eq!(capture.header("content-type"), "application/octet-stream");
        for hidden in ["12345678901234567890", "geheim", "signature"] {
            capture.hides(hidden);
        }
        capture.shows("x-github-event: ");
        capture.shows("\"id\": ");
    }
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

/// The test has no database and waits for nothing else, so the paused clock skips to the timeout.
#[tokio::test(start_paused = true)]
async fn d1_an_authorizer_that_hangs_does_not_hold_the_request() {
    let pool = PgPoolOptions::new().connect_lazy("postgres://nobody@nowhere/none");
    let dashboard = Dashboard::new(pool.unwrap()).authorize_async(|_| std::future::pending());
    let board = Board(dashboard.into_router());
    let log = logged(async {
        for page in ["overview", "api/overview"] {
            let answer = board.get(page).await;
            assert_eq!(answer.status, 503);
            answer.shows("It took too long to check what you may see.");
        }
    })
    .await;
    assert!(log.contains("did not answer in time"), "{log}");
}

/// The id of a reason's group is shown to operators who may not see payloads. If it were a plain hash of the reason,
/// somebody who knows the wording of the errors could try names until a guess has the same hash.
#[tokio::test]
async fn d1_the_group_of_a_reason_confirms_no_guess_to_those_who_may_not_see_it() {
    let app = with_a_dead_delivery().await;
    let reason = "no such customer: 'Ada Lovelace'";
    let failed = format!(
        "update idempotent_webhook.kept_deliveries
         set reason = $${reason}$$, reason_group = idempotent_webhook.reason_group($${reason}$$)"
    );
    app.database.run(&failed).await;
    let reader = Board::of(&app.database.pool, Access::read());
    let failing = &reader.json("overview").await["failing"][0];
    assert_eq!(failing["reason"], "no such customer: '…'");
    let group = failing["reason_group"].as_str().unwrap();
    assert_eq!(group, group_of(&app.database, reason).await);
    let guessed: String = sqlx::query_scalar("select md5($1)::uuid::text")
        .bind(reason)
        .fetch_one(&app.database.pool)
        .await
        .unwrap();
    assert_ne!(group, guessed);
}

/// A reason that an extractor gives. It quotes the payload.
pub const LEAKING: &str = "
    update idempotent_webhook.kept_deliveries
    set reason = 'invalid type: string \"4111 1111\", expected u64 at line 17',
        reason_group = idempotent_webhook.reason_group('x'),
        history = idempotent_webhook.with_attempt(
            history, 'provider', 422::int2, 'unknown variant `Ada Lovelace`'
        )
";

#[tokio::test]
async fn d1_a_reason_shows_no_payload_to_those_who_may_not_see_it() {
    let app = with_a_dead_delivery().await;
    app.database.run(LEAKING).await;
    let group = group_of(&app.database, "x").await;
    let before = unix_now(&app.database).await;
    let bulk = format!("endpoint=test&state=dead&reason={group}&before={before}");
    let log = logged(async {
        let board = Board::operator(&app.database.pool);
        board.page("overview").await.shows("4111 1111");
        board
            .page("delivery?endpoint=test&id=a")
            .await
            .shows("Ada Lovelace");
        assert_eq!(
            board
                .post("act", &format!("action=retry&{bulk}"))
                .await
                .status,
            303
        );
        app.database.until(ALL_ENDED).await;
    })
    .await;
    assert!(log.contains(&group), "{log}");
    for part in ["expected", "4111"] {
        assert!(!log.contains(part), "{log}");
    }
    app.database
        .run("update idempotent_webhook.kept_deliveries set state = 'dead', next_attempt_at = null")
        .await;
    for access in [Access::read(), Access::operate()] {
        let board = Board::of(&app.database.pool, access);
        for page in [
            "overview",
            "endpoint?endpoint=test",
            "deliveries",
            "delivery?endpoint=test&id=a",
            "actions",
            "action?id=1",
        ] {
            for page in [page.to_owned(), format!("api/{page}")] {
                let answer = board.page(&page).await;
                answer.hides("4111");
                answer.hides("Lovelace");
                answer.hides("line 17");
            }
        }
        board.page("overview").await.shows("expected u# at line #");
        let list = format!("deliveries?endpoint=test&state=dead&reason={group}");
        board.page(&list).await.hides("4111");
    }
    // Everybody can see the record of an action, so the record stores only the group of the reason. The page reads the
    // reason from a delivery that failed for it.
    let selection: (String, String) = sqlx::query_as(
        "select selection, reason_group::text from idempotent_webhook.operator_actions",
    )
    .fetch_one(&app.database.pool)
    .await
    .unwrap();
    assert_eq!(selection, ("dead deliveries".to_owned(), group.clone()));
    let board = Board::of(&app.database.pool, Access::read());
    let like = "dead deliveries, with a reason like “invalid type: string &quot;…&quot;, expected u# at line #”";
    for page in ["actions", "action?id=1"] {
        board.page(page).await.shows(like);
    }
    endpoint(&app).erase("a").await.unwrap();
    let of_group = format!("dead deliveries, with a reason of the group {group}");
    for page in ["actions", "action?id=1", "api/actions", "api/action?id=1"] {
        board.page(page).await.shows(&of_group);
    }
}

/// Rows of each kind, for two endpoints and two tenants.
pub const TWO_OF_ALL: &str = "
    insert into idempotent_webhook.deliveries (endpoint, tenant, delivery_id)
    select endpoint, tenant, 'done-' || endpoint || '-' || tenant
    from unnest(array['mine', 'theirs']) as endpoint, unnest(array['red', 'blue']) as tenant;
    insert into idempotent_webhook.kept_deliveries
        (endpoint, tenant, delivery_id, state, attempts, first_failed_at, last_failed_at, reason,
         reason_group)
    select
        endpoint, tenant, 'dead-' || endpoint || '-' || tenant, 'dead', 1, now(), now(), 'it broke',
        idempotent_webhook.reason_group('it broke')
    from unnest(array['mine', 'theirs']) as endpoint, unnest(array['red', 'blue']) as tenant;
    insert into idempotent_webhook.kept_requests
        (endpoint, tenant, delivery_id, format, method, uri, headers, body)
    select endpoint, tenant, delivery_id, 1, 'POST', '/', '', '{}'
    from idempotent_webhook.kept_deliveries;
    insert into idempotent_webhook.activity (endpoint, hour, source, outcome, count, last_at)
    select endpoint, date_trunc('hour', now(), 'UTC'), 'request', 'processed', 1, now()
    from unnest(array['mine', 'theirs']) as endpoint;
    insert into idempotent_webhook.rejections (endpoint, hour, cause, count, last_at, reason)
    select endpoint, date_trunc('hour', now(), 'UTC'), 'no_match', 1, now(), 'no signature matches'
    from unnest(array['mine', 'theirs']) as endpoint;
    insert into idempotent_webhook.operator_actions (action, endpoint, endpoints, ended_at)
    values ('pause', 'mine', array['mine'], now()), ('pause', 'theirs', array['theirs'], now()),
        ('retry', null, array['mine', 'theirs'], now());
    insert into idempotent_webhook.operator_action_deliveries (action, endpoint, tenant, delivery_id)
    select action.id, kept.endpoint, kept.tenant, kept.delivery_id
    from idempotent_webhook.operator_actions as action
    join idempotent_webhook.kept_deliveries as kept using (endpoint);
    insert into idempotent_webhook.bodies (endpoint, tenant, digest, delivery_id)
    select endpoint, tenant, sha256(delivery_id::bytea), delivery_id from idempotent_webhook.deliveries;
    insert into idempotent_webhook.subjects (endpoint, tenant, subject, version)
    select endpoint, tenant, 'subject-' || endpoint || '-' || tenant, 1 from idempotent_webhook.deliveries;
    insert into idempotent_webhook.discarded (endpoint, tenant, delivery_id)
    select endpoint, tenant, 'discarded-' || endpoint || '-' || tenant from idempotent_webhook.deliveries;
    insert into idempotent_webhook.sent_again (endpoint, tenant, delivery_id)
    select endpoint, tenant, delivery_id from idempotent_webhook.kept_deliveries;
    insert into idempotent_webhook.redelivery_requests (endpoint, tenant, delivery_id)
    select endpoint, tenant, 'asked-' || endpoint || '-' || tenant from idempotent_webhook.deliveries;
    insert into idempotent_webhook.redelivery_windows (endpoint, redelivery_window)
    select endpoint, interval '1 day' from unnest(array['mine', 'theirs']) as endpoint;
    insert into idempotent_webhook.pruned (endpoint, before)
    select endpoint, now() - interval '1 day' from unnest(array['mine', 'theirs']) as endpoint;
    insert into idempotent_webhook.kept_endpoints (endpoint, served_at)
    select endpoint, now() from unnest(array['mine', 'theirs']) as endpoint;
    insert into idempotent_webhook.problems (endpoint, problem, subject, is_there)
    select endpoint, 'event type stopped', 'stopped.' || endpoint, true from unnest(array['mine', 'theirs']) as endpoint;
    insert into idempotent_webhook.event_types (endpoint, event_type)
    select endpoint, 'type.' || endpoint from unnest(array['mine', 'theirs']) as endpoint;
    insert into idempotent_webhook.endpoint_settings (endpoint, version, settings, told_at)
    select endpoint, 'version-of-' || endpoint, '{\"provider\":\"github\"}', now()
    from unnest(array['mine', 'theirs']) as endpoint;
    insert into idempotent_webhook.reconciliations (endpoint, path, source, begins_at, failure, failed_at)
    select endpoint, '/' || endpoint, 'github', now(), 'it answers 401 to ' || endpoint, now()
    from unnest(array['mine', 'theirs']) as endpoint;
    insert into idempotent_webhook.subscriptions (endpoint, address, source, compared_at, differences)
    select
        endpoint, 'https://example.com/' || endpoint, 'github', now(), array['it lacks the type of ' || endpoint]
    from unnest(array['mine', 'theirs']) as endpoint;
    insert into idempotent_webhook.turns (task, endpoint, address, source, next_at)
    select 'subscription', endpoint, address, source, now() + interval '1 hour'
    from idempotent_webhook.subscriptions
";

/// A page that reads a table without `where endpoint = any($1)` would show rows that it must not show.
#[tokio::test]
async fn d1_what_is_hidden_has_rows_in_each_table_with_an_endpoint_or_a_tenant() {
    let database = Database::new().await;
    database.run(TWO_OF_ALL).await;
    for (column, expected) in [
        ("endpoint", ["mine", "theirs"]),
        ("tenant", ["red", "blue"]),
    ] {
        let tables: Vec<String> = sqlx::query_scalar(
            "select table_name::text from information_schema.columns
             where table_schema = 'idempotent_webhook' and column_name = $1
             -- An action on all tenants of an endpoint is shown only to operators who see all tenants, so
             -- `operator_actions` needs no row for each tenant.
             and ($1 = 'endpoint' or table_name <> 'operator_actions')",
        )
        .bind(column)
        .fetch_all(&database.pool)
        .await
        .unwrap();
        assert!(tables.len() > 8, "{tables:?}");
        for table in tables {
            for value in expected {
                let rows = format!(
                    "select count(*) from idempotent_webhook.{table} where {column} = '{value}'"
                );
                let rows = database.count(&rows).await;
                assert!(
                    rows > 0,
                    "add rows of {column} {value} to {table} in `TWO_OF_ALL`"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d1_who_sees_one_endpoint_sees_nothing_of_another() {
    let database = Database::new().await;
    database.run(TWO_OF_ALL).await;
    let access = Access::operate()
        .with_payloads()
        .of_endpoints(["mine"])
        .named("ada");
    let board = Board::of(&database.pool, access);
    // Checks each page of the list, so that no new page is forgotten here.
    for page in pages() {
        board.get(page).await.hides("theirs");
    }
    let ids = "lookup?ids=dead-mine-red%20dead-theirs-red%20done-theirs-red";
    for page in [
        "overview",
        "endpoint?endpoint=mine",
        "rejected",
        "deliveries",
        "deliveries?state=processed",
        "actions",
        ids,
    ] {
        for page in [page.to_owned(), format!("api/{page}")] {
            let answer = board.page(&page).await;
            answer.shows("mine");
            let text = answer
                .text()
                .replace("dead-theirs-red", "")
                .replace("done-theirs-red", "");
            assert!(!text.contains("theirs"), "{page}: {text}");
        }
    }
    // The page repeats the id that was looked up, although the delivery is unknown to this operator.
    board
        .page(ids)
        .await
        .shows("<li><code>dead-theirs-red</code></li>");
    for page in [
        "endpoint?endpoint=theirs",
        "delivery?endpoint=theirs&tenant=red&id=dead-theirs-red",
        "payload?endpoint=theirs&tenant=red&id=dead-theirs-red",
        "capture?endpoint=theirs&tenant=red&id=dead-theirs-red",
        "action?id=2",
        "action?id=3",
    ] {
        for page in [page.to_owned(), format!("api/{page}")] {
            assert_eq!(board.get(&page).await.status, 404, "{page}");
        }
    }
    for list in [
        "deliveries?endpoint=theirs",
        "deliveries?endpoint=theirs&state=processed",
    ] {
        board.page(list).await.hides("-theirs-");
    }
    for form in [
        "action=discard&endpoint=theirs&tenant=red&id=dead-theirs-red",
        "action=pause&endpoint=theirs",
        "action=discard&key=endpoint%3Dtheirs%26tenant%3Dred%26id%3Ddead-theirs-red",
    ] {
        assert_eq!(board.post("act", form).await.status, 404, "{form}");
    }
    assert_eq!(board.post("cancel", "id=2").await.status, 404);
    let (group, before) = (
        group_of(&database, "it broke").await,
        unix_now(&database).await,
    );
    for (form, changed) in [(
        format!("action=discard&state=dead&reason={group}&before={before}"),
        2,
    )] {
        board.post("act", &form).await;
        database.until(ALL_ENDED).await;
        let done = actions(&database).await;
        assert_eq!(done.last().unwrap().changed, changed, "{form}");
    }
    database
        .until(
            "(select array_agg(distinct endpoint) from idempotent_webhook.kept_deliveries)
                = array['theirs']",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d1_who_sees_several_endpoints_sees_what_he_does_to_them() {
    let database = Database::new().await;
    database.run(TWO_OF_ALL).await;
    let of = |endpoints: &[&str]| {
        let access = Access::operate().of_endpoints(endpoints.iter().copied());
        Board::of(&database.pool, access.named("ada"))
    };
    let board = of(&["mine", "theirs", "further"]);
    let (group, before) = (
        group_of(&database, "it broke").await,
        unix_now(&database).await,
    );
    let form = format!("action=discard&state=dead&reason={group}&before={before}");
    let answer = board.post("act", &form).await;
    let page = answer.header("location").to_owned();
    database.until(ALL_ENDED).await;
    assert_eq!(actions(&database).await[3], action("discard", None, 4));
    board.page(&page).await.shows("several endpoints");
    board.page("actions").await.shows(&page);
    assert_eq!(board.post("cancel", "id=4").await.status, 303);
    assert_eq!(of(&["mine"]).get(&page).await.status, 404);
    of(&["mine"]).page("actions").await.hides(&page);
    // An action on deliveries that the operator may not see is not recorded.
    let form = format!("action=discard&endpoint=hidden&state=dead&before={before}");
    assert_eq!(board.post("act", &form).await.status, 404);
    assert_eq!(actions(&database).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn d1_who_sees_one_tenant_sees_nothing_of_another() {
    let database = Database::new().await;
    database.run(TWO_OF_ALL).await;
    // If ids are not separate for each tenant, the tenant is known by the stored name.
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, tenant_name, state, attempts, first_failed_at,
                 last_failed_at)
             values ('mine', 'named-red', 'red', 'dead', 1, now(), now()),
                ('mine', 'named-blue', 'blue', 'dead', 1, now(), now()),
                ('mine', 'of-nobody', null, 'dead', 1, now(), now())",
        )
        .await;
    let access = Access::operate()
        .with_payloads()
        .of_tenants(["red"])
        .named("ada");
    let board = Board::of(&database.pool, access);
    assert_eq!(board.get("").await.header("location"), "./deliveries");
    // Checks each page of the list, so that no new page is forgotten here.
    for page in pages() {
        let answer = board.get(page).await;
        for hidden in ["mine-blue", "named-blue", "of-nobody"] {
            answer.hides(hidden);
        }
    }
    let ids = "lookup?ids=dead-mine-red%20named-red%20named-blue%20dead-mine-blue";
    for page in [
        "deliveries",
        "deliveries?state=dead&endpoint=mine",
        "deliveries?state=processed",
        ids,
        "deliveries?tenant=blue",
        "deliveries?tenant=blue&state=processed",
    ] {
        for page in [page.to_owned(), format!("api/{page}")] {
            let answer = board.page(&page).await;
            for hidden in [
                "id=dead-mine-blue",
                "id=named-blue",
                "id=done-mine-blue",
                "of-nobody",
            ] {
                answer.hides(hidden);
            }
            answer.hides("href=\"overview\"");
        }
    }
    board.page("deliveries").await.shows("id=named-red");
    board
        .page("deliveries?state=processed")
        .await
        .shows("done-mine-red");
    let group = group_of(&database, "it broke").await;
    let of_others = board
        .page(&format!("api/deliveries?endpoint=mine&reason={group}"))
        .await;
    of_others.shows("\"reason_example\": null");
    board
        .page("api/lookup?ids=unknown")
        .await
        .shows("\"rejected\": null");
    for page in [
        "overview",
        "endpoint?endpoint=mine",
        "rejected",
        "actions",
        "action?id=1",
    ] {
        assert_eq!(board.get(page).await.status, 403, "{page}");
    }
    for (key, status) in [
        ("endpoint=mine&tenant=red&id=dead-mine-red", 200),
        ("endpoint=mine&id=named-red", 200),
        ("endpoint=mine&tenant=blue&id=dead-mine-blue", 404),
        ("endpoint=mine&id=named-blue", 404),
        ("endpoint=mine&id=of-nobody", 404),
    ] {
        let page = board.get(&format!("delivery?{key}")).await;
        assert_eq!(page.status, status, "{key}");
        let answer = board.post("act", &format!("action=pause&{key}")).await;
        assert_eq!(answer.status, 403, "{key}");
        if status == 404 {
            let answer = board.post("act", &format!("action=discard&{key}")).await;
            assert_eq!(answer.status, 404, "{key}");
        }
    }
    let before = unix_now(&database).await;
    let form = format!("action=discard&endpoint=mine&state=dead&before={before}");
    let confirm = board.page(&format!("confirm?{form}")).await;
    confirm.shows("Discard 2 deliveries?");
    assert_eq!(
        board.post("act", &form).await.header("location"),
        "deliveries"
    );
    database.until(ALL_ENDED).await;
    database
        .until(
            "not exists (
                select from idempotent_webhook.kept_deliveries
                where endpoint = 'mine' and delivery_id like '%red'
             )
             and (select count(*) from idempotent_webhook.kept_deliveries) = 5",
        )
        .await;
}

#[tokio::test]
async fn d1_an_authorizer_that_panics_lets_nobody_in() {
    let database = Database::new().await;
    let dashboard = Dashboard::new(database.pool.clone())
        .authorize(|_| -> Access { panic!("the session store is away") });
    let board = Board(dashboard.into_router());
    let log = logged(async {
        let answer = board.get("overview").await;
        assert_eq!(answer.status, 500);
        assert!(answer.headers.contains_key("content-security-policy"));
        answer.hides("session store");
    })
    .await;
    assert!(log.contains("the session store is away"), "{log}");
}
