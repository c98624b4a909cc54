//! Rehearsals: a job runs kept deliveries through a new version of the application, and rolls every delivery back.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::routing::post;
use futures_util::future::join;
use idempotent_webhook::recovery::{
    Filter, KeptState, Rehearsal, RehearsalReport, RehearsedDelivery, RehearsedType,
};
use idempotent_webhook::{
    DedupeTx, Delivery, Events, HandlerError, IdempotentWebhook, Keep, LateClaim, Recency,
    Recovery, Source, presets,
};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use crate::support::{
    Database, NO_ADVISORY_LOCK, ONE_WAITS_FOR_A_LOCK, answer, assert_rows, gate, gated,
    github_delivery, insert_due_of, insert_effect, secret, send, soon, spawn_send, write_effect,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// One version of an application: its router, and the handle of its layers.
pub(super) struct Version {
    recovery: Recovery,
    router: Router,
}

impl Version {
    pub(super) fn new(pool: &PgPool) -> Self {
        Self {
            recovery: Recovery::new(pool.clone()),
            router: Router::new(),
        }
    }

    /// Adds an endpoint at a path of the same name. It archives all deliveries and may be rehearsed.
    pub(super) fn serve<H, T>(self, pool: &PgPool, endpoint: &'static str, handler: H) -> Self
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        self.serve_with(pool, endpoint, |layer| layer.rehearsable(), handler)
    }

    pub(super) fn serve_with<H, T>(
        mut self,
        pool: &PgPool,
        endpoint: &'static str,
        set: impl FnOnce(IdempotentWebhook) -> IdempotentWebhook,
        handler: H,
    ) -> Self
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        let layer = IdempotentWebhook::new(pool.clone(), endpoint, presets::github(secret()))
            // This limit is far longer than a query takes, even on a busy machine.
            .database_timeout(Duration::from_secs(20))
            .keep(Keep::all(&self.recovery).processed_for(DAY));
        let route = post(handler).layer(set(layer));
        self.router = self.router.route(&format!("/{endpoint}"), route);
        self
    }

    pub(super) async fn rehearse(&self, rehearsal: &Rehearsal) -> RehearsalReport {
        let report = self.recovery.rehearse(&self.router, rehearsal).await;
        report.unwrap()
    }

    /// Sends deliveries, which are processed or fail.
    pub(super) async fn receive(&self, endpoint: &str, event_type: &str, ids: &[&str]) {
        for id in ids {
            let sent = github_delivery()
                .uri(&format!("/{endpoint}"))
                .id(*id)
                .event_type(event_type);
            send(&self.router, sent.request()).await;
        }
    }
}

/// The counts for a type, in this order: processed again, processed now, failing now, failing again, and not run.
fn counts(of: &RehearsedType) -> [usize; 5] {
    [
        of.processed_again,
        of.processed_now,
        of.fails_now.len(),
        of.fails_again.len(),
        of.not_run.len(),
    ]
}

/// The only rehearsed type.
pub(super) fn only_type(report: &RehearsalReport) -> &RehearsedType {
    assert!(report.refused.is_empty(), "{report:?}");
    assert_eq!(report.types.len(), 1, "{report:?}");
    &report.types[0]
}

fn reasons(listed: &[RehearsedDelivery]) -> Vec<(&str, &str)> {
    let mut reasons: Vec<_> = listed
        .iter()
        .map(|one| (&*one.delivery_id, &*one.reason))
        .collect();
    reasons.sort_unstable();
    reasons
}

/// Writes an effect, and advances the version of its subject.
async fn busy(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
    insert_effect(&mut tx, &delivery).await?;
    tx.advance("a subject", 1).await?;
    Ok(StatusCode::OK)
}

#[tokio::test(flavor = "multi_thread")]
async fn z1_a_rehearsal_of_a_thousand_deliveries_of_five_endpoints_changes_no_row() {
    const ENDPOINTS: [&str; 5] = ["a", "b", "c", "d", "e"];
    let database = Database::new().await;
    let pool = &database.pool;
    for endpoint in ENDPOINTS {
        insert_due_of(&database, endpoint, &format!("/{endpoint}"), 200).await;
    }
    // Half of the deliveries are processed, and some of the others are dead.
    database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, delivery_id)
             select endpoint, delivery_id from idempotent_webhook.kept_deliveries
             where right(delivery_id, 1) in ('0', '2', '4', '6', '8');
             update idempotent_webhook.kept_deliveries as kept
             set state = 'processed', processed_at = now(), archived_for = interval '1 day',
                 archived_until = now() + interval '1 day', next_attempt_at = null
             from idempotent_webhook.deliveries as known
             where known.endpoint = kept.endpoint and known.delivery_id = kept.delivery_id;
             update idempotent_webhook.kept_deliveries
             set state = 'dead', next_attempt_at = null, status = 500, reason = 'it failed'
             where state = 'due' and right(delivery_id, 1) in ('3', '5')",
        )
        .await;
    let mut new = Version::new(pool);
    let mut layers = Vec::new();
    for endpoint in ENDPOINTS {
        let keep_layer = |layer: IdempotentWebhook| {
            let layer = layer.rehearsable();
            layers.push(layer.clone());
            layer
        };
        new = new.serve_with(pool, endpoint, keep_layer, busy);
    }

    let before = database.snapshot().await;
    let report = new.rehearse(&Rehearsal::new()).await;
    for layer in layers {
        // If the rehearsal had counted anything, this would write the counts.
        layer.drained().await;
    }
    assert_eq!(database.snapshot().await, before);
    database.until(NO_ADVISORY_LOCK).await;
    assert_eq!(report.rehearsed(), 1000);
    assert!(!report.has_broken());
    let endpoints: Vec<_> = report.types.iter().map(|of| &*of.endpoint).collect();
    assert_eq!(endpoints, ENDPOINTS);
    for of_type in &report.types {
        assert_eq!(counts(of_type), [100, 100, 0, 0, 0]);
        assert!(of_type.suspicious.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn z1_what_a_new_version_breaks_and_mends_is_found_by_type() {
    let database = Database::new().await;
    let pool = &database.pool;
    let old = Version::new(pool).serve(pool, "test", async |tx: DedupeTx, delivery: Delivery| {
        match delivery.event_type() {
            Some("release") => Err(StatusCode::BAD_GATEWAY),
            _ => write_effect(tx, delivery).await,
        }
    });
    old.receive("test", "push", &["p1", "p2", "p3"]).await;
    old.receive("test", "release", &["r1", "r2"]).await;
    old.receive("test", "star", &["s1"]).await;
    drop(old);
    assert_rows!(database, claims: 4, effects: 4);

    let new = Version::new(pool).serve(
        pool,
        "test",
        async |mut tx: DedupeTx, delivery: Delivery| match delivery.id().as_str() {
            "p1" => panic!("in the handler"),
            "p2" => Ok(StatusCode::OK),
            "p3" => {
                sqlx::query("insert into nothing values (1)")
                    .execute(&mut *tx)
                    .await?;
                Ok(StatusCode::OK)
            }
            "r1" => Err(HandlerError::new("as before")),
            _ => Ok(StatusCode::OK),
        },
    );
    let before = database.snapshot().await;
    let report = new.rehearse(&Rehearsal::new()).await;
    assert_eq!(database.snapshot().await, before);
    assert!(report.has_broken());
    let found: Vec<_> = report
        .types
        .iter()
        .map(|of| (of.event_type.as_deref().unwrap(), counts(of)))
        .collect();
    assert_eq!(
        found,
        [
            ("push", [1, 0, 2, 0, 0]),
            ("release", [0, 1, 0, 1, 0]),
            ("star", [1, 0, 0, 0, 0]),
        ]
    );
    let pushes = reasons(&report.types[0].fails_now);
    assert_eq!(pushes[0], ("p1", "the handler panicked: in the handler"));
    assert_eq!(pushes[1].0, "p3");
    assert!(
        pushes[1].1.contains("\"nothing\" does not exist"),
        "{pushes:?}"
    );
    let releases = reasons(&report.types[1].fails_again);
    assert_eq!(releases, [("r1", "as before")]);
}

/// The handlers of this test answer 2xx, although Postgres would refuse the commit. If the rehearsal believed the 2xx,
/// the deliveries would be lost after the deploy.
#[tokio::test(flavor = "multi_thread")]
async fn z1_what_the_commit_would_refuse_fails() {
    let database = Database::new().await;
    let pool = &database.pool;
    database
        .run("create table parts (of int unique deferrable initially deferred)")
        .await;
    insert_due_of(&database, "test", "/test", 1).await;
    for (name, statement, expected) in [
        (
            "deferred",
            "insert into parts values (1), (1)",
            "duplicate key value violates unique constraint",
        ),
        (
            "swallowed",
            "insert into nothing values (1)",
            "although a statement had failed in its transaction",
        ),
    ] {
        let new = Version::new(pool).serve(pool, "test", async move |mut tx: DedupeTx| {
            let _ = sqlx::query(statement).execute(&mut *tx).await;
            StatusCode::OK
        });
        let before = database.snapshot().await;
        let report = new.rehearse(&Rehearsal::new()).await;
        assert_eq!(database.snapshot().await, before, "{name}");
        let of_type = only_type(&report);
        assert_eq!(counts(of_type), [0, 0, 0, 1, 0], "{name}");
        let reason = &of_type.fails_again[0].reason;
        assert!(reason.contains(expected), "{name}: {reason}");
    }
}

/// Runs the statements in this order, even if some of them fail.
async fn run_all(tx: &mut DedupeTx, statements: &[&'static str]) {
    for statement in statements {
        let _ = sqlx::raw_sql(*statement).execute(&mut **tx).await;
    }
}

const WRITE: &str = "insert into effects values ('a rehearsal')";

const SCRIPT: &str = "begin; insert into effects values ('a script'); commit";

/// The handler tries to end its transaction in every possible way, and hides or returns the result.
#[tokio::test(flavor = "multi_thread")]
async fn z1_a_rehearsal_cannot_commit() {
    let database = Database::new().await;
    let pool = &database.pool;
    insert_due_of(&database, "test", "/test", 3).await;
    let before = database.snapshot().await;
    for statements in [
        &[WRITE, "commit"][..],
        &[WRITE, "end"],
        &[WRITE, "commit and chain"],
        &["insert into effects values ('a script'); commit"],
        &[WRITE, SCRIPT],
        &[WRITE, "commit", WRITE, SCRIPT, WRITE],
        &["rollback", WRITE, SCRIPT],
        &["rollback; begin; insert into effects values ('a script'); commit"],
        &["savepoint a", WRITE, "release savepoint a", "commit", WRITE],
        &["prepare transaction 'a'", WRITE],
        &["begin; commit; insert into effects values ('after it')"],
    ] {
        for answered in [StatusCode::OK, StatusCode::BAD_GATEWAY] {
            let new = Version::new(pool).serve(pool, "test", async move |mut tx: DedupeTx| {
                run_all(&mut tx, statements).await;
                answered
            });
            let report = new.rehearse(&Rehearsal::new().concurrency(1)).await;
            assert_eq!(database.snapshot().await, before, "{statements:?}");
            assert!(!report.passed(), "{statements:?}");
            let [refused] = &report.refused[..] else {
                panic!("{statements:?}: {report}");
            };
            assert!(
                refused.reason.contains("has ended the transaction"),
                "{report}"
            );
        }
    }
    // The statements run in a task that outlives its handler.
    let (mut gate, way) = gate();
    let way = Arc::new(way);
    let new = Version::new(pool).serve(pool, "test", async move |mut tx: DedupeTx| {
        let way = way.clone();
        tokio::spawn(async move {
            way.pass().await;
            run_all(&mut tx, &[WRITE, "commit", WRITE, SCRIPT]).await;
            drop(tx);
            way.pass().await;
        });
    });
    let rehearsal = Rehearsal::new().limit(1).concurrency(1);
    let report = soon(new.rehearse(&rehearsal)).await;
    // The rehearsal has tried the delivery twice. The second try waited for the lock that the task of the first try
    // holds.
    assert_eq!(counts(only_type(&report)), [0, 0, 0, 0, 1]);
    for _ in 0..2 {
        gate.reached().await;
        gate.open();
    }
    assert_eq!(database.snapshot().await, before);
    // The pool's other connections can write as before.
    let serving = Version::new(pool).serve(pool, "test", write_effect);
    let sent = github_delivery().uri("/test").id("due-1");
    for _ in 0..5 {
        send(&serving.router, sent.clone().request()).await;
    }
    assert_rows!(database, claims: 1, effects: 1);
}

/// Some statements get past both protections of a rehearsal, and do write. The rehearsal detects the writes, and
/// rehearses no further delivery of the endpoint.
#[tokio::test]
async fn z1_what_gets_past_both_walls_is_told_and_ends_the_rehearsal() {
    for statements in [
        &["rollback and chain", WRITE, "commit"][..],
        &["close all", WRITE, "commit"],
        &["close all", WRITE, "commit; begin", "select 1 / 0"],
    ] {
        for answered in [StatusCode::OK, StatusCode::BAD_GATEWAY] {
            let database = Database::new().await;
            let pool = &database.pool;
            insert_due_of(&database, "test", "/test", 3).await;
            let new = Version::new(pool).serve(pool, "test", async move |mut tx: DedupeTx| {
                run_all(&mut tx, statements).await;
                answered
            });
            let mut report = None;
            let logged = crate::support::logged(async {
                report = Some(new.rehearse(&Rehearsal::new().concurrency(1)).await);
            });
            let logged = logged.await;
            let report = report.unwrap();
            assert_eq!(report.rehearsed(), 0, "{statements:?}");
            assert_eq!(report.refused[0].endpoint, "test", "{statements:?}");
            assert!(!report.passed());
            let error = logged.lines().find(|line| line.contains("ERROR"));
            let error = error.unwrap_or_else(|| panic!("{statements:?}: {logged}"));
            assert!(error.contains("may have written"), "{error}");
            assert_rows!(database, claims: 0, effects: 1);
        }
    }
}

/// A rollback does not release session locks, so the session must not go back to the pool.
#[tokio::test(flavor = "multi_thread")]
async fn z1_no_session_of_a_rehearsal_is_left_to_the_pool() {
    let database = Database::new().await;
    let pool = &database.pool;
    insert_due_of(&database, "test", "/test", 4).await;
    let new = Version::new(pool).serve(pool, "test", async |mut tx: DedupeTx| {
        run_all(
            &mut tx,
            &["select pg_advisory_lock_shared(4711)", "set role none"],
        )
        .await;
    });
    let report = new.rehearse(&Rehearsal::new()).await;
    assert_eq!(counts(only_type(&report)), [0, 4, 0, 0, 0]);
    database.until(NO_ADVISORY_LOCK).await;
    for _ in 0..5 {
        let mut tx = pool.begin().await.unwrap();
        let read_only: String = sqlx::query_scalar("show transaction_read_only")
            .fetch_one(&mut *tx)
            .await
            .unwrap();
        assert_eq!(read_only, "off");
    }
}

/// Locks the claim of the delivery `due-1`.
const LOCK_OF_CLAIM: &str = "select pg_advisory_xact_lock(
    hashtextextended('due-1', hashtextextended('', hashtextextended('test', 0)))
)";

#[tokio::test(flavor = "multi_thread")]
async fn z1_what_changes_while_a_rehearsal_waits_is_read_again() {
    const PROCESSED: &str = "update idempotent_webhook.kept_deliveries
        set state = 'processed', next_attempt_at = null, processed_at = now(), archived_for = '1 day',
            archived_until = now() + interval '1 day'";
    for (change, late, expected) in [
        (PROCESSED, false, Some([1, 0, 0, 0, 0])),
        (PROCESSED, true, Some([1, 0, 0, 0, 0])),
        (
            "delete from idempotent_webhook.kept_deliveries",
            false,
            None,
        ),
        ("delete from idempotent_webhook.kept_requests", false, None),
        ("delete from idempotent_webhook.kept_requests", true, None),
        (
            "update idempotent_webhook.kept_deliveries set takes = takes + 1",
            false,
            Some([0, 1, 0, 0, 0]),
        ),
    ] {
        let database = Database::new().await;
        let pool = &database.pool;
        insert_due_of(&database, "test", "/test", 1).await;
        let new = match late {
            true => Version::new(pool).serve_with(
                pool,
                "test",
                |layer| layer.late_claim().rehearsable(),
                async |claim: LateClaim| claim.begin().await.map(|_| StatusCode::OK),
            ),
            false => Version::new(pool).serve(pool, "test", write_effect),
        };
        let mut holding = database.another_pool(1).await.begin().await.unwrap();
        sqlx::query(LOCK_OF_CLAIM)
            .execute(&mut *holding)
            .await
            .unwrap();
        let rehearsal = Rehearsal::new();
        let rehearsing = new.rehearse(&rehearsal);
        let changing = async {
            database.until(ONE_WAITS_FOR_A_LOCK).await;
            sqlx::query(change).execute(&mut *holding).await.unwrap();
            holding.commit().await.unwrap();
        };
        let (report, ()) = soon(join(rehearsing, changing)).await;
        match expected {
            Some(expected) => assert_eq!(counts(only_type(&report)), expected, "{change}"),
            None => assert!(
                report.types.is_empty() && report.passed(),
                "{change}: {report}"
            ),
        }
    }
}

/// The delivery was processed before an operator reprocessed it, so a failure in the rehearsal means that the new
/// version breaks it.
#[tokio::test(flavor = "multi_thread")]
async fn z1_what_is_to_be_processed_again_and_fails_is_broken() {
    let database = Database::new().await;
    let pool = &database.pool;
    let old = Version::new(pool).serve(pool, "test", write_effect);
    old.receive("test", "push", &["a"]).await;
    let endpoint = idempotent_webhook::Endpoint::new(pool.clone(), "test");
    endpoint.reprocess("a").await.unwrap();
    let failing = async |_: DedupeTx| StatusCode::BAD_GATEWAY;
    let new = Version::new(pool).serve(pool, "test", failing);
    let report = new.rehearse(&Rehearsal::new()).await;
    assert_eq!(counts(only_type(&report)), [0, 0, 1, 0, 0]);
    assert!(report.has_broken());
}

/// If another transaction has locked a row that the handler needs, the failure says nothing about the handler.
#[tokio::test(flavor = "multi_thread")]
async fn z1_what_other_transactions_hold_is_rehearsed_once_more_and_is_no_failure() {
    let database = Database::new().await;
    let pool = &database.pool;
    database
        .run("create table rows (n int); insert into rows values (1)")
        .await;
    insert_due_of(&database, "test", "/test", 1).await;
    let tries = Arc::new(AtomicU32::new(0));
    let counted = tries.clone();
    let new = Version::new(pool).serve(pool, "test", async move |mut tx: DedupeTx| {
        counted.fetch_add(1, Ordering::Relaxed);
        sqlx::raw_sql("set local lock_timeout = '50ms'; update rows set n = 2")
            .execute(&mut *tx)
            .await?;
        Ok::<_, HandlerError>(StatusCode::OK)
    });
    let mut holding = pool.begin().await.unwrap();
    sqlx::query("update rows set n = 3")
        .execute(&mut *holding)
        .await
        .unwrap();
    let report = new.rehearse(&Rehearsal::new()).await;
    assert_eq!(counts(only_type(&report)), [0, 0, 0, 0, 1]);
    assert_eq!(tries.load(Ordering::Relaxed), 2);
    assert!(!report.passed(), "{report}");
    holding.rollback().await.unwrap();
    let report = new.rehearse(&Rehearsal::new()).await;
    assert_eq!(counts(only_type(&report)), [0, 1, 0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn z1_an_error_ends_with_the_report_so_far() {
    let database = Database::new().await;
    insert_due_of(&database, "test", "/test", 3).await;
    let pool = database.another_pool(4).await;
    let closed = pool.clone();
    let new = Version::new(&pool).serve(&pool, "test", async move |_: DedupeTx| {
        tokio::spawn(async move { closed.close().await });
    });
    let report = new.rehearse(&Rehearsal::new().concurrency(1)).await;
    assert_eq!(counts(&report.types[0]), [0, 1, 0, 0, 0]);
    assert!(report.error.is_some(), "{report:?}");
    assert!(!report.passed());
    // If there is nothing to report, the result is an error.
    let error = new.recovery.rehearse(&new.router, &Rehearsal::new()).await;
    assert!(error.is_err());
}

/// In production the delivery is committed, regardless of the answer that the sender gets.
#[tokio::test(flavor = "multi_thread")]
async fn z1_a_middleware_that_gives_up_first_does_not_end_a_rehearsal() {
    let database = Database::new().await;
    let pool = &database.pool;
    insert_due_of(&database, "test", "/test", 1).await;
    let (mut gate, handler) = gated();
    let mut new = Version::new(pool).serve(pool, "test", handler);
    let (gave_up, has_given_up) = tokio::sync::oneshot::channel();
    let gave_up = Arc::new(Mutex::new(Some(gave_up)));
    let layer = axum::middleware::from_fn(move |request, next: axum::middleware::Next| {
        let gave_up = gave_up.clone();
        async move {
            let answer = tokio::time::timeout(Duration::from_millis(50), next.run(request)).await;
            let _ = gave_up.lock().unwrap().take().unwrap().send(());
            answer.map_err(|_| StatusCode::GATEWAY_TIMEOUT)
        }
    });
    new.router = new.router.layer(layer);
    let rehearsal = Rehearsal::new();
    let rehearsing = new.rehearse(&rehearsal);
    let opening = async {
        gate.reached().await;
        has_given_up.await.unwrap();
        gate.open();
    };
    let (report, ()) = soon(join(rehearsing, opening)).await;
    assert_eq!(counts(only_type(&report)), [0, 1, 0, 0, 0]);
}

/// Whether the report lets the deploy pass, in eight situations.
#[tokio::test(flavor = "multi_thread")]
async fn z1_a_report_passes_if_nothing_is_against_the_deploy() {
    let database = Database::new().await;
    let pool = &database.pool;
    let all = Rehearsal::new();
    let good = || Version::new(pool).serve(pool, "a", write_effect);

    // The first deploy: there is no archive yet.
    let report = good().rehearse(&all).await;
    assert!(report.passed(), "{report}");
    assert!(
        report.to_string().contains("nothing to rehearse"),
        "{report}"
    );
    // Nothing is kept, and one endpoint does not allow rehearsals. The report lists that endpoint even if it has no
    // deliveries.
    let closed = || good().serve_with(pool, "closed", |layer| layer, write_effect);
    assert!(!closed().rehearse(&all).await.passed());
    let but_closed = all.clone().expect_refused(["closed"]);
    assert!(closed().rehearse(&but_closed).await.passed());

    let old = closed().serve(pool, "b", write_effect);
    old.receive("a", "push", &["1", "2", "3"]).await;
    old.receive("a", "star", &["4"]).await;
    old.receive("b", "push", &["1", "2"]).await;
    let both = || good().serve(pool, "b", write_effect);
    assert!(both().rehearse(&all).await.passed());

    // The endpoint that does not allow rehearsals has due deliveries.
    insert_due_of(&database, "closed", "/closed", 5).await;
    let with_closed = || both().serve_with(pool, "closed", |layer| layer, write_effect);
    let report = with_closed().rehearse(&all).await;
    assert!(!report.passed(), "{report}");
    let report = with_closed().rehearse(&but_closed).await;
    assert!(report.passed() && report.refused[0].is_expected, "{report}");
    let named = all.clone().endpoints(["a", "b"]);
    let report = with_closed().rehearse(&named).await;
    assert!(report.passed() && report.refused.is_empty(), "{report}");
    database
        .run("delete from idempotent_webhook.kept_deliveries where endpoint = 'closed'")
        .await;

    // An endpoint has lost its route, or its route and its layer.
    let mut lost = both();
    let _its_layers = std::mem::replace(&mut lost.router, good().router);
    let report = lost.rehearse(&all).await;
    assert!(!report.passed() && report.rehearsed() == 4, "{report}");
    assert!(
        report
            .to_string()
            .contains("reached no layer of their endpoint"),
        "{report}"
    );
    let report = good().rehearse(&all).await;
    assert!(!report.passed(), "{report}");
    assert!(report.to_string().contains("b: not rehearsed"), "{report}");
    assert!(
        good()
            .rehearse(&all.clone().expect_refused(["b"]))
            .await
            .passed()
    );
    assert!(!good().rehearse(&named).await.passed());

    // A type was renamed, or is ignored on purpose.
    let recovery = Recovery::new(pool.clone());
    let layer = |endpoint| {
        IdempotentWebhook::new(pool.clone(), endpoint, presets::github(secret()))
            .rehearsable()
            .keep(Keep::all(&recovery).processed_for(DAY))
    };
    let events = Events::new().on("push", write_effect).ignore_others();
    let router = Router::new()
        .route("/a", post(events.layer(layer("a"))))
        .route("/b", post(write_effect).layer(layer("b")));
    let report = recovery.rehearse(&router, &all).await.unwrap();
    assert!(!report.passed() && !report.has_broken(), "{report}");
    assert!(report.to_string().contains("would be ignored"), "{report}");
    let on_purpose = all.clone().expect_ignored("a", ["star"]);
    let report = recovery.rehearse(&router, &on_purpose).await.unwrap();
    assert!(report.passed(), "{report}");
    drop(router);

    // The handler is broken.
    let broken = async |_: DedupeTx| StatusCode::UNPROCESSABLE_ENTITY;
    let report = good().serve(pool, "b", broken).rehearse(&all).await;
    assert!(!report.passed() && report.has_broken(), "{report}");

    // Postgres ends the rehearsal's sessions again and again.
    let handler = async |mut tx: DedupeTx| {
        sqlx::query("select pg_terminate_backend(pg_backend_pid())")
            .execute(&mut *tx)
            .await?;
        Ok::<_, HandlerError>(StatusCode::OK)
    };
    let report = good().serve(pool, "b", handler).rehearse(&all).await;
    assert!(!report.passed() && !report.has_broken(), "{report}");
    assert_eq!(counts(report.types.last().unwrap()), [0, 0, 0, 0, 2]);

    // No deliveries are kept any longer.
    database
        .run("delete from idempotent_webhook.kept_deliveries")
        .await;
    let report = both().rehearse(&all).await;
    assert!(report.passed() && report.rehearsed() == 0, "{report}");
}

/// Many deliveries that fail for one reason are shown on one line, and no text from a request can move the cursor of
/// the terminal.
#[tokio::test(flavor = "multi_thread")]
async fn z1_a_report_is_printed_by_type_and_reason() {
    let database = Database::new().await;
    let pool = &database.pool;
    insert_due_of(&database, "test", "/test", 116).await;
    database
        .run(
            "update idempotent_webhook.kept_deliveries set reprocessed = true, event_type = 'push'",
        )
        .await;
    let new = Version::new(pool).serve(pool, "test", async |_: DedupeTx| {
        Err::<StatusCode, _>(HandlerError::new("no field \u{1b}[31m`ref`\nin it"))
    });
    let report = new.rehearse(&Rehearsal::new().concurrency(1)).await;
    let printed = report.to_string();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 4, "{printed}");
    assert_eq!(lines[0], "test push: 116 fail now");
    let line = lines[1];
    assert!(
        line.starts_with("  116 fail now: no field  [31m`ref` in it (due-"),
        "{line}"
    );
    assert_eq!(line.matches("due-").count(), 3, "{line}");
    assert_eq!(
        lines[2..],
        [
            "not passed:",
            "  116 of test push would fail, and were processed before"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn z1_a_filter_and_a_limit_choose_and_the_newest_comes_first() {
    let database = Database::new().await;
    let pool = &database.pool;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let handler = {
        let seen = seen.clone();
        async move |_: DedupeTx, delivery: Delivery| {
            seen.lock().unwrap().push(delivery.id().to_string());
        }
    };
    let version = Version::new(pool).serve(pool, "test", handler);
    version.receive("test", "push", &["a", "b", "c"]).await;
    version.receive("test", "star", &["d"]).await;
    database
        .run(
            "update idempotent_webhook.kept_deliveries
             set first_received_at = now() - interval '1 hour'
             where delivery_id in ('b', 'd');
             insert into idempotent_webhook.kept_deliveries (endpoint, delivery_id, state, attempts)
             values ('test', 'recorded', 'recorded', 1)",
        )
        .await;
    insert_due_of(&database, "test", "/test", 1).await;
    let rehearsed = async |rehearsal: Rehearsal| {
        seen.lock().unwrap().clear();
        version.rehearse(&rehearsal.concurrency(1)).await;
        seen.lock().unwrap().clone()
    };
    let newest = async |limit| rehearsed(Rehearsal::new().limit(limit)).await;
    assert_eq!(newest(0).await, [""; 0]);
    assert_eq!(newest(3).await, ["due-1", "c", "a"]);
    assert_eq!(newest(5).await, ["due-1", "c", "a", "b", "d"]);

    let not_processed = rehearsed(Rehearsal::new().only(Filter::new())).await;
    assert_eq!(not_processed, ["due-1"]);
    let archive = Filter::new().state(KeptState::Processed);
    let stars = Rehearsal::new()
        .only(archive.clone().event_type("star"))
        .only(archive.event_type("star"));
    assert_eq!(rehearsed(stars).await, ["d"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn z1_a_rehearsal_that_is_cut_off_leaves_nothing() {
    let database = Database::new().await;
    let pool = &database.pool;
    let old = Version::new(pool).serve(pool, "test", write_effect);
    old.receive("test", "push", &["a", "b"]).await;
    let (mut gate, handler) = gated();
    let new = Version::new(pool).serve(pool, "test", handler);
    let before = database.snapshot().await;
    let rehearsing = tokio::spawn(async move {
        new.rehearse(&Rehearsal::new().concurrency(2)).await;
    });
    gate.reached().await;
    gate.reached().await;
    assert_eq!(database.writing().await, 2);
    rehearsing.abort();
    database.until(NO_ADVISORY_LOCK).await;
    assert_eq!(database.snapshot().await, before);
    assert_eq!(
        send(
            &old.router,
            github_delivery().uri("/test").id("a").request()
        )
        .await,
        answer(200, "duplicate", "")
    );
}

/// The connection is lost as if the process were killed, or as if its host were lost.
#[tokio::test(flavor = "multi_thread")]
async fn z1_a_rehearsal_whose_connection_is_lost_leaves_nothing_and_the_next_one_runs() {
    let database = Database::new().await;
    let pool = &database.pool;
    insert_due_of(&database, "test", "/test", 2).await;
    let (mut gate, handler) = gated();
    let new = Version::new(pool).serve(pool, "test", handler);
    let before = database.snapshot().await;
    let rehearsal = Rehearsal::new().concurrency(1);
    let rehearsing = new.rehearse(&rehearsal);
    let killing = async {
        gate.reached().await;
        database
            .count(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity
                 where datname = current_database() and backend_xid is not null",
            )
            .await;
        for _ in 0..2 {
            gate.open();
            gate.reached().await;
        }
        gate.open();
    };
    let (report, ()) = soon(join(rehearsing, killing)).await;
    // The interrupted delivery was rehearsed again.
    assert_eq!(counts(only_type(&report)), [0, 2, 0, 0, 0]);
    assert_eq!(database.snapshot().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn z1_a_request_for_what_is_rehearsed_waits_for_one_handler_and_is_processed_once() {
    let database = Database::new().await;
    let pool = &database.pool;
    insert_due_of(&database, "test", "/test", 1).await;
    let (mut gate, handler) = gated();
    let new = Version::new(pool).serve(pool, "test", handler);
    let serving = Version::new(pool).serve(pool, "test", write_effect);
    let rehearsal = Rehearsal::new();
    let rehearsing = new.rehearse(&rehearsal);
    let sending = async {
        gate.reached().await;
        let sent = github_delivery().uri("/test").id("due-1");
        let sent = spawn_send(&serving.router, sent.request());
        database.until(ONE_WAITS_FOR_A_LOCK).await;
        assert_rows!(database, claims: 0, effects: 0);
        gate.open();
        sent.await.unwrap()
    };
    let (report, answered) = soon(join(rehearsing, sending)).await;
    assert_eq!(answered, answer(200, "processed", "done"));
    assert_eq!(counts(only_type(&report)), [0, 1, 0, 0, 0]);
    assert_rows!(database, claims: 1, effects: 1);
}

/// The reverse of the test above: a delivery that is being processed is not rehearsed at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn z1_a_rehearsal_waits_for_an_attempt_that_is_running() {
    let database = Database::new().await;
    let pool = &database.pool;
    insert_due_of(&database, "test", "/test", 1).await;
    let (mut gate, handler) = gated();
    let serving = Version::new(pool).serve(pool, "test", handler);
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let new = Version::new(pool).serve(pool, "test", async move |_: DedupeTx| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let sent = github_delivery().uri("/test").id("due-1");
    let sent = spawn_send(&serving.router, sent.request());
    gate.reached().await;
    let rehearsal = Rehearsal::new();
    let rehearsing = new.rehearse(&rehearsal);
    let opening = async {
        database.until(ONE_WAITS_FOR_A_LOCK).await;
        assert_eq!(runs.load(Ordering::Relaxed), 0);
        gate.open();
    };
    let (report, ()) = soon(join(rehearsing, opening)).await;
    // By now, the delivery is processed and no longer kept.
    assert!(report.types.is_empty(), "{report}");
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    assert_eq!(sent.await.unwrap().outcome, "processed");
    assert_rows!(database, claims: 1, effects: 1);
}

/// If the job builds a different router than the application does, the report must not say that all is well.
#[tokio::test(flavor = "multi_thread")]
async fn z1_what_reaches_no_layer_of_its_endpoint_is_not_run() {
    let database = Database::new().await;
    let pool = &database.pool;
    insert_due_of(&database, "test", "/gone", 1).await;
    insert_due_of(&database, "other", "/test", 1).await;
    let new =
        Version::new(pool)
            .serve(pool, "test", write_effect)
            .serve(pool, "other", write_effect);
    let before = database.snapshot().await;
    let report = new.rehearse(&Rehearsal::new()).await;
    assert_eq!(database.snapshot().await, before);
    assert_eq!(report.rehearsed(), 0);
    let not_run: Vec<_> = report
        .types
        .iter()
        .map(|of| (&*of.endpoint, &*of.not_run[0].reason))
        .collect();
    assert_eq!(
        not_run,
        [
            (
                "other",
                "its path leads to the layer of another endpoint, `test`"
            ),
            (
                "test",
                "no layer of its endpoint was reached: the answer was 404 Not Found"
            ),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn z1_a_type_that_has_no_handler_any_more_is_ignored() {
    let database = Database::new().await;
    let pool = &database.pool;
    let old = Version::new(pool).serve(pool, "test", write_effect);
    old.receive("test", "push", &["a"]).await;
    let recovery = Recovery::new(pool.clone());
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()))
        .rehearsable()
        .keep(Keep::all(&recovery).processed_for(DAY));
    let events = Events::new().on("star", write_effect).ignore_others();
    let router = Router::new().route("/test", post(events.layer(layer)));
    let report = recovery.rehearse(&router, &Rehearsal::new()).await.unwrap();
    assert_eq!(counts(only_type(&report)), [0, 0, 0, 0, 0]);
    let reason = &report.types[0].ignored_now[0].reason;
    assert!(
        reason.contains("no handler for the type `push`"),
        "{reason}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn z1_one_object_is_rehearsed_by_one_handler_at_a_time() {
    let database = Database::new().await;
    let pool = &database.pool;
    insert_due_of(&database, "test", "/test", 2).await;
    let running = Arc::new(AtomicU32::new(0));
    let handler = async move |_: DedupeTx| {
        assert_eq!(running.fetch_add(1, Ordering::Relaxed), 0);
        tokio::time::sleep(Duration::from_millis(50)).await;
        running.fetch_sub(1, Ordering::Relaxed);
    };
    let serialized = |layer: IdempotentWebhook| {
        let object = Source::header(axum::http::HeaderName::from_static("x-object"))
            .or(Source::json("$.id".parse().unwrap()));
        layer.rehearsable().serialize_by(object)
    };
    database
        .run("update idempotent_webhook.kept_requests set body = '{\"id\":1}'")
        .await;
    let new = Version::new(pool).serve_with(pool, "test", serialized, handler);
    let report = new.rehearse(&Rehearsal::new().concurrency(2)).await;
    assert_eq!(counts(only_type(&report)), [0, 2, 0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn z2_an_endpoint_is_rehearsed_only_if_its_layer_says_so() {
    let database = Database::new().await;
    let pool = &database.pool;
    insert_due_of(&database, "closed", "/closed", 3).await;
    insert_due_of(&database, "open", "/open", 3).await;
    let never = async |_: DedupeTx| -> StatusCode { panic!("the handler must not be called") };
    let new = Version::new(pool)
        .serve_with(pool, "closed", |layer| layer, never)
        .serve(pool, "open", write_effect);
    let report = new.rehearse(&Rehearsal::new()).await;
    assert_eq!(report.refused.len(), 1);
    assert_eq!(report.refused[0].endpoint, "closed");
    let reason = &report.refused[0].reason;
    assert!(reason.contains("not `rehearsable`"), "{reason}");
    assert_eq!(report.types.len(), 1);
    assert_eq!(counts(&report.types[0]), [0, 3, 0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn z2_a_handler_can_tell_and_nothing_runs_after_a_commit_that_does_not_come() {
    let database = Database::new().await;
    let pool = &database.pool;
    let told = Arc::new(Mutex::new(Vec::new()));
    let after = Arc::new(AtomicU32::new(0));
    let handler = {
        let (told, after) = (told.clone(), after.clone());
        async move |mut tx: DedupeTx, delivery: Delivery| {
            told.lock().unwrap().push((
                delivery.is_rehearsal(),
                delivery.is_reprocessed(),
                delivery.attempt(),
                delivery.idempotency_key("x"),
            ));
            let after = after.clone();
            tx.after_commit(async move {
                after.fetch_add(1, Ordering::Relaxed);
            });
            insert_effect(&mut tx, &delivery).await.unwrap();
        }
    };
    let mut layer = None;
    let keep_layer = |given: IdempotentWebhook| layer.insert(given.rehearsable()).clone();
    let version = Version::new(pool).serve_with(pool, "test", keep_layer, handler);
    version.receive("test", "push", &["a"]).await;
    let report = version.rehearse(&Rehearsal::new()).await;
    assert_eq!(counts(only_type(&report)), [1, 0, 0, 0, 0]);
    layer.unwrap().drained().await;
    assert_eq!(after.load(Ordering::Relaxed), 1);
    let told = told.lock().unwrap().clone();
    let key = told[0].3.clone();
    assert_eq!(told, [(false, false, 1, key.clone()), (true, true, 2, key)]);
    assert_rows!(database, claims: 1, effects: 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn z2_a_late_claim_is_rehearsed_up_to_its_commit() {
    let database = Database::new().await;
    let pool = &database.pool;
    let late = |layer: IdempotentWebhook| layer.late_claim().rehearsable();
    let handler = async |claim: LateClaim, delivery: Delivery| {
        if delivery.id().as_str() == "without" {
            return Ok(StatusCode::OK);
        }
        let mut tx = claim.begin().await?;
        insert_effect(&mut tx, &delivery).await?;
        let recency = tx.advance("a subject", 1).await?;
        match (delivery.id().as_str(), recency) {
            ("fails", _) => Err(HandlerError::new("after its claim")),
            (_, Recency::Newer) => Ok(StatusCode::OK),
            (_, recency) => Err(HandlerError::new(format_args!("{recency:?}"))),
        }
    };
    let old = Version::new(pool).serve_with(pool, "test", late, async |claim: LateClaim| {
        claim.begin().await.map(|_| StatusCode::OK)
    });
    old.receive("test", "push", &["a", "fails", "without"])
        .await;
    let new = Version::new(pool).serve_with(pool, "test", late, handler);
    let before = database.snapshot().await;
    let report = new.rehearse(&Rehearsal::new().concurrency(1)).await;
    assert_eq!(database.snapshot().await, before);
    let of_type = only_type(&report);
    assert_eq!(counts(of_type), [2, 0, 1, 0, 0], "{of_type:?}");
    assert_eq!(reasons(&of_type.fails_now), [("fails", "after its claim")]);
}

/// The SQL function refuses the claim, so the handler's transaction fails. The handler must pass the take number, which
/// identifies the attempt. If it does not, the rehearsal stops after the first delivery.
#[tokio::test(flavor = "multi_thread")]
async fn z2_a_handler_with_another_driver_is_refused_and_claims_nothing() {
    const CLAIM: &str = "select idempotent_webhook.claim($1, '', $2, null, $3)";
    let database = Database::new().await;
    let pool = &database.pool;
    insert_due_of(&database, "test", "/test", 3).await;
    let elsewhere = database.another_pool(2).await;
    for (gives_number, expected) in [(true, None), (false, Some("with another driver"))] {
        let elsewhere = elsewhere.clone();
        let handler = move |claim: LateClaim, delivery: Delivery| {
            let elsewhere = elsewhere.clone();
            async move {
                let mut tx = elsewhere.begin().await?;
                let number = claim.take_number().filter(|_| gives_number);
                let claimed: bool = sqlx::query_scalar(CLAIM)
                    .bind(delivery.endpoint())
                    .bind(delivery.id())
                    .bind(number)
                    .fetch_one(&mut *tx)
                    .await?;
                assert!(claimed);
                tx.commit().await?;
                claim.committed();
                Ok::<_, HandlerError>(StatusCode::OK)
            }
        };
        let late = |layer: IdempotentWebhook| layer.late_claim().rehearsable();
        let new = Version::new(pool).serve_with(pool, "test", late, handler);
        let report = new.rehearse(&Rehearsal::new().concurrency(1)).await;
        match expected {
            None => {
                let of_type = only_type(&report);
                assert_eq!(counts(of_type), [0, 0, 0, 3, 0]);
                let reason = &of_type.fails_again[0].reason;
                assert!(
                    reason.contains("this is a rehearsal, which claims nothing"),
                    "{reason}"
                );
                assert_rows!(database, claims: 0, effects: 0);
            }
            Some(expected) => {
                assert_eq!(report.rehearsed(), 0);
                let reason = &report.refused[0].reason;
                assert!(reason.contains(expected), "{reason}");
                assert_rows!(database, claims: 1, effects: 0);
            }
        }
    }
}

/// As in the guide, transactions on the pool are read-only by default, but the rehearsal's own transaction can write.
#[tokio::test(flavor = "multi_thread")]
async fn z2_what_is_written_past_the_transaction_fails_on_a_pool_that_only_reads() {
    let database = Database::new().await;
    insert_due_of(&database, "test", "/test", 1).await;
    let options = database
        .options()
        .options([("default_transaction_read_only", "on")]);
    let pool = PgPoolOptions::new()
        .max_connections(5)
        .connect_lazy_with(options);
    let past = pool.clone();
    let new = Version::new(&pool).serve(
        &pool,
        "test",
        async move |mut tx: DedupeTx, delivery: Delivery| {
            insert_effect(&mut tx, &delivery).await?;
            sqlx::query("insert into effects values ('past it')")
                .execute(&past)
                .await?;
            Ok::<_, HandlerError>(StatusCode::OK)
        },
    );
    let before = database.snapshot().await;
    let report = new.rehearse(&Rehearsal::new()).await;
    assert_eq!(database.snapshot().await, before);
    let of_type = only_type(&report);
    assert_eq!(counts(of_type), [0, 0, 0, 1, 0]);
    let RehearsedDelivery {
        delivery_id,
        reason,
        ..
    } = &of_type.fails_again[0];
    assert_eq!((&*of_type.endpoint, &**delivery_id), ("test", "due-1"));
    assert!(reason.contains("read-only transaction"), "{reason}");

    // The rehearsal's transaction can write, whether or not the layer serializes deliveries by object.
    let serialized = |layer: IdempotentWebhook| {
        let object = Source::json("$.id".parse().unwrap());
        layer.rehearsable().serialize_by(object)
    };
    for new in [
        Version::new(&pool).serve(&pool, "test", write_effect),
        Version::new(&pool).serve_with(&pool, "test", serialized, write_effect),
    ] {
        let report = new.rehearse(&Rehearsal::new()).await;
        assert_eq!(counts(only_type(&report)), [0, 1, 0, 0, 0]);
        assert_eq!(database.snapshot().await, before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn z2_a_handler_that_does_not_take_its_transaction_is_suspicious() {
    let database = Database::new().await;
    let pool = &database.pool;
    insert_due_of(&database, "test", "/test", 1).await;
    let new = Version::new(pool).serve(pool, "test", async || StatusCode::OK);
    let report = new.rehearse(&Rehearsal::new()).await;
    let of_type = only_type(&report);
    assert_eq!(counts(of_type), [0, 1, 0, 0, 0]);
    let reason = &of_type.suspicious[0].reason;
    assert!(reason.contains("has not taken DedupeTx"), "{reason}");
}

/// Each rehearsed delivery is logged in its own span, and no message calls it an attempt.
#[tokio::test]
async fn z1_a_rehearsal_is_logged_as_one() {
    let database = Database::new().await;
    let pool = &database.pool;
    insert_due_of(&database, "test", "/test", 1).await;
    let failing = async |_: DedupeTx| -> StatusCode { StatusCode::BAD_GATEWAY };
    let new = Version::new(pool).serve(pool, "test", failing);
    let logged = crate::support::logged(async {
        new.rehearse(&Rehearsal::new()).await;
    })
    .await;
    assert!(logged.contains("webhook rehearsed"), "{logged}");
    for message in ["WARN", "ERROR", "webhook rolled back", "webhook received"] {
        assert!(!logged.contains(message), "{message}: {logged}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn z1_a_rehearsal_of_many_stays_within_the_pool() {
    let database = Database::new().await;
    let pool = &database.pool;
    insert_due_of(&database, "test", "/test", 6).await;
    let (mut gate, way) = gate();
    let new = Version::new(pool).serve(pool, "test", async move |_: DedupeTx| way.pass().await);
    let rehearsal = Rehearsal::new().concurrency(100);
    let rehearsing = new.rehearse(&rehearsal);
    let opening = async {
        for _ in 0..3 {
            gate.reached().await;
            gate.reached().await;
            // A rehearsal uses half of the five connections.
            assert_eq!(database.writing().await, 2);
            gate.open();
            gate.open();
        }
    };
    let (report, ()) = soon(join(rehearsing, opening)).await;
    assert_eq!(counts(only_type(&report)), [0, 6, 0, 0, 0]);
}
