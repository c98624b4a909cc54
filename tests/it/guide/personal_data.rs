//! What `personal_data.md` says about each column, and the search that it describes.

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request};
use idempotent_webhook::{DedupeTx, HandlerError, Keep};
use sqlx::{AssertSqlSafe, Executor, Row};

use super::{blocks, page};
use crate::support::{Database, TestApp, github, github_delivery};

/// What a column can hold according to the guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Content,
    Name,
    Digest,
    Nothing,
}

/// The kinds by column of the schema, such as `deliveries.delivery_id`.
pub fn columns() -> BTreeMap<String, Holds> {
    let page = page("personal_data.md");
    let (_, table) = page.split_once("## Each column\n").unwrap();
    let mut columns = BTreeMap::new();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let [_, table, names, holds, ..] = &*cells else {
            panic!("{row}");
        };
        let holds = match *holds {
            "content" => Holds::Content,
            "name" => Holds::Name,
            "digest" => Holds::Digest,
            "none" => Holds::Nothing,
            other => panic!("{other}: {row}"),
        };
        for name in names.split(", ") {
            let column = format!("{}.{}", table.trim_matches('`'), name.trim_matches('`'));
            assert_eq!(columns.insert(column, holds), None, "{row}");
        }
    }
    columns
}

/// The page must list each new column, with the parts of a delivery that the column can hold, and with what removes
/// them.
#[tokio::test]
async fn q2_the_guide_says_of_each_column_whether_it_can_hold_content() {
    let database = Database::new().await;
    let there: BTreeSet<_> = database.columns().await.into_iter().collect();
    let listed: BTreeSet<_> = columns().into_keys().collect();
    let unlisted: Vec<_> = there.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&there).collect();
    assert!(unlisted.is_empty(), "not in personal_data.md: {unlisted:?}");
    assert!(gone.is_empty(), "only in personal_data.md: {gone:?}");
}

const CUSTOMER: HeaderName = HeaderName::from_static("x-customer");

/// The reason why the handler should fail. This header is not kept with the request.
const REASON: HeaderName = HeaderName::from_static("x-reason");

/// Fails for the reason in the header.
async fn fail(headers: HeaderMap, _: DedupeTx) -> HandlerError {
    let reason = headers
        .get(REASON)
        .map_or(&b"it broke"[..], |it| it.as_bytes());
    HandlerError::new(String::from_utf8_lossy(reason))
}

fn with_header(id: &str, name: HeaderName, value: &str) -> Request<Body> {
    let mut request = github_delivery().id(id).request();
    let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
    request.headers_mut().insert(name, value);
    request
}

#[tokio::test]
async fn q2_the_search_of_the_guide_finds_a_name_in_each_of_its_spellings() {
    let set = |keep: Keep| keep.headers([CUSTOMER]);
    let app = TestApp::keeping(set, fail).await;
    for (id, body) in [
        ("plain", r#"{"name":"Müller"}"#),
        ("escaped", r#"{"name":"M\u00fcller"}"#),
        ("escaped-upper", r#"{"name":"M\u00FCller"}"#),
        ("other", r#"{"name":"Muller"}"#),
        // The guide says that the search does not find these.
        ("not-found-case", r#"{"name":"MÜLLER"}"#),
        ("not-found-accent", "{\"name\":\"Mu\u{308}ller\"}"),
        ("not-found-entity", r#"{"name":"M&uuml;ller"}"#),
    ] {
        assert_eq!(app.send(github(id, body)).await.outcome, "kept");
    }
    let in_address = github_delivery().id("address").uri("/?name=M%C3%BCller");
    assert_eq!(app.send(in_address.request()).await.outcome, "kept");
    for (id, header, value) in [
        ("header", CUSTOMER, "Müller"),
        ("reason", REASON, "no customer Müller"),
        // The first of these two attempts leaves an earlier reason, because the second has another reason.
        ("reasons", REASON, "no customer Müller"),
        ("reasons", REASON, "no customer"),
    ] {
        let sent = app.send(with_header(id, header, value)).await;
        assert_eq!(sent.outcome, "kept", "{id}");
    }

    let search = blocks(&page("personal_data.md"), "sql")[0].to_owned();
    let found = app.database.pool.fetch_all(AssertSqlSafe(search)).await;
    let found: BTreeSet<String> = found
        .unwrap()
        .iter()
        .map(|row| row.get("delivery_id"))
        .collect();
    let expected = [
        "address",
        "escaped",
        "escaped-upper",
        "header",
        "plain",
        "reason",
        "reasons",
    ];
    assert_eq!(found, expected.map(str::to_owned).into());
}
