//! Guarantee D3: the lists of deliveries.

use super::*;

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
        let (mut ids, pages) = all_ids(&board, page).await;
        assert_eq!(ids.len(), expected, "{page}");
        assert_eq!(pages, expected.div_ceil(50).max(1), "{page}");
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), expected, "{page}: twice");
    }
}

/// The delivery links on a page.
fn linked(page: &Answer) -> Vec<String> {
    let links = page.text().split("href=\"delivery?").skip(1);
    links
        .map(|link| link.split('"').next().unwrap().to_owned())
        .collect()
}

/// The link to the next page, if there is one.
fn next_page(page: &Answer) -> Option<String> {
    let (head, _) = page.text().split_once("\" rel=\"next\"")?;
    let (_, link) = head.rsplit_once("href=\"").unwrap();
    Some(link.replace("&amp;", "&"))
}

/// The ids on all pages of a list, and the number of pages.
async fn all_ids(board: &Board, page: &str) -> (Vec<String>, usize) {
    let (mut next, mut ids, mut pages) = (page.to_owned(), Vec::new(), 0);
    loop {
        let answer = board.page(&next).await;
        ids.extend(linked(&answer));
        pages += 1;
        assert!(pages < 100, "{page}");
        match next_page(&answer) {
            Some(link) => next = link,
            None => return (ids, pages),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_what_was_processed_is_listed_newest_first() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.deliveries
                (endpoint, tenant, delivery_id, event_type, received_at)
             select 'e' || number % 3, case number % 4 when 0 then 'acme' else '' end,
                'id-' || number, 'type-' || number % 5,
                date_trunc('hour', now()) - (number / 40) * interval '1 hour'
             from generate_series(1, 240) as number;
             insert into idempotent_webhook.redelivery_windows
             select 'e' || number, interval '1 day' from generate_series(0, 2) as number;
             insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, tenant_name, state, attempts, processed_at, archived_until)
             values ('e1', 'id-1', 'umbrella', 'processed', 3, now(), now() + interval '1 day')",
        )
        .await;
    let board = Board::operator(&database.pool);
    let hour = |ago: f64| async move {
        sqlx::query_scalar::<_, String>(
            "select to_char(date_trunc('hour', now() at time zone 'UTC')
                - $1::float8 * interval '1 hour', 'YYYY-MM-DD\"T\"HH24:MI')",
        )
        .bind(ago)
    };
    let (from, until) = (hour(2.0).await, hour(1.0).await);
    let from = from.fetch_one(&database.pool).await.unwrap();
    let until = until.fetch_one(&database.pool).await.unwrap();
    for (filter, expected) in [
        (String::new(), 240),
        ("&endpoint=e1".into(), 80),
        ("&event_type=type-3".into(), 48),
        ("&event_type=type-3&endpoint=e0".into(), 16),
        ("&event_type=unknown".into(), 0),
        ("&tenant=acme".into(), 60),
        ("&tenant=acme&event_type=type-0".into(), 12),
        (format!("&from={from}&until={until}"), 40),
        (format!("&until={until}"), 161),
        ("&endpoint=unknown".into(), 0),
    ] {
        let page = format!("deliveries?state=processed{filter}");
        let (mut ids, pages) = all_ids(&board, &page).await;
        assert_eq!(ids.len(), expected, "{page}");
        assert_eq!(pages, expected.div_ceil(50).max(1), "{page}");
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), expected, "{page}: twice");
    }
    let page = board
        .page("deliveries?state=processed&endpoint=e1&until=2999-01-01")
        .await;
    let newest = linked(&page);
    assert!(newest[0].contains("id=id-"), "{newest:?}");
    let archived = board
        .page(&format!("deliveries?state=processed&from={until}"))
        .await;
    archived.shows("umbrella");
    archived.shows(">kept</td>");
    archived.shows("not kept");
    assert_eq!(board.get("deliveries?from=tomorrow").await.status, 400);
}

/// If no index supports the filters, a page searches in several rounds, for a limited time.
#[tokio::test(flavor = "multi_thread")]
async fn d4_a_search_finds_each_delivery_once() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, delivery_id, event_type, tenant_name, state, attempts, first_failed_at,
                 last_failed_at, reason, reason_group)
             select 'test', 'id-' || number, case
                    when number % 8000 < 3 then 'rare'
                    when number % 60 = 7 and number < 24000 then 'common'
                end,
                case when number % 8000 = 1 then 'acme' end, 'dead', 1, now(),
                now() - number * interval '1 second', reason, idempotent_webhook.reason_group(reason)
             from generate_series(0, 24999) as number
             cross join lateral (values (
                case when number % 8000 = 2 then 'it melted' else 'it broke' end
             )) as reasons (reason);
             insert into idempotent_webhook.deliveries (endpoint, delivery_id, event_type, received_at)
             select endpoint, delivery_id, event_type, last_failed_at
             from idempotent_webhook.kept_deliveries",
        )
        .await;
    let group = group_of(&database, "it broke").await;
    let board = Board::operator(&database.pool);
    for (page, expected) in [
        (
            format!("deliveries?state=dead&reason={group}&event_type=rare"),
            8,
        ),
        ("deliveries?state=dead&tenant=acme".into(), 4),
        (
            "deliveries?state=failing&tenant=acme&endpoint=test".into(),
            4,
        ),
        ("deliveries?state=processed&event_type=rare".into(), 12),
        (
            "deliveries?state=processed&event_type=unknown&endpoint=test".into(),
            0,
        ),
        ("deliveries?state=processed&event_type=common".into(), 400),
    ] {
        let (mut ids, _) = all_ids(&board, &page).await;
        let all = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!((ids.len(), all), (expected, expected), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_failures_are_listed_by_time_and_tenant() {
    let database = Database::new().await;
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                (endpoint, tenant, delivery_id, tenant_name, state, attempts, first_failed_at,
                 last_failed_at)
             values
                ('test', '', 'early', 'acme', 'dead', 1, now(), '2026-01-01 10:00Z'),
                ('test', 'acme', 'late', null, 'dead', 1, now(), '2026-01-01 12:00Z'),
                ('test', '', 'other', 'umbrella', 'dead', 1, now(), '2026-01-01 11:00Z')",
        )
        .await;
    let board = Board::operator(&database.pool);
    for (filter, expected) in [
        ("tenant=acme", vec!["late", "early"]),
        ("from=2026-01-01T11:00", vec!["late", "other"]),
        ("until=2026-01-01T11:00", vec!["early"]),
        ("tenant=acme&until=2026-01-01T11:30", vec!["early"]),
        (
            "from=2026-01-01T10:30&until=2026-01-01T11:30",
            vec!["other"],
        ),
    ] {
        let list = board.json(&format!("deliveries?state=dead&{filter}")).await;
        let ids: Vec<&str> = list["deliveries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|delivery| delivery["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, expected, "{filter}");
        // An action on the whole selection applies to the same deliveries.
        let before = unix_now(&database).await;
        let confirm = format!("confirm?action=discard&state=dead&endpoint=test&{filter}");
        let confirm = board.page(&format!("{confirm}&before={before}")).await;
        let noun = if expected.len() == 1 {
            "delivery"
        } else {
            "deliveries"
        };
        confirm.shows(&format!("Discard {} {noun}?", expected.len()));
    }
}
