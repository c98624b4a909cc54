//! A row of `kept_deliveries` can have several lives: its delivery is dead or recorded, and later it is due again. The
//! values that belong to the attempts of one life are reset at its end or at the start of the next life.

use std::fs;
use std::path::Path;

use idempotent_webhook::recovery::{Reprocessed, Retried};

use crate::database::plans::source;
use crate::support::{
    Failing, NONE_TAKEN, TestApp, answer, assert_rows, endpoint, github, keep_accepted, keeping_by,
    recover, write_effect,
};

/// The columns of `kept_deliveries` that belong to the attempts of one life of a row.
const OF_ATTEMPTS: [&str; 5] = [
    "taken_by",
    "unfinished",
    "unreached_at",
    "unreached_status",
    "next_attempt_at",
];

/// The statements that end a life. They leave the number of scheduled attempts (`retries`), which the start of the next
/// life resets.
const ENDS: [&str; 3] = ["erase.sql", "resolve.sql", "0004_claim.sql"];

#[test]
fn each_statement_that_sets_the_state_sets_all_that_is_of_attempts() {
    let mut texts = source::statements();
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    for entry in fs::read_dir(migrations).unwrap() {
        let path = entry.unwrap().path();
        texts.insert(
            path.display().to_string(),
            fs::read_to_string(path).unwrap(),
        );
    }
    let mut found = 0;
    for (name, text) in &texts {
        for columns in assigned(text) {
            if !columns.iter().any(|column| column == "state") {
                continue;
            }
            found += 1;
            let is_end = ENDS.iter().any(|end| name.ends_with(end));
            let counted = Some("retries").filter(|_| !is_end);
            for column in OF_ATTEMPTS.into_iter().chain(counted) {
                let is_set = columns.iter().any(|each| each == column);
                assert!(is_set, "{name} sets the state, but not {column}");
            }
        }
    }
    assert!(found >= 8, "{found}");
}

/// For each `set` in a text, the list of columns that it names.
fn assigned(text: &str) -> Vec<Vec<String>> {
    let code = text.lines().map(|line| line.split("--").next().unwrap());
    let code = code.collect::<Vec<_>>().join(" ");
    let words: Vec<_> = code.split_whitespace().collect();
    let code = words.join(" ");
    code.split(" set ").skip(1).map(columns).collect()
}

/// The columns in a list of assignments: the name before an `=` outside of parentheses, or the names in parentheses
/// before an `=`.
fn columns(assignments: &str) -> Vec<String> {
    let mut columns = Vec::new();
    let mut depth = 0;
    let mut begin = 0;
    for (at, c) in assignments.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => break,
            ')' => depth -= 1,
            ',' if depth == 0 => begin = at + 1,
            '=' if depth == 0 => {
                let left = assignments[begin..at].trim();
                let named = left.trim_matches(['(', ')']).split(',');
                columns.extend(named.map(|name| name.trim().to_owned()));
            }
            _ => {}
        }
    }
    columns
}

/// Inserts a row for `a` whose last attempt has reached no layer.
async fn insert_unreached(app: &TestApp, state: &str) {
    app.database
        .run(&format!(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, next_attempt_at, unreached_at, unreached_status, archived_for)
             values ('test', 'a', '{state}', 1, now() + interval '1 hour', now(), 404, interval '1 day');
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             values ('test', 'a', 1, 'POST', '/', '', '{{}}')"
        ))
        .await;
}

/// Asserts that the row is due, and does not note an attempt that has reached no layer.
async fn assert_due_and_not_unreached(app: &TestApp) {
    app.database.until(NONE_TAKEN).await;
    app.database
        .until(
            "(select state from idempotent_webhook.kept_deliveries where delivery_id = 'a') = 'due'
             and not exists (
                 select from idempotent_webhook.endpoint_problems('{test}') where problem = 'unreached'
             )",
        )
        .await;
}

#[tokio::test]
async fn r13_what_is_erased_or_retried_has_reached_no_layer_only_if_an_attempt_has_since() {
    let app = TestApp::keeping(|keep| keep, Failing::times(10).handler()).await;
    insert_unreached(&app, "due").await;
    assert!(endpoint(&app).erase("a").await.unwrap());
    assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
    assert_due_and_not_unreached(&app).await;

    endpoint(&app).discard("a").await.unwrap();
    insert_unreached(&app, "dead").await;
    assert_eq!(endpoint(&app).retry("a").await.unwrap(), Retried::Due);
    assert_due_and_not_unreached(&app).await;
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test]
async fn r13_what_is_sent_again_or_reprocessed_has_reached_no_layer_only_if_an_attempt_has_since() {
    let app = keeping_by(keep_accepted, write_effect).await;
    endpoint(&app).pause().await.unwrap();
    insert_unreached(&app, "dead").await;
    let sent = app.send(github("a", "{}")).await;
    assert_eq!(sent, answer(200, "accepted", ""));
    assert_due_and_not_unreached(&app).await;

    endpoint(&app).discard("a").await.unwrap();
    endpoint(&app).resume().await.unwrap();
    insert_unreached(&app, "due").await;
    app.database.make_due().await;
    app.database
        .run("insert into idempotent_webhook.deliveries (endpoint, delivery_id) values ('test', 'a')")
        .await;
    // The attempt finds that the delivery was processed.
    let recovery = recover(&app);
    app.database
        .until("(select state from idempotent_webhook.kept_deliveries) = 'processed'")
        .await;
    recovery.stop().await;
    let reprocessed = endpoint(&app).reprocess("a").await.unwrap();
    assert_eq!(reprocessed, Reprocessed::Due);
    assert_due_and_not_unreached(&app).await;
    assert_rows!(app.database, claims: 0, effects: 0);
}
