//! Guarantee Q4: all processes together report a problem of an endpoint once when it starts, and once when it is over.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use idempotent_webhook::recovery::{EndpointChange, Problem};
use idempotent_webhook::{IdempotentWebhook, Keep, presets};

use crate::support::{
    Database, Failing, TestApp, assert_rows, endpoint, github, logged, recovery, secret, soon,
    until_logged, write_effect,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The reports that hooks got. Each report consists of the problem, and whether it is over.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<EndpointChange>>>);

impl Told {
    fn note(&self) -> impl Fn(&EndpointChange) + Send + Sync + 'static {
        let told = self.0.clone();
        move |change| told.lock().unwrap().push(change.clone())
    }

    fn all(&self) -> Vec<(Problem, bool)> {
        let told = self.0.lock().unwrap();
        told.iter()
            .map(|change| {
                assert_eq!(change.endpoint, "test");
                assert!(change.since.elapsed().unwrap_or_default() < DAY);
                (change.problem, change.is_over)
            })
            .collect()
    }

    async fn until(&self, number: usize) {
        soon(async {
            while self.all().len() < number {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }
}

/// Makes three processes look for problems of the endpoint now, as each process does every half minute.
async fn look(database: &Database, told: &Told) {
    let mut running = Vec::new();
    for _ in 0..3 {
        let pool = database.another_pool(3).await;
        let recovery = recovery(&pool).poll_interval(DAY).on_change(told.note());
        let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()))
            .keep(Keep::failed(&recovery));
        // The handle is spawned with a router without routes, so no delivery runs.
        let _: Router = Router::new().route("/", post(write_effect).layer(layer.clone()));
        database
            .run("update idempotent_webhook.kept_endpoints set served_at = null")
            .await;
        running.push((layer, recovery.spawn(Router::<()>::new())));
        // The process reports which endpoint it serves, looks for problems, and then waits.
        database
            .until(
                "exists (
                    select from idempotent_webhook.kept_endpoints
                    where endpoint = 'test' and served_at is not null
                )",
            )
            .await;
    }
    for (_, recovery) in running {
        recovery.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn q4_each_problem_is_told_once_and_so_is_its_end() {
    let database = Database::new().await;
    let told = Told::default();
    look(&database, &told).await;
    assert_eq!(told.all(), []);

    database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, next_attempt_at, last_failed_at, unreached_at)
             values ('test', 'a', 'due', 1, now() + interval '1 day', now(), now());
             update idempotent_webhook.kept_endpoints set probe_at = now();
             insert into idempotent_webhook.reconciliations
                 (endpoint, path, source, begins_at, failure)
             values ('test', '/', 'stripe', now(), 'it answers 401'),
                 ('another', '/', 'stripe', now(), 'it answers 401')",
        )
        .await;
    look(&database, &told).await;
    told.until(4).await;
    look(&database, &told).await;
    let begun = [
        (Problem::Failing, false),
        (Problem::NotReconciled, false),
        (Problem::Probing, false),
        (Problem::Unreached, false),
    ];
    assert_eq!(told.all(), begun);

    database
        .run(
            "update idempotent_webhook.kept_endpoints set probe_at = null;
             update idempotent_webhook.reconciliations set failure = null;
             -- A kind of problem that only a later version of this crate knows.
             insert into idempotent_webhook.problems (endpoint, problem, is_there)
             values ('test', 'melting', true)",
        )
        .await;
    look(&database, &told).await;
    told.until(6).await;
    database
        .run("delete from idempotent_webhook.kept_deliveries")
        .await;
    look(&database, &told).await;
    told.until(8).await;
    look(&database, &told).await;
    let mut over = told.all().split_off(4);
    over[..2].sort_by_key(|(problem, _)| problem.as_str());
    over[2..].sort_by_key(|(problem, _)| problem.as_str());
    let expected = [
        (Problem::NotReconciled, true),
        (Problem::Probing, true),
        (Problem::Failing, true),
        (Problem::Unreached, true),
    ];
    assert_eq!(over, expected);
    database
        .until("(select array_agg(problem) from idempotent_webhook.problems) = array['melting']")
        .await;
}

/// Each process looks for problems every half minute, and one search serves all processes.
#[tokio::test]
async fn q4_no_process_looks_again_within_25_seconds() {
    let database = Database::new().await;
    let look = async |is_early: bool| {
        let turn = Duration::from_secs(25);
        let look = sqlx::query(include_str!("../../../src/transaction/take_turn.sql"))
            .bind("problems")
            .bind("")
            .bind("")
            .bind("")
            .bind(None::<i64>)
            .bind(turn)
            .bind(turn)
            .bind(is_early)
            .bind(None::<&str>);
        look.fetch_optional(&database.pool).await.unwrap().is_some()
    };
    let looked = async |ago: &str| {
        let sql = format!(
            "update idempotent_webhook.turns
             set next_at = now() + interval '25 seconds' - interval '{ago}' where task = 'problems'"
        );
        database.run(&sql).await;
    };
    assert!(look(false).await, "the first one");
    assert!(!look(false).await);
    // A process that has just started does not wait for the pause after the other processes' search.
    assert!(look(true).await);
    assert!(!look(false).await);
    looked("20 seconds").await;
    assert!(!look(false).await);
    looked("26 seconds").await;
    assert!(look(false).await);
    // The clock was set back.
    looked("-86 seconds").await;
    assert!(look(false).await);
    assert!(!look(false).await);
}

#[test]
fn q4_a_problem_is_written_by_its_name() {
    for problem in [
        Problem::Failing,
        Problem::Probing,
        Problem::Unreached,
        Problem::Unserved,
        Problem::Silent,
        Problem::NotReconciled,
        Problem::SubscriptionDiffers,
        Problem::NotCompared,
        Problem::OtherVersion,
        Problem::NewEventType,
        Problem::EventTypeStopped,
        Problem::Stalled,
    ] {
        assert_eq!(problem.to_string(), problem.as_str());
    }
}

/// A hook may panic with this value. Its destructor panics, and the destructor of that panic's value panics again.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::panic_any(Self);
    }
}

/// The log of an application whose handler fails and is then fixed.
#[tokio::test]
async fn q4_the_first_failure_and_the_recovery_are_logged() {
    let told = Told::default();
    let note = told.note();
    let logged = logged(async move {
        let failing = Failing::times(1);
        let app = TestApp::keeping(|keep| keep.retry_delays([DAY]), failing.handler()).await;
        assert_eq!(app.send(github("a", "{}")).await.outcome, "kept");
        let recovery = app.recovery.clone().on_change(move |change| {
            note(change);
            std::panic::panic_any(Bomb);
        });
        let running = recovery.clone().spawn(app.router.clone());
        until_logged("webhook problem").await;
        running.stop().await;
        endpoint(&app).retry("a").await.unwrap();
        assert_eq!(app.recovery.run_due(&app.router).await.unwrap().len(), 1);
        assert_rows!(app.database, claims: 1, effects: 1);
        let running = recovery.spawn(app.router.clone());
        until_logged("webhook problem over").await;
        running.stop().await;
    })
    .await;
    let both = [(Problem::Failing, false), (Problem::Failing, true)];
    assert_eq!(told.all(), both);
    assert!(
        logged.contains("WARN") && logged.contains("problem=\"failing\""),
        "{logged}"
    );
    assert_eq!(
        logged.matches("a hook for webhooks panicked").count(),
        2,
        "{logged}"
    );
}
