//! What a rehearsal reports about the writes of handlers.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use idempotent_webhook::recovery::{
    EffectsChange, Rehearsal, RehearsalComparison, RehearsalReport, RehearsedType, RowsWritten,
};
use idempotent_webhook::{DedupeTx, Delivery, HandlerError, IdempotentWebhook, LateClaim, Recency};
use sqlx::{Executor, PgPool};

use super::rehearsal::{Version, only_type};
use crate::support::{Database, assert_rows, insert_due_of, insert_effect, write_effect};

/// A version whose handler runs this script.
fn writing(pool: &PgPool, script: &'static str) -> Version {
    Version::new(pool).serve(pool, "test", async move |mut tx: DedupeTx| {
        tx.execute(sqlx::raw_sql(script)).await?;
        Ok::<_, HandlerError>(StatusCode::OK)
    })
}

/// The rows of a report by table: inserted, updated and deleted.
fn rows(written: &BTreeMap<String, RowsWritten>) -> Vec<(&str, [u64; 3])> {
    let rows = written.iter();
    rows.map(|(table, of)| (&**table, [of.inserted, of.updated, of.deleted]))
        .collect()
}

/// Asserts what the report says about the writes of a delivery whose handler runs this script.
async fn assert_written(database: &Database, script: &'static str, expected: &[(&str, [u64; 3])]) {
    let new = writing(&database.pool, script);
    let report = new.rehearse(&Rehearsal::new()).await;
    let of_type = only_type(&report);
    assert_eq!(of_type.processed_now, 1, "{script}: {of_type:?}");
    let written = of_type.written().unwrap();
    assert_eq!(rows(&written), expected, "{script}");
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_2_rows_are_counted_by_table() {
    let database = Database::new().await;
    insert_due_of(&database, "test", "/test", 1).await;
    database
        .run(
            "create schema shop;
             create table shop.orders (id int primary key, month int) partition by list (id);
             create table shop.orders_1 partition of shop.orders for values in (1)
                 partition by list (id);
             create table shop.orders_1_1 partition of shop.orders_1 for values in (1);
             create table shop.orders_2 partition of shop.orders for values in (2);
             create table shop.lines (of int references shop.orders on delete cascade);
             insert into shop.orders values (1, 1);
             insert into shop.lines values (1), (1);
             create table seen (of text);
             create table seen_at_last (of text);
             create function see() returns trigger language plpgsql as $$
             begin
                 execute format('insert into %I values (''a'')', tg_argv[0]);
                 return null;
             end $$;
             create trigger seen after insert on effects for each row execute function see('seen');
             create constraint trigger seen_at_last after insert on effects
                 deferrable initially deferred for each row execute function see('seen_at_last')",
        )
        .await;
    let effect = ("public.effects", [1, 0, 0]);
    for (script, expected) in [
        ("select", &[][..]),
        // Written by a trigger, and by a trigger that is deferred to the commit.
        (
            "insert into effects values ('a')",
            &[
                effect,
                ("public.seen", [1, 0, 0]),
                ("public.seen_at_last", [1, 0, 0]),
            ],
        ),
        // Rows in a partition of a partition count for the partitioned table.
        (
            "insert into shop.orders values (2, 1); update shop.orders set month = 2",
            &[("shop.orders", [1, 2, 0])],
        ),
        // Written by a cascade.
        (
            "delete from shop.orders",
            &[("shop.lines", [0, 0, 2]), ("shop.orders", [0, 0, 1])],
        ),
        // Writes that a savepoint has rolled back are counted.
        (
            "savepoint s; insert into seen values ('a'), ('b'); rollback to savepoint s",
            &[("public.seen", [2, 0, 0])],
        ),
        // A temporary table is dropped at the end of the transaction.
        (
            "create temporary table work (of int) on commit drop; insert into work values (1)",
            &[],
        ),
        // This table does not exist before the delivery either, but in production its rows would stay.
        (
            "create table made (of int); insert into made values (1)",
            &[("public.made", [1, 0, 0])],
        ),
        // The handler sets its own search path.
        (
            "set local search_path = shop; insert into lines values (1)",
            &[("shop.lines", [1, 0, 0])],
        ),
        (
            "deallocate all; insert into seen values ('a')",
            &[("public.seen", [1, 0, 0])],
        ),
    ] {
        assert_written(&database, script, expected).await;
    }
    assert_rows!(database, claims: 0, effects: 0);
}

/// Postgres adds the writes of a session to its statistics about once a second, so the count could include an earlier
/// transaction of the session.
#[tokio::test(flavor = "multi_thread")]
async fn deploy_2_what_a_session_wrote_before_is_not_counted() {
    let database = Database::new().await;
    insert_due_of(&database, "test", "/test", 4).await;
    let pool = &database.pool;
    for _ in 0..2 {
        let mut sessions = Vec::new();
        for _ in 0..pool.options().get_max_connections() {
            sessions.push(pool.acquire().await.unwrap());
        }
        for session in &mut sessions {
            let insert = "insert into effects select 'before' from generate_series(1, 100)";
            session.execute(insert).await.unwrap();
        }
    }
    let new = Version::new(pool).serve(pool, "test", write_effect);
    let report = new.rehearse(&Rehearsal::new()).await;
    let written = only_type(&report).written().unwrap();
    assert_eq!(rows(&written), [("public.effects", [4, 0, 0])]);
}

/// The layer's own tables are written by `advance`. With a late claim, the writes after `begin` are counted.
#[tokio::test(flavor = "multi_thread")]
async fn deploy_2_the_tables_of_the_layer_do_not_count_and_a_late_claim_does() {
    let database = Database::new().await;
    insert_due_of(&database, "test", "/test", 2).await;
    let pool = &database.pool;
    let late = |layer: IdempotentWebhook| layer.late_claim().rehearsable();
    let handler = async |claim: LateClaim, delivery: Delivery| {
        if delivery.id().as_str() == "due-1" {
            // The handler does not claim the delivery, so the layer does.
            return Ok(StatusCode::OK);
        }
        let mut tx = claim.begin().await?;
        tx.advance("a subject", 1).await?;
        insert_effect(&mut tx, &delivery).await?;
        Ok::<_, HandlerError>(StatusCode::OK)
    };
    let new = Version::new(pool).serve_with(pool, "test", late, handler);
    let report = new.rehearse(&Rehearsal::new()).await;
    let of_type = only_type(&report);
    for effects in &of_type.effects {
        let expected = match &*effects.delivery_id {
            "due-1" => vec![],
            _ => vec![("public.effects", [1, 0, 0])],
        };
        assert_eq!(rows(effects.written.as_ref().unwrap()), expected);
    }
    assert_eq!(of_type.effects.len(), 2);
    assert_rows!(database, claims: 0, effects: 0);
}

/// The report shows no writes of other sessions. Here another session claims with the function `claim`, or writes
/// outside of the transaction.
#[tokio::test(flavor = "multi_thread")]
async fn deploy_2_what_another_session_writes_is_not_seen() {
    const CLAIM: &str = "select idempotent_webhook.claim('test', '', 'due-1', null)";
    let database = Database::new().await;
    insert_due_of(&database, "test", "/test", 1).await;
    let pool = &database.pool;
    let elsewhere = database.another_pool(1).await;
    let past = elsewhere.clone();
    let new = Version::new(pool).serve(pool, "test", async move |_: DedupeTx| {
        past.execute("insert into effects values ('past')").await?;
        Ok::<_, HandlerError>(StatusCode::OK)
    });
    let report = new.rehearse(&Rehearsal::new()).await;
    assert_eq!(rows(&only_type(&report).written().unwrap()), []);
    assert_rows!(database, claims: 0, effects: 1);

    let late = |layer: IdempotentWebhook| layer.late_claim().rehearsable();
    let handler = async move |claim: LateClaim| {
        let mut tx = elsewhere.begin().await?;
        tx.execute(CLAIM).await?;
        tx.execute("insert into effects values ('elsewhere')")
            .await?;
        tx.commit().await?;
        claim.committed();
        Ok::<_, HandlerError>(StatusCode::OK)
    };
    let new = Version::new(pool).serve_with(pool, "test", late, handler);
    let report = new.rehearse(&Rehearsal::new()).await;
    assert!(report.types.is_empty(), "{report:?}");
    assert!(!report.passed());
    assert_rows!(database, claims: 1, effects: 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_2_what_postgres_does_not_count_is_not_known() {
    let database = Database::new().await;
    insert_due_of(&database, "test", "/test", 1).await;
    let counted = writing(&database.pool, "insert into effects values ('a')");
    let before = counted.rehearse(&Rehearsal::new()).await;
    database
        .run(
            "do $$ begin
                 execute format('alter database %I set track_counts = off', current_database());
             end $$",
        )
        .await;
    let pool = database.another_pool(4).await;
    for script in [
        "insert into effects values ('a')",
        "set local track_counts = on",
    ] {
        let report = writing(&pool, script).rehearse(&Rehearsal::new()).await;
        let of_type = only_type(&report);
        assert_eq!(of_type.processed_now, 1);
        assert_eq!(of_type.effects[0].written, None);
        assert_eq!(of_type.written(), None);
        let printed = report.to_string();
        let line = "  written: not known, since `track_counts` is off";
        assert!(printed.lines().any(|of| of == line), "{printed}");
        for compared in [report.compare(&before), before.compare(&report)] {
            assert_eq!(compared.types[0].change, EffectsChange::NotKnown);
            assert!(!compared.passed());
        }
    }
}

/// Seven event types, each named after how the next version's writes differ for it.
const TYPES: [&str; 7] = ["same", "more", "less", "moves", "changes", "stops", "seen"];

/// Processes two deliveries of each type, and returns the version.
async fn running(pool: &PgPool) -> Version {
    let handler = async |mut tx: DedupeTx, delivery: Delivery| {
        match delivery.event_type() {
            Some("seen") => {
                if tx.advance(delivery.id().as_str(), 1).await? == Recency::Newer {
                    insert_effect(&mut tx, &delivery).await?;
                }
            }
            _ => {
                insert_effect(&mut tx, &delivery).await?;
                insert_effect(&mut tx, &delivery).await?;
            }
        }
        Ok::<_, HandlerError>(StatusCode::OK)
    };
    let running = Version::new(pool).serve(pool, "test", handler);
    for of in TYPES {
        let ids = [format!("{of}-1"), format!("{of}-2")];
        running.receive("test", of, &[&ids[0], &ids[1]]).await;
    }
    running
}

/// The handler of the next version. It differs from the running version in another way for each type.
async fn next(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
    let rows = match delivery.event_type() {
        Some("same") => 2,
        Some("more") => 3,
        // Writes less for only one of the two deliveries.
        Some("less") if delivery.id().as_str() == "less-1" => 2,
        Some("moves") => {
            tx.execute("insert into other_effects values ('a')").await?;
            2
        }
        Some("changes") => {
            let update =
                "update effects set delivery_id = delivery_id where delivery_id = 'same-1'";
            tx.execute(update).await?;
            0
        }
        Some("seen") => {
            // For this type, the handler rightly writes nothing.
            tx.advance(delivery.id().as_str(), 1).await?;
            0
        }
        _ => 0,
    };
    for _ in 0..rows {
        insert_effect(&mut tx, &delivery).await?;
    }
    Ok(StatusCode::OK)
}

fn changes(compared: &RehearsalComparison) -> Vec<(&str, usize, EffectsChange)> {
    let types = compared.types.iter();
    types
        .map(|of| (of.event_type.as_deref().unwrap(), of.deliveries, of.change))
        .collect()
}

/// The job of one version writes the report to a file, and the job of the next version reads it.
fn read_back(report: &RehearsalReport) -> RehearsalReport {
    let json = serde_json::to_string(report).unwrap();
    serde_json::from_str(&json).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_2_two_versions_are_compared_by_type() {
    let database = Database::new().await;
    let pool = &database.pool;
    database.run("create table other_effects (of text)").await;
    let running = running(pool).await;
    let before = read_back(&running.rehearse(&Rehearsal::new()).await);
    // Deliveries that arrive between the two rehearsals are in only one of the reports.
    running.receive("test", "same", &["same-3"]).await;
    running.receive("test", "later", &["later-1"]).await;
    drop(running);
    let next = Version::new(pool).serve(pool, "test", next);
    let now = next.rehearse(&Rehearsal::new()).await;
    assert!(now.passed(), "{now}");
    let printed = now.to_string();
    for line in [
        "  written: public.effects (4 inserted), public.other_effects (2 inserted)",
        "  written: public.effects (4 updated)",
        "  written: nothing",
    ] {
        assert!(printed.lines().any(|of| of == line), "{line}: {printed}");
    }
    let compared = now.compare(&before);
    use EffectsChange::{Elsewhere, Less, More, NotKnown, Nothing, Same};
    assert_eq!(
        changes(&compared),
        [
            ("changes", 2, Elsewhere),
            ("later", 0, NotKnown),
            ("less", 2, Less),
            ("more", 2, More),
            ("moves", 2, Elsewhere),
            ("same", 2, Same),
            ("seen", 2, Same),
            ("stops", 2, Nothing),
        ]
    );
    assert!(!compared.passed());
    let printed = compared.to_string();
    for line in [
        "test less, 2 compared: writes less",
        "  public.effects: 4 inserted before, 2 inserted now",
        "test moves, 2 compared: writes elsewhere",
        "  public.other_effects: nothing before, 2 inserted now",
        "test same, 2 compared: writes as before",
        "test seen, 2 compared: writes nothing, as before",
        "test stops, 2 compared: no longer writes",
        "  public.effects: 4 inserted before, nothing now",
        "not passed:",
        "  test stops: no longer writes",
    ] {
        assert!(printed.lines().any(|of| of == line), "{line}: {printed}");
    }

    let again = next.rehearse(&Rehearsal::new()).await;
    let compared = again.compare(&read_back(&now));
    assert!(compared.passed(), "{compared}");
    assert!(
        compared
            .to_string()
            .ends_with("passed: each type writes as before")
    );
}

/// If one of the versions does not process a delivery, there are no effects to compare. The report of that version
/// shows the failure.
#[tokio::test(flavor = "multi_thread")]
async fn deploy_2_what_fails_with_one_version_is_not_compared() {
    let database = Database::new().await;
    let pool = &database.pool;
    insert_due_of(&database, "test", "/test", 2).await;
    let working = Version::new(pool).serve(pool, "test", write_effect);
    let working = working.rehearse(&Rehearsal::new()).await;
    let failing = async |_: DedupeTx| -> StatusCode { StatusCode::BAD_GATEWAY };
    let failing = Version::new(pool).serve(pool, "test", failing);
    let failing = failing.rehearse(&Rehearsal::new()).await;
    for compared in [working.compare(&failing), failing.compare(&working)] {
        assert!(compared.types.is_empty(), "{compared:?}");
        assert_eq!(compared.to_string(), "passed: there was nothing to compare");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_2_json_has_ids_and_masked_reasons() {
    let database = Database::new().await;
    let pool = &database.pool;
    let old = Version::new(pool).serve(pool, "test", async |_: DedupeTx| StatusCode::OK);
    old.receive("test", "push", &["processed-1", "fails-1"])
        .await;
    let new = Version::new(pool).serve(
        pool,
        "test",
        async |mut tx: DedupeTx, delivery: Delivery| {
            if delivery.id().as_str() == "fails-1" {
                let reason = "no account 4711 of \"Jane Doe\" (jane@example.com)";
                return Err(HandlerError::new(reason));
            }
            insert_effect(&mut tx, &delivery).await?;
            Ok(StatusCode::OK)
        },
    );
    let report = new.rehearse(&Rehearsal::new()).await;
    let json = serde_json::to_string(&report).unwrap();
    for quoted in ["4711", "Jane", "example.com"] {
        assert!(!json.contains(quoted), "{quoted}: {json}");
    }
    for shown in ["processed-1", "fails-1", "no account #", "public.effects"] {
        assert!(json.contains(shown), "{shown}: {json}");
    }
    // The printed report is for the person who runs the rehearsal.
    assert!(report.to_string().contains("4711"));

    let back = read_back(&report);
    assert_eq!(back.passed(), report.passed());
    assert_eq!(back.rehearsed(), report.rehearsed());
    let effects = |report: &RehearsalReport| -> Vec<_> {
        let types = report.types.iter();
        types.map(RehearsedType::written).collect()
    };
    assert_eq!(effects(&back), effects(&report));
    assert_eq!(serde_json::to_string(&back).unwrap(), json);
}
