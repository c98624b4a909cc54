//! Growth: the number of rows that a statement reads depends neither on how full the tables are now, nor on how full
//! they were when Postgres made the plan that it keeps.
//!
//! Each statement of the crate is run on empty tables until Postgres keeps a plan for it. Then the tables are filled,
//! and the same connection runs the statement again with that plan.

pub mod source;
mod statements;

use std::collections::BTreeMap;

use idempotent_webhook::migrate;
use serde_json::Value;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, PgConnection, PgPool, Row};
use throwaway_postgres::{Durability, ThrowawayPostgres};

use self::statements::{In, NAMED, NOT_RUN, STATEMENTS};

/// One row of each kind for the listed statements.
const SOME: &str = "
    insert into idempotent_webhook.processes values (1, 1);
    insert into idempotent_webhook.kept_deliveries (
        endpoint, delivery_id, state, attempts, retries, takes, taken_by, next_attempt_at, first_failed_at, last_failed_at,
        died_at, untold_at, archived_for, processed_at, archived_until, status, reason, reason_group
    )
    values
        ('test', 'due', 'due', 1, 1, 5, null, now() - interval '1 day', now(), now(), null, null, null, null, null, 500, 'a', null),
        ('test', 'taken', 'due', 1, 1, 5, 1, now() - interval '1 day', now(), now(), null, null, null, null, null, 500, 'a', null),
        ('test', 'dead', 'dead', 1, 1, 5, null, null, now(), now(), now(), now(), null, null, null, 500, 'a', null),
        ('test', 'archived', 'processed', 1, 1, 5, null, null, null, null, null, null, '1 day', now(), now(), null, null, null);
    insert into idempotent_webhook.kept_deliveries (endpoint, delivery_id, state, attempts, next_attempt_at, last_failed_at)
    select 'test', 'due-' || n, 'due', 1, now() - interval '1 day', now() from generate_series(1, 10) as n;
    insert into idempotent_webhook.kept_requests (endpoint, delivery_id, format, method, uri, headers, body)
    select endpoint, delivery_id, 1, 'POST', '/', '', '{}' from idempotent_webhook.kept_deliveries
    on conflict do nothing;
    insert into idempotent_webhook.deliveries (endpoint, delivery_id, digest)
    values ('test', 'archived', '\\x01'), ('test', 'claimed', '\\x02');
    insert into idempotent_webhook.bodies (endpoint, digest, delivery_id) values ('test', '\\x01', 'archived');
    insert into idempotent_webhook.subjects (endpoint, subject, version) values ('test', 'due', 7);
    insert into idempotent_webhook.discarded (endpoint, delivery_id) values ('test', 'due');
    insert into idempotent_webhook.sent_again (endpoint, delivery_id) values ('test', 'due');
    insert into idempotent_webhook.redelivery_requests values ('test', '', 'new')
";

/// Deliveries that were kept in an outage, and deliveries that were processed before it. Half of them belong to the
/// endpoint of the statements, and the others to another endpoint.
const MANY: &str = "
    insert into idempotent_webhook.kept_deliveries (
        endpoint, delivery_id, state, attempts, next_attempt_at, first_failed_at, last_failed_at, died_at, archived_for,
        processed_at, archived_until, status, reason
    )
    select
        endpoint, 'kept-' || n, state, 1,
        case state when 'due' then now() - interval '1 hour' + n * interval '1 second' end,
        case when state <> 'processed' then now() end, case when state <> 'processed' then now() end,
        case state when 'dead' then now() end, case state when 'processed' then interval '1 day' end,
        case state when 'processed' then now() end, case state when 'processed' then now() + interval '1 day' end,
        500, 'failed'
    from unnest(array['test', 'other']) as endpoint
    cross join generate_series(1, 100000) as n
    cross join lateral (select (array['due', 'due', 'dead', 'recorded', 'processed'])[1 + n % 5]) as kind (state);
    insert into idempotent_webhook.kept_requests (endpoint, delivery_id, format, method, uri, headers, body)
    select endpoint, delivery_id, 1, 'POST', '/', '', '{}'
    from idempotent_webhook.kept_deliveries
    where delivery_id like 'kept-%' and state <> 'recorded'
    on conflict do nothing;
    insert into idempotent_webhook.deliveries (endpoint, delivery_id)
    select endpoint, 'processed-' || n from unnest(array['test', 'other']) as endpoint cross join generate_series(1, 500000) as n;
    insert into idempotent_webhook.bodies (endpoint, digest, delivery_id)
    select endpoint, decode(lpad(to_hex(n), 8, '0'), 'hex'), 'processed-' || n
    from unnest(array['test', 'other']) as endpoint cross join generate_series(1, 50000) as n;
    insert into idempotent_webhook.subjects (endpoint, subject, version)
    select endpoint, 'subject-' || n, 1 from unnest(array['test', 'other']) as endpoint cross join generate_series(1, 50000) as n;
    insert into idempotent_webhook.discarded (endpoint, delivery_id)
    select endpoint, 'discarded-' || n from unnest(array['test', 'other']) as endpoint cross join generate_series(1, 50000) as n;
    insert into idempotent_webhook.sent_again (endpoint, delivery_id)
    select endpoint, 'again-' || n from unnest(array['test', 'other']) as endpoint cross join generate_series(1, 50000) as n
";

/// A few rows of each table.
const FEW: &str = "
    insert into idempotent_webhook.kept_deliveries
        (endpoint, delivery_id, state, attempts, next_attempt_at, last_failed_at)
    select endpoint, 'few-' || n, 'due', 1, now() + interval '1 day', now()
    from unnest(array['test', 'other']) as endpoint cross join generate_series(1, 5) as n;
    insert into idempotent_webhook.kept_requests (endpoint, delivery_id, format, method, uri, headers, body)
    select endpoint, delivery_id, 1, 'POST', '/', '', '{}' from idempotent_webhook.kept_deliveries;
    insert into idempotent_webhook.deliveries (endpoint, delivery_id)
    select endpoint, 'few-' || n from unnest(array['test', 'other']) as endpoint cross join generate_series(1, 5) as n;
    insert into idempotent_webhook.bodies (endpoint, digest, delivery_id)
    select endpoint, sha256(delivery_id::bytea), delivery_id from idempotent_webhook.deliveries;
    insert into idempotent_webhook.subjects (endpoint, subject, version)
    select endpoint, delivery_id, 1 from idempotent_webhook.deliveries;
    insert into idempotent_webhook.discarded (endpoint, delivery_id)
    select endpoint, delivery_id from idempotent_webhook.deliveries;
    insert into idempotent_webhook.sent_again (endpoint, delivery_id)
    select endpoint, delivery_id from idempotent_webhook.deliveries;
    analyze
";

/// Autovacuum would make each connection plan its statements again.
const WITHOUT_AUTOVACUUM: &str = "
    do $$
    declare
        one text;
    begin
        for one in select format('%I.%I', schemaname, tablename) from pg_tables where schemaname = 'idempotent_webhook' loop
            execute format('alter table %s set (autovacuum_enabled = false)', one);
        end loop;
    end $$
";

/// From its sixth execution, Postgres keeps a plan that is independent of the values.
const UNTIL_A_PLAN_IS_KEPT: usize = 6;

#[test]
fn growth_1_each_statement_is_tried_or_named() {
    let texts = source::statements();
    let named = |name: &str| {
        let is_tried = STATEMENTS
            .iter()
            .any(|(tried, ..)| tried.split(' ').next() == Some(name));
        let is_left_out = NOT_RUN.iter().any(|(prefix, _)| name.starts_with(prefix));
        is_tried || is_left_out
    };
    let new: Vec<_> = texts.keys().filter(|name| !named(name)).collect();
    assert!(new.is_empty(), "add these to `STATEMENTS`: {new:#?}");
    for (name, ..) in STATEMENTS {
        text(&texts, name);
    }
    // The dashboard's statements are in `NOT_RUN`. They need no test, because this setting makes Postgres plan each of
    // them for its values.
    let dashboard = include_str!("../../../../src/dashboard/database.rs");
    assert!(dashboard.contains("'plan_cache_mode', 'force_custom_plan'"));
}

#[tokio::test]
async fn growth_1_by_plans_of_empty_tables_that_were_vacuumed() {
    reads_no_more("vacuum").await;
}

#[tokio::test]
async fn growth_1_by_plans_of_tables_that_were_never_analyzed() {
    reads_no_more("").await;
}

#[tokio::test]
async fn growth_1_by_plans_of_tables_that_were_analyzed_when_they_were_small() {
    reads_no_more(FEW).await;
}

/// The text of a statement. For a template, its name is followed by the kind of rows.
fn text(texts: &BTreeMap<String, String>, name: &str) -> String {
    let (name, kind) = name.split_once(' ').unwrap_or((name, ""));
    let text = texts
        .get(name)
        .unwrap_or_else(|| panic!("there is no statement {name}"));
    let (table, time, which, key) = match kind {
        "" => return text.clone(),
        "archived" => (
            "kept_deliveries",
            "archived_until",
            "state = 'processed'",
            ["endpoint", "tenant", "delivery_id"],
        ),
        "dead" | "kept_deliveries" => (
            "kept_deliveries",
            "last_failed_at",
            "state = 'dead'",
            ["endpoint", "tenant", "delivery_id"],
        ),
        "recorded" => (
            "kept_deliveries",
            "last_failed_at",
            "state = 'recorded'",
            ["endpoint", "tenant", "delivery_id"],
        ),
        "erased" => (
            "kept_deliveries",
            "last_received_at",
            "state = 'recorded' and last_failed_at is null",
            ["endpoint", "tenant", "delivery_id"],
        ),
        "discarded" => (
            "discarded",
            "discarded_at",
            "true",
            ["delivery_id", "endpoint", "tenant"],
        ),
        "deliveries" => (
            "deliveries",
            "received_at",
            "true",
            ["delivery_id", "endpoint", "tenant"],
        ),
        "subjects" => (
            "subjects",
            "advanced_at",
            "true",
            ["endpoint", "tenant", "subject"],
        ),
        kind => panic!("{kind}"),
    };
    let [a, b, c] = key;
    let id = if kind == "subjects" {
        "subject"
    } else {
        "delivery_id"
    };
    text.replace("{table}", table)
        .replace("{time}", time)
        .replace("{which}", which)
        .replace("{id}", id)
        .replace(
            "{is_key}",
            &format!("old.{a} = any (array[key.{a}]) and old.{b} = key.{b} and old.{c} = key.{c}"),
        )
        .replace("{lock}", "")
        .replace("{bytes}", "0")
}

async fn reads_no_more(made: &str) {
    // This test needs a server of its own. If other tests create databases on a server, Postgres makes each connection
    // plan its statements again.
    let server = ThrowawayPostgres::start(Durability::Lossy).await.unwrap();
    let pool = PgPool::connect_lazy_with(server.options("postgres"));
    migrate(&pool).await.unwrap();
    pool.close().await;
    let mut connection = server.options("postgres").connect().await.unwrap();
    connection.execute(WITHOUT_AUTOVACUUM).await.unwrap();
    run(&mut connection, made).await;
    let texts = source::statements();
    let mut refused = Vec::new();
    for (place, (name, kind, values)) in STATEMENTS.iter().enumerate() {
        let text = text(&texts, name);
        let again = format!("{}; {}; rollback", begin(*kind), execute(place, values));
        let all = [prepare(place, values, &text)]
            .into_iter()
            .chain(std::iter::repeat_n(again, UNTIL_A_PLAN_IS_KEPT));
        for sql in all {
            if let Err(error) = connection.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await {
                refused.push(format!("{name}: {error}"));
                connection.execute("rollback").await.unwrap();
                break;
            }
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
    run(&mut connection, SOME).await;
    let before = buffers(&mut connection).await;
    run(&mut connection, MANY).await;
    let after = buffers(&mut connection).await;
    let mut more = Vec::new();
    for (place, (before, after)) in before.iter().zip(&after).enumerate() {
        let name = STATEMENTS[place].0;
        println!("{before:6} {after:6}  {name}");
        if *after > 2 * before + 8 {
            more.push(format!(
                "{name}: {before}, then {after}\n{}",
                plan(&mut connection, place).await
            ));
        }
    }
    assert!(more.is_empty(), "these read more:\n{}", more.join("\n"));
}

async fn run(connection: &mut PgConnection, sql: &str) {
    for sql in sql.split(";\n").filter(|sql| !sql.trim().is_empty()) {
        let done = connection
            .execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned())))
            .await;
        done.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

fn begin(kind: In) -> String {
    match kind {
        In::Own => source::begin_own(),
        In::Operation => format!(
            "{}; set local plan_cache_mode = force_generic_plan",
            source::begin_own()
        ),
        In::Claim => source::begin_claim(),
        In::Handler => "begin".to_owned(),
    }
}

/// Declares the type of a value if the value names it, as sqlx does. Postgres infers the other types.
fn prepare(place: usize, values: &str, text: &str) -> String {
    let values = named(values);
    let mut depth = 0;
    let mut in_text = false;
    let each = values.split(|c: char| {
        match c {
            '\'' => in_text = !in_text,
            '[' if !in_text => depth += 1,
            ']' if !in_text => depth -= 1,
            _ => {}
        }
        c == ',' && !in_text && depth == 0
    });
    let types: Vec<_> = each
        .map(|value| value.rsplit_once("::").map_or("unknown", |(_, name)| name))
        .collect();
    match values.is_empty() {
        true => format!("prepare s{place} as {text}"),
        false => format!("prepare s{place} ({}) as {text}", types.join(", ")),
    }
}

fn execute(place: usize, values: &str) -> String {
    match values.is_empty() {
        true => format!("execute s{place}"),
        false => format!("execute s{place} ({})", named(values)),
    }
}

/// Replaces each name with the values that it abbreviates.
fn named(values: &str) -> String {
    NAMED
        .iter()
        .fold(values.to_owned(), |values, (name, stands_for)| {
            values.replace(name, stands_for)
        })
}

/// How many blocks each statement reads.
async fn buffers(connection: &mut PgConnection) -> Vec<i64> {
    let mut all = Vec::new();
    for (place, (name, kind, values)) in STATEMENTS.iter().enumerate() {
        let begin = begin(*kind);
        connection
            .execute(sqlx::raw_sql(AssertSqlSafe(begin)))
            .await
            .unwrap();
        let explain = format!(
            "savepoint before; explain (analyze, buffers, timing off, format json) {}",
            execute(place, values)
        );
        let mut fewest = i64::MAX;
        // The first time, Postgres may also read its own catalogs.
        for _ in 0..2 {
            let explain = AssertSqlSafe(explain.clone());
            let explained = connection.fetch_one(sqlx::raw_sql(explain)).await;
            let explained = explained.unwrap_or_else(|error| panic!("{name}: {error}"));
            let plan: Value =
                serde_json::from_str(explained.try_get_unchecked(0).unwrap()).unwrap();
            let of = |kind: &str| plan[0]["Plan"][kind].as_i64().unwrap();
            fewest = fewest.min(of("Shared Hit Blocks") + of("Shared Read Blocks"));
            connection
                .execute("rollback to savepoint before")
                .await
                .unwrap();
        }
        all.push(fewest);
        connection.execute("rollback").await.unwrap();
    }
    all
}

/// The plan that Postgres keeps for a statement, shown if the test fails.
async fn plan(connection: &mut PgConnection, place: usize) -> String {
    let (_, kind, values) = STATEMENTS[place];
    let begin = AssertSqlSafe(begin(kind));
    connection.execute(sqlx::raw_sql(begin)).await.unwrap();
    let explain = AssertSqlSafe(format!("explain {}", execute(place, values)));
    let lines = connection.fetch_all(sqlx::raw_sql(explain)).await.unwrap();
    connection.execute("rollback").await.unwrap();
    let lines = lines.iter().map(|row| row.get::<String, _>(0));
    lines.collect::<Vec<_>>().join("\n")
}
