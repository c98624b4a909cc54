//! What the dashboard shows about reconciliation: what it has found, and where it fails.

use serde_json::json;

use super::*;

/// Inserts three lists of a provider's events for each of two endpoints: a list that cannot be read, a list that no
/// process reconciles any more, and a new list.
const LISTS: &str = r#"
    with list as (
        insert into idempotent_webhook.turns (task, endpoint, address, source, next_at)
        select 'reconciliation', endpoint, '/hooks?token=geheim', endpoint || '-' || source, next_at
        from unnest(array['mine', 'theirs']) as endpoint
        cross join (values
            ('fails', now() + interval '5 min'),
            ('is left', '2026-01-06 02:02:02Z'),
            ('begins', now())
        ) as turns (source, next_at)
    )
    insert into idempotent_webhook.reconciliations
        (endpoint, path, source, begins_at, reconciled_until, missed, last_missed_at, failure, failed_at)
    select endpoint, '/hooks?token=geheim', endpoint || '-' || source, '2026-01-01Z', reconciled_until,
        missed, last_missed_at, failure, failed_at
    from unnest(array['mine', 'theirs']) as endpoint
    cross join (values
        ('fails', timestamptz '2026-01-02 03:04:05Z', 1234,
         timestamptz '2026-01-03 01:02:03Z', 'no account "Ada Lovelace" (404)',
         timestamptz '2026-01-04 05:06:07Z'),
        ('is left', '2026-01-05 01:01:01Z', 0, null, null, null),
        ('begins', null, 0, null, null, null)
    ) as lists (source, reconciled_until, missed, last_missed_at, failure, failed_at);
    insert into idempotent_webhook.activity (endpoint, hour, source, outcome, count, last_at)
    select endpoint, date_trunc('hour', now(), 'UTC') - age, 'reconciliation', 'missed', count, now()
    from unnest(array['mine', 'theirs']) as endpoint
    cross join (values (interval '0', 12), (interval '30 hours', 1000)) as counted (age, count)
"#;

const PAGE: &str = "endpoint?endpoint=mine";

#[tokio::test(flavor = "multi_thread")]
async fn d3_an_endpoint_shows_how_far_it_is_reconciled() {
    let database = Database::new().await;
    database.run(LISTS).await;
    let board = Board::operator(&database.pool);
    // Lists that are not reconciled come first.
    let lists = &board.json(PAGE).await["reconciliation"];
    let list = |source: &str| {
        json!({
            "source": source, "path": "/hooks?token=geheim", "reconciled_until": null, "missed": 0,
            "last_missed": null, "failure": null, "failing_since": null, "late_since": null
        })
    };
    let mut fails = list("mine-fails");
    fails["reconciled_until"] = json!("2026-01-02T03:04:05Z");
    fails["missed"] = json!(1234);
    fails["last_missed"] = json!("2026-01-03T01:02:03Z");
    fails["failure"] = json!("no account \"Ada Lovelace\" (404)");
    fails["failing_since"] = json!("2026-01-04T05:06:07Z");
    let mut left = list("mine-is left");
    left["reconciled_until"] = json!("2026-01-05T01:01:01Z");
    left["late_since"] = json!("2026-01-06T02:02:02Z");
    assert_eq!(lists, &json!([fails, left, list("mine-begins")]));

    let page = board.page(PAGE).await;
    page.shows("<h2>Reconciliation</h2>");
    page.shows("no account &quot;Ada Lovelace&quot; (404)");
    let rows: Vec<&str> = page.text().split("<tr>").collect();
    let row = |source: &str| {
        let head = format!("<th scope=\"row\">{source}");
        let row = rows.iter().find(|row| row.contains(&head));
        row.unwrap().to_owned()
    };
    for (source, shown) in [
        ("mine-fails", "2026-01-02T03:04:05Z"),
        ("mine-fails", ">1,234</td>"),
        ("mine-fails", "2026-01-03T01:02:03Z"),
        ("mine-fails", "2026-01-04T05:06:07Z"),
        ("mine-is left", "2026-01-05T01:01:01Z"),
        (
            "mine-is left",
            "No process has started the round that was due at ",
        ),
        ("mine-is left", "2026-01-06T02:02:02Z"),
        ("mine-begins", ">not yet</td>"),
    ] {
        assert!(row(source).contains(shown), "{}", row(source));
    }
    assert!(!row("mine-begins").contains("No process has started"));

    // Without a list, the page shows nothing about reconciliation.
    database
        .run("delete from idempotent_webhook.reconciliations")
        .await;
    board.page(PAGE).await.hides("<h2>Reconciliation</h2>");
    assert_eq!(board.json(PAGE).await["reconciliation"], json!([]));
}

/// If a list is not reconciled, some deliveries may never have arrived, so the dashboard must not claim that nothing
/// has failed.
#[tokio::test(flavor = "multi_thread")]
async fn d3_what_is_not_reconciled_is_said_with_its_reason_where_its_state_is() {
    let database = Database::new().await;
    database.run(LISTS).await;
    for (access, reason) in [
        (
            Access::read().with_payloads(),
            "mine-fails: no account &quot;Ada Lovelace&quot; (404)",
        ),
        (Access::read(), "mine-fails: no account &quot;…&quot; (#)"),
    ] {
        let board = Board::of(&database.pool, access);
        for page in ["overview", PAGE] {
            let page = board.page(page).await;
            page.shows(&format!(
                "not reconciled</span> <span class=\"why\">{reason}</span>"
            ));
            page.shows("No received delivery is failing. Some may never have arrived");
            page.hides("Nothing has failed.");
        }
    }
    database
        .run("delete from idempotent_webhook.reconciliations where failure is not null")
        .await;
    let board = Board::operator(&database.pool);
    let late = "mine-is left: no process has started a round for more than an hour.";
    board.page("overview").await.shows(late);
    database
        .run("delete from idempotent_webhook.reconciliations where source like '% left'")
        .await;
    let page = board.page("overview").await;
    page.shows("Nothing has failed.");
    page.hides("class=\"why\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_what_reconciliation_has_received_is_counted() {
    let database = Database::new().await;
    database.run(LISTS).await;
    let board = Board::operator(&database.pool);
    board
        .page("overview")
        .await
        .shows("0 in all<br>12 by reconciliation");
    let overview = board.json("overview").await;
    assert_eq!(overview["endpoints"][0]["hours"][23]["missed"], 12);
    for (page, shown, number) in [
        (PAGE.to_owned(), "12", 12),
        (format!("{PAGE}&days=7"), "1,012", 1012),
    ] {
        let totals = &board.json(&page).await["totals"];
        assert_eq!(totals["missed"], number);
        // A delivery that reconciliation has received is processed or fails only later.
        assert_eq!(totals["processed"], 0);
        let shown = format!("Received by reconciliation: {shown}</p>");
        board.page(&page).await.shows(&shown);
    }

    database
        .run("delete from idempotent_webhook.activity where source = 'reconciliation'")
        .await;
    for page in ["overview", PAGE] {
        board.page(page).await.hides("by reconciliation");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_an_endpoint_is_fine_only_if_it_is_reconciled() {
    let database = Database::new().await;
    database
        .run(
            "create temporary table lists as
             select endpoint, source, late, process, failure
             from (values
                ('a list fails', 'a', interval '0', null, null),
                ('a list fails', 'b', interval '0', null, 'it answers 401'),
                ('fails and is paused', 'a', interval '0', null, 'it answers 401'),
                ('fails and is quiet', 'a', interval '0', null, 'it answers 401'),
                ('fails and rejects', 'a', interval '0', null, 'it answers 401'),
                ('fails and some failed', 'a', interval '0', null, 'it answers 401'),
                ('is late', 'a', interval '61 min', null, null),
                ('is late a little', 'a', interval '59 min', null, null),
                ('is in a long round', 'a', interval '-1 min', 1, null),
                ('was killed just now', 'a', interval '1 min', 1, null),
                ('was killed long ago', 'a', interval '2 hours', 1, null),
                ('waits for long', 'a', interval '-9 days', null, null),
                ('finds all', 'a', interval '0', null, null)
             ) as lists (endpoint, source, late, process, failure);
             insert into idempotent_webhook.reconciliations (endpoint, path, source, begins_at, failure)
             select endpoint, '/', source, now(), failure from lists;
             insert into idempotent_webhook.turns (task, endpoint, address, source, process, next_at)
             select 'reconciliation', endpoint, '/', source, process, now() - late from lists;
             drop table lists;
             insert into idempotent_webhook.activity (endpoint, hour, source, outcome, count, last_at)
             select distinct endpoint, date_trunc('hour', at, 'UTC'), counted.source, outcome, 1, at
             from idempotent_webhook.reconciliations
             cross join (values
                ('reconciliation', 'missed', 1), ('request', 'processed', 2), ('request', 'failed', 3),
                ('request', 'rejected', 1)
             ) as counted (source, outcome, minutes)
             cross join lateral (values (now() - minutes * interval '1 min')) as times (at)
             where case endpoint
                when 'fails and is quiet' then false
                when 'finds all' then outcome = 'missed'
                when 'fails and rejects' then outcome in ('processed', 'rejected')
                when 'fails and some failed' then outcome in ('processed', 'failed')
                else outcome = 'processed'
             end;
             insert into idempotent_webhook.rejections (endpoint, hour, cause, count, last_at, reason)
             select endpoint, hour, 'no_match', count, last_at, 'x'
             from idempotent_webhook.activity
             where outcome = 'rejected';
             insert into idempotent_webhook.kept_endpoints (endpoint, paused_at)
             values ('fails and is paused', now())",
        )
        .await;
    let board = Board::operator(&database.pool);
    let overview = board.json("overview").await;
    let states: Vec<(&str, &str, bool)> = overview["endpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|endpoint| {
            let text = |name: &str| endpoint[name].as_str().unwrap();
            let is_unreconciled = endpoint["not_reconciled"].as_bool().unwrap();
            (text("endpoint"), text("state"), is_unreconciled)
        })
        .collect();
    // Worst first.
    let expected = [
        ("fails and rejects", "rejecting", true),
        ("fails and is paused", "paused", true),
        ("a list fails", "not reconciled", true),
        ("fails and is quiet", "not reconciled", true),
        ("fails and some failed", "not reconciled", true),
        ("is late", "not reconciled", true),
        ("was killed long ago", "not reconciled", true),
        ("finds all", "fine", false),
        ("is in a long round", "fine", false),
        ("is late a little", "fine", false),
        ("waits for long", "fine", false),
        ("was killed just now", "fine", false),
    ];
    assert_eq!(states, expected);
    // The page of an endpoint shows `not reconciled` even if the overview shows a worse state.
    for endpoint in ["fails%20and%20is%20paused", "a%20list%20fails"] {
        let page = board.page(&format!("endpoint?endpoint={endpoint}")).await;
        let state = "data-state=\"not reconciled\"";
        assert_eq!(page.text().matches(state).count(), 1, "{}", page.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d1_the_failure_of_a_list_shows_no_payload_to_those_who_may_not_see_it() {
    let database = Database::new().await;
    database.run(LISTS).await;
    for access in [Access::read(), Access::operate()] {
        let board = Board::of(&database.pool, access);
        for page in [PAGE.to_owned(), format!("api/{PAGE}")] {
            let answer = board.page(&page).await;
            answer.shows("mine-fails");
            answer.shows("…");
            answer.shows("(#)");
            for hidden in ["Lovelace", "404", "geheim"] {
                answer.hides(hidden);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d1_reconciliation_is_shown_to_those_who_see_the_endpoint_and_all_tenants() {
    let database = Database::new().await;
    database.run(LISTS).await;
    database
        .run(
            "insert into idempotent_webhook.discarded (endpoint, tenant, delivery_id)
             values ('mine', 'red', 'of-mine'), ('mine', 'blue', 'of-blue'), ('mine', '', 'of-nobody'),
                ('theirs', 'red', 'of-theirs')",
        )
        .await;
    let ids = "lookup?ids=of-mine%20of-blue%20of-nobody%20of-theirs";
    let pages = ["overview", PAGE, "endpoint?endpoint=theirs"];
    let all = Access::read().with_payloads();
    let board = Board::of(&database.pool, all.clone().of_endpoints(["mine"]));
    for (page, status) in pages.into_iter().zip([200, 200, 404]) {
        for page in [page.to_owned(), format!("api/{page}")] {
            let answer = board.get(&page).await;
            assert_eq!(answer.status, status, "{page}");
            answer.hides("theirs");
        }
    }
    let found = board.json(ids).await;
    let of_mine = |found: &Value| -> Vec<String> {
        let all = found["discarded"].as_array().unwrap();
        let ids = all.iter().map(|one| one["id"].as_str().unwrap());
        ids.map(str::to_owned).collect()
    };
    assert_eq!(of_mine(&found), ["of-blue", "of-mine", "of-nobody"]);
    assert_eq!(found["unknown"], json!(["of-theirs"]));

    let board = Board::of(&database.pool, all.of_tenants(["red"]));
    for page in pages {
        for page in [page.to_owned(), format!("api/{page}")] {
            let answer = board.get(&page).await;
            assert_eq!(answer.status, 403, "{page}");
            for hidden in ["mine", "theirs", "Lovelace", "econciliation"] {
                answer.hides(hidden);
            }
        }
    }
    let found = board.json(ids).await;
    assert_eq!(of_mine(&found), ["of-mine", "of-theirs"]);
    assert_eq!(found["unknown"], json!(["of-blue", "of-nobody"]));
    // The delivery may have been any of these.
    board
        .page(ids)
        .await
        .shows("Never received, or of another tenant, or rejected, or discarded");
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_a_delivery_says_that_reconciliation_has_received_it() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, state, attempts, next_attempt_at, archived_until, reconciled)
             values ('test', 'listed', 'due', 0, now(), null, true),
                ('test', 'listed-and-done', 'processed', 1, null, now(), true),
                ('test', 'sent', 'due', 0, now(), null, false);
             insert into idempotent_webhook.deliveries (endpoint, delivery_id)
             values ('test', 'listed-and-done')",
        )
        .await;
    let board = Board::operator(&database.pool);
    for (id, is_reconciled) in [("listed", true), ("listed-and-done", true), ("sent", false)] {
        let page = format!("delivery?endpoint=test&id={id}");
        let delivery = board.json(&page).await;
        assert_eq!(delivery["kept"]["is_reconciled"], is_reconciled, "{id}");
        let shown = board.page(&page).await;
        let says_so = shown.text().contains("Received by reconciliation");
        assert_eq!(says_so, is_reconciled, "{id}: {}", shown.text());
    }
}
