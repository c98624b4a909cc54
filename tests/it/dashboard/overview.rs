//! Guarantee D3: the state of each endpoint, and what is failing.

use super::*;
use crate::support::{recovery, send, stripe_delivery};

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
        ("left", "unserved"),
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

/// Asserts that the overview shows these reasons, and that the first one links to the deliveries
/// that failed for it.
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
    // The reason is shown for each delivery and in the heading.
    let shown = number.parse::<usize>().unwrap() + 1;
    assert_eq!(listed.text().matches(first).count(), shown);
    for (_, other) in others {
        listed.hides(other);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_of_many_reasons_those_that_occurred_last_are_shown() {
    let database = Database::new().await;
    // There are 300 reasons. One of them has both the earliest and the latest failure.
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
    // The 1st and the 50th reason are shown, but not the 51st.
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

/// The page shows `fine` only if that is known.
#[tokio::test(flavor = "multi_thread")]
async fn d3_an_endpoint_is_fine_only_if_nothing_fails_or_is_rejected() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.activity (endpoint, hour, source, outcome, count, last_at)
             select endpoint, date_trunc('hour', at, 'UTC'), 'request', outcome, 3, at
             from (values
                ('every attempt fails', 'failed', interval '1 minute'),
                ('failed last', 'processed', interval '2 minutes'),
                ('failed last', 'failed', interval '1 minute'),
                ('failed long ago', 'processed', interval '6 hours'),
                ('failed long ago', 'failed', interval '5 hours'),
                ('works again', 'failed', interval '2 minutes'),
                ('works again', 'processed', interval '1 minute'),
                ('worked again long ago', 'failed', interval '5 hours'),
                ('worked again long ago', 'processed', interval '1 minute'),
                ('rejects all', 'rejected', interval '1 minute'),
                ('rejects since', 'processed', interval '5 hours'),
                ('rejects since', 'rejected', interval '4 hours'),
                ('rejects some', 'rejected', interval '2 minutes'),
                ('rejects some', 'processed', interval '1 minute'),
                ('is scanned', 'processed', interval '5 hours'),
                ('is scanned', 'rejected', interval '4 hours'),
                ('accepts', 'accepted', interval '1 minute'),
                ('accepts', 'processed', interval '1 minute'),
                ('is behind', 'accepted', interval '1 minute'),
                ('records', 'processed', interval '1 minute'),
                ('is quiet', 'processed', interval '25 hours'),
                ('is silent', 'processed', interval '3 hours'),
                ('is silent', 'rejected', interval '4 hours'),
                ('is silent for long', 'duplicate', interval '40 days'),
                ('is silent for long', 'handshake', interval '1 minute'),
                ('is not silent yet', 'processed', interval '3 hours'),
                ('is left', 'failed', interval '1 minute'),
                ('has duplicates', 'failed', interval '2 minutes'),
                ('has duplicates', 'duplicate', interval '1 minute'),
                ('is paused', 'processed', interval '1 minute'),
                ('paused and rejects', 'processed', interval '2 minutes'),
                ('paused and rejects', 'rejected', interval '1 minute')
             ) as counted (endpoint, outcome, age)
             cross join lateral (select now() - age as at) as known;
             insert into idempotent_webhook.endpoint_settings (endpoint, settings, told_at)
             values
                ('is silent', jsonb_build_object('expected_every_seconds', 3600), now()),
                ('is silent for long', jsonb_build_object('expected_every_seconds', 864000), now()),
                ('is not silent yet', jsonb_build_object('expected_every_seconds', 14400), now());
             insert into idempotent_webhook.rejections
                (endpoint, hour, cause, count, last_at, reason)
             select endpoint, hour, case endpoint
                    when 'is scanned' then 'method_not_allowed'
                    else 'no_match'
                end, count, last_at, 'x'
             from idempotent_webhook.activity
             where outcome = 'rejected';
             insert into idempotent_webhook.kept_endpoints (endpoint, served_at)
             select endpoint, now() from idempotent_webhook.activity
             on conflict do nothing;
             update idempotent_webhook.kept_endpoints
             set paused_at = now() where endpoint like '%paused%';
             update idempotent_webhook.kept_endpoints
             set served_at = now() - interval '1 hour' where endpoint = 'is left';
             insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, next_attempt_at, last_failed_at)
             values
                -- Accepted 8 seconds ago, and its handler is still running.
                ('accepts', 'a', 'due', 0, now() - interval '8 s', null),
                ('is behind', 'a', 'due', 0, now() - interval '2 min', null),
                ('is left', 'a', 'due', 1, now() - interval '2 min', now()),
                ('records', 'a', 'recorded', 1, null, now() - interval '9 hours')",
        )
        .await;
    let overview = Board::operator(&database.pool).json("overview").await;
    let states: Vec<(&str, &str)> = overview["endpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|endpoint| {
            let text = |name: &str| endpoint[name].as_str().unwrap();
            (text("endpoint"), text("state"))
        })
        .collect();
    // Worst first.
    let expected = [
        ("is left", "unserved"),
        ("every attempt fails", "failing"),
        ("failed last", "failing"),
        ("failed long ago", "failing"),
        ("has duplicates", "failing"),
        ("records", "failing"),
        ("paused and rejects", "rejecting"),
        ("rejects all", "rejecting"),
        ("rejects since", "rejecting"),
        ("is silent", "silent"),
        ("is silent for long", "silent"),
        ("is behind", "behind"),
        ("is paused", "paused"),
        ("rejects some", "mixed"),
        ("works again", "mixed"),
        ("is quiet", "quiet"),
        ("accepts", "fine"),
        ("is not silent yet", "fine"),
        ("is scanned", "fine"),
        ("worked again long ago", "fine"),
    ];
    assert_eq!(states, expected);
    let page = Board::operator(&database.pool).page("overview").await;
    page.shows("no authentic request for 3 h, and one is expected every 1 h");
    page.shows("data-state=\"silent\"");
}

/// A paused endpoint can be resumed, no matter what else is wrong with it.
#[tokio::test(flavor = "multi_thread")]
async fn d3_what_is_paused_says_so_in_any_state() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_endpoints (endpoint, paused_at, served_at)
             values ('test', now(), now());
             insert into idempotent_webhook.activity (endpoint, hour, source, outcome, count, last_at)
             values ('test', date_trunc('hour', now(), 'UTC'), 'request', 'failed', 1, now())",
        )
        .await;
    let board = Board::operator(&database.pool);
    assert_eq!(board.json("overview").await["endpoints"][0]["paused"], true);
    for page in ["overview", "endpoint?endpoint=test"] {
        let page = board.page(page).await;
        page.shows("data-state=\"failing\"");
        page.shows("data-state=\"paused\"");
        page.shows("Resume");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_a_reason_is_one_over_all_endpoints_since_its_first_failure() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, next_attempt_at, first_failed_at,
                 last_failed_at, reason, reason_group)
             select endpoint, 'id-' || number, state, 1, case state when 'due' then now() end,
                -- `id-0` has the earliest first failure and the latest last failure.

                now() - interval '10 hours' + number * interval '1 hour',
                now() - number * interval '1 minute', reason,
                idempotent_webhook.reason_group(reason)
             from generate_series(0, 2) as number
             cross join (values ('a', 'dead'), ('b', 'dead'), ('b', 'due')) as parts (endpoint, state)
             cross join lateral (values (
                'deadlock detected in process ' || 900 + 13 * number + ascii(endpoint)
             )) as reasons (reason)
             where state = 'dead' or number = 0
             on conflict do nothing",
        )
        .await;
    let board = Board::operator(&database.pool);
    let overview = board.json("overview").await;
    let groups = overview["failing"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "{groups:?}");
    assert_eq!(groups[0]["deliveries"]["number"], 6);
    assert_eq!(groups[0]["parts"].as_array().unwrap().len(), 2);
    let hours: f64 = sqlx::query_scalar(
        "select extract(epoch from now() - $1::text::timestamptz)::float8 / 3600",
    )
    .bind(groups[0]["since"].as_str().unwrap())
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert!((10.0..10.1).contains(&hours), "{hours}");
    let page = board.page("overview").await;
    page.shows("<summary>2 endpoints</summary>");
    page.shows("confirm?action=retry&amp;state=dead&amp;reason=");
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_an_endpoint_shows_what_each_version_did() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.activity
                (endpoint, hour, source, outcome, version, count, last_at)
             select 'test', date_trunc('hour', now(), 'UTC') - age * interval '1 hour',
                source, outcome, version, count, now()
             from (values
                (5, 'request', 'processed', '1.4.1', 900), (5, 'handler', '20', '1.4.1', 900),
                (3, 'request', 'processed', '1.4.1', 100), (3, 'handler', '20', '1.4.1', 100),
                (3, 'request', 'processed', '1.4.2', 20), (3, 'request', 'kept', '1.4.2', 80),
                (3, 'handler', '500', '1.4.2', 99), (3, 'handler', 'inf', '1.4.2', 1),
                (2, 'recovery', 'failed', '1.4.2', 7), (2, 'recovery', 'dead', '1.4.2', 7),
                (30, 'request', 'failed', '1.4.0', 5000)
             ) as counted (age, source, outcome, version, count);
             insert into idempotent_webhook.endpoint_settings
             values ('test', '1.4.2', '{\"handler_timeout_seconds\": 30, \"keep\": \"all\",
                \"switched_off_by_provider\": \"after 8 failures\"}', now())",
        )
        .await;
    let board = Board::operator(&database.pool);
    let day = board.json("endpoint?endpoint=test").await;
    let versions = day["by_version"].as_array().unwrap();
    let numbers = |version: &Value| {
        ["processed", "failed", "handler_p50_ms", "handler_p95_ms"]
            .map(|name| version[name].as_i64())
    };
    assert_eq!(versions[0]["version"], "1.4.2");
    assert_eq!(
        numbers(&versions[0]),
        [Some(20), Some(87), Some(500), Some(500)]
    );
    assert_eq!(versions[1]["version"], "1.4.1");
    assert_eq!(
        numbers(&versions[1]),
        [Some(1000), Some(0), Some(20), Some(20)]
    );
    assert_eq!(
        numbers(&day["totals"]),
        [Some(1020), Some(87), Some(20), Some(500)]
    );
    let hours = day["by_hour"].as_array().unwrap();
    assert_eq!(hours.len(), 24);
    // The page shows no version start for 5 hours ago, because nothing is known about the hour
    // before.
    let began: Vec<_> = hours
        .iter()
        .map(|hour| hour["began"].as_array().unwrap().len())
        .collect();
    assert_eq!(began.iter().sum::<usize>(), 1, "{began:?}");
    assert_eq!(hours[20]["began"][0], "1.4.2");
    assert_eq!(hours[20]["failed"], 80);
    let week = board.json("endpoint?endpoint=test&days=7").await;
    assert_eq!(week["totals"]["failed"], 5087);
    assert_eq!(week["by_hour"].as_array().unwrap().len(), 168);
    let page = board.page("endpoint?endpoint=test").await;
    page.shows("version 1.4.2 began");
    page.shows("<dt>Handler timeout</dt><dd>30 s</dd>");
    page.shows("Reported by a process with version 1.4.2");
    page.shows("<dt>Switched off by the provider</dt><dd>after 8 failures</dd>");
    assert_eq!(board.get("endpoint?endpoint=tset").await.status, 404);
    assert_eq!(board.get("endpoint?endpoint=test&days=3").await.status, 400);
}

/// A secret was rotated on one side only, so requests are rejected.
#[tokio::test(flavor = "multi_thread")]
async fn d3_rejected_requests_are_shown_by_cause_and_hour() {
    let app = TestApp::github(write_effect).await;
    app.send(github("a", "{}")).await;
    let other = Secret::new("another").unwrap();
    let forged = TestDelivery::new(&presets::github(other)).id("evt_lost");
    for _ in 0..3 {
        assert_eq!(app.send(forged.request()).await.status, 401);
    }
    app.database
        .until("(select sum(count) from idempotent_webhook.rejections) = 3")
        .await;
    let board = Board::operator(&app.database.pool);
    let rejected = board.json("rejected").await;
    let cause = &rejected["causes"][0];
    assert_eq!(cause["cause"], "no_match");
    assert_eq!(cause["requests"], 3);
    let by_hour = cause["by_hour"].as_array().unwrap();
    let sum: i64 = by_hour
        .iter()
        .map(|hour| hour["requests"].as_i64().unwrap())
        .sum();
    assert_eq!(sum, 3);
    let page = board.page("rejected").await;
    page.shows("no match");
    page.shows("another secret, or a body that was changed");
    page.hides("evt_lost");
    let page = board.page("endpoint?endpoint=test").await;
    page.shows("another secret, or a body that was changed");
    // Rejected requests leave no ids, so the lookup of a rejected delivery can only say that it may
    // be among them.
    let found = board.page("lookup?ids=evt_lost").await;
    found.shows("Never received, or rejected: <a href=\"rejected\">3 in the last 24 hours</a>");
}

#[tokio::test]
async fn y1_the_page_of_an_endpoint_has_what_is_new_and_what_has_stopped() {
    let database = Database::new().await;
    let github = || presets::github(secret());
    let start = || {
        let events = Events::new()
            .on("push", write_effect)
            .on("release", write_effect)
            .on("never_subscribed", write_effect)
            .ignore(["star"])
            .ignore_others();
        // The layer keeps nothing, so no problem is reported.
        let layer = IdempotentWebhook::new(database.pool.clone(), "test", github());
        let router: Router = Router::new().route("/", post(events.layer(layer.clone())));
        (layer, router)
    };
    let (layer, router) = start();
    let get = async |event_type: &str| {
        let delivery = TestDelivery::new(&github()).id(event_type);
        let delivery = delivery.event_type(event_type).body("{}");
        let sent = send(&router, delivery.request()).await;
        assert_eq!(sent.status, 200, "{event_type}");
        layer.drained().await;
    };
    for event_type in ["push", "release", "star", "fork"] {
        get(event_type).await;
    }
    database
        .run(
            "update idempotent_webhook.event_types
             set days = 9, first_at = first_at - interval '9 days', last_at = last_at - interval '25 hours',
                 clock = case when is_handled then 10 else 0 end, longest_pause = 0;
             update idempotent_webhook.endpoint_settings
             set ignores_since = ignores_since - interval '9 days', names_since = names_since - interval '9 days'",
        )
        .await;
    get("<b>push</b>").await;
    get("push").await;
    let board = Board::operator(&database.pool);
    let json = board.json("endpoint?endpoint=test").await;
    let of = |list: &str, what: &[&str]| -> Vec<(String, Vec<bool>)> {
        let types = json[list].as_array().unwrap().iter();
        types
            .map(|one| {
                let what = what.iter().map(|what| one[what].as_bool().unwrap());
                (one["type"].as_str().unwrap().to_owned(), what.collect())
            })
            .collect()
    };
    let row = |name: &str, what: &[bool]| (name.to_owned(), what.to_vec());
    assert_eq!(
        of("handled", &["stopped"]),
        [
            row("release", &[true]),
            row("never_subscribed", &[false]),
            row("push", &[false]),
        ]
    );
    assert_eq!(
        of("ignored", &["new", "named", "verified"]),
        [
            row("<b>push</b>", &[true, false, false]),
            row("fork", &[false, false, false]),
            row("star", &[false, true, true]),
        ]
    );
    assert_eq!(json["state"], "event type stopped");
    assert_eq!(
        (&json["new_event_type"], &json["event_type_stopped"]),
        (&true.into(), &true.into())
    );
    let page = board.page("endpoint?endpoint=test").await;
    for shown in [
        "&lt;b&gt;push&lt;/b&gt;",
        "data-state=\"new\"",
        "data-state=\"stopped\"",
        "data-state=\"new event type\"",
        "none has arrived",
        "not verified",
    ] {
        page.shows(shown);
    }
    page.hides("<b>push</b>");
    let overview = board.page("overview").await;
    overview.shows("data-state=\"event type stopped\"");
    assert_rows!(database, claims: 2, effects: 2);
}

/// The page shows which ignored types come, so that the operator can unsubscribe from them.
#[tokio::test]
async fn d3_the_page_of_an_endpoint_has_the_types_that_are_ignored() {
    let database = Database::new().await;
    let stripe = presets::stripe(secret());
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", stripe).only(["invoice.*"]);
    let router = Router::new().route("/", post(write_effect).layer(layer.clone()));
    for (id, event_type) in [
        ("a", "charge.<failed>"),
        ("b", "charge.<failed>"),
        ("c", "payout.paid"),
        ("d", "invoice.paid"),
    ] {
        let body = format!(r#"{{"id":"{id}","type":"{event_type}"}}"#);
        let sent = send(&router, stripe_delivery(body).request()).await;
        assert_eq!(sent.status, 200);
    }
    layer.drained().await;
    let board = Board::operator(&database.pool);
    let endpoint = board.json("endpoint?endpoint=test").await;
    let types: Vec<_> = endpoint["ignored"].as_array().unwrap().iter().collect();
    let types: Vec<_> = types
        .iter()
        .map(|one| {
            (
                one["type"].as_str().unwrap(),
                one["events"].as_i64().unwrap(),
            )
        })
        .collect();
    assert_eq!(types, [("charge.<failed>", 2), ("payout.paid", 1)]);
    let page = board.page("endpoint?endpoint=test").await;
    page.shows("charge.&lt;failed&gt;");
    page.shows("check its subscription");
    page.hides("charge.<failed>");
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn y2_what_differs_of_a_subscription_is_the_state_of_the_endpoint() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_endpoints (endpoint, served_at)
             select unnest('{as it should be,cannot be asked,differs,nobody compares}'::text[]), now();
             insert into idempotent_webhook.subscriptions
                 (endpoint, address, source, compared_at, differences)
             values
                 ('as it should be', 'https://a.example/', 'stripe', now(), '{}'),
                 ('differs', 'https://a.example/', 'stripe', now(), '{one thing,another}'),
                 ('nobody compares', 'https://a.example/', 'stripe', now(), '{x}');
             insert into idempotent_webhook.subscriptions (endpoint, address, source, failure, failed_at)
             values
                 ('as it should be', 'https://b.example/', 'stripe', 'for an hour', now() - interval '1 hour'),
                 ('cannot be asked', 'https://a.example/', 'stripe', 'a key', now() - interval '2 days');
             insert into idempotent_webhook.turns (task, endpoint, address, source, next_at)
             select 'subscription', endpoint, address, source,
                 now() - case endpoint when 'nobody compares' then interval '61 minutes' else '0' end
             from idempotent_webhook.subscriptions",
        )
        .await;
    let board = Board::operator(&database.pool);
    let overview = board.json("overview").await;
    let differences: Vec<_> = overview["endpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|endpoint| {
            (
                endpoint["endpoint"].as_str().unwrap(),
                endpoint["state"].as_str().unwrap(),
                endpoint["subscription_differs"].as_str(),
                endpoint["not_compared"].as_str(),
            )
        })
        .collect();
    let expected = [
        (
            "differs",
            "subscription differs",
            Some("one thing, and 1 more"),
            None,
        ),
        (
            "cannot be asked",
            "not compared",
            None,
            Some("stripe: a key"),
        ),
        ("as it should be", "quiet", None, None),
        ("nobody compares", "quiet", None, None),
    ];
    assert_eq!(differences, expected);
    let page = board.page("overview").await;
    let state = "subscription differs</span> <span class=\"why\">one thing, and 1 more</span>";
    assert!(page.text().contains(state), "{}", page.text());
    let state = "not compared</span> <span class=\"why\">stripe: a key</span>";
    assert!(page.text().contains(state), "{}", page.text());
}

/// The page counts requests by secret. From these counts, an operator sees when no request is
/// signed with the old secret any more.
#[tokio::test]
async fn y5_the_page_of_an_endpoint_counts_by_secret() {
    let database = Database::new().await;
    let new = Secret::new("the new one").unwrap();
    let stripe = presets::stripe(Secrets::new(new).and(secret()));
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", stripe);
    let router = Router::new().route("/", post(write_effect).layer(layer.clone()));
    let body = r#"{"id":"a","type":"invoice.paid"}"#;
    let sent = send(&router, stripe_delivery(body).request()).await;
    assert_eq!(sent.status, 200);
    layer.drained().await;
    let board = Board::operator(&database.pool);
    let endpoint = board.json("endpoint?endpoint=test").await;
    let by_secret = endpoint["by_secret"].as_array().unwrap();
    assert_eq!(by_secret.len(), 1);
    assert_eq!(by_secret[0]["name"], "1");
    assert_eq!(by_secret[0]["deliveries"], 1);
    assert_eq!(endpoint["totals"]["processed"], 1);
    let page = board.page("endpoint?endpoint=test").await;
    page.shows("By secret");
    page.shows("A rotation is complete once no other secret");
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test]
async fn y3_the_page_of_an_endpoint_counts_other_versions() {
    let database = Database::new().await;
    let recovery = recovery(&database.pool);
    let shopify = presets::shopify(secret()).expect_version("2025-10");
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", shopify.clone())
        .keep(Keep::failed(&recovery));
    let router = Router::new().route("/", post(write_effect).layer(layer.clone()));
    let delivery = TestDelivery::new(&shopify)
        .id("a")
        .event_type("orders/create")
        .header(
            HeaderName::from_static("x-shopify-api-version"),
            "<2026-01>",
        );
    assert_eq!(send(&router, delivery.request()).await.status, 200);
    layer.drained().await;
    let board = Board::operator(&database.pool);
    let endpoint = board.json("endpoint?endpoint=test").await;
    assert_eq!(endpoint["state"], "other version");
    let versions = endpoint["other_versions"].as_array().unwrap();
    assert_eq!(versions.len(), 1);
    assert_eq!(versions[0]["name"], "<2026-01>");
    assert_eq!(versions[0]["deliveries"], 1);
    let page = board.page("endpoint?endpoint=test").await;
    page.shows("&lt;2026-01&gt;");
    page.shows("an attacker with a captured request can make one up");
    page.hides("<2026-01>");
    assert_rows!(database, claims: 1, effects: 1);
}
