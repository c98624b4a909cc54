//! Guarantee R13: an operation on many deliveries (`retry_all`, for example) changes each delivery that came before it
//! started, exactly once. It skips deliveries that an attempt has locked, and reports how many it skipped. It waits for
//! all other locks.

use std::process::Stdio;
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use idempotent_webhook::recovery::{Changes, Discarded, Filter, KeptState, Reprocessed, Retried};
use idempotent_webhook::{
    DedupeTx, Delivery, Endpoint, IdempotentWebhook, Keep, Recovery, presets, prune,
};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, PgPool, Postgres, Transaction};
use tokio::process::Command;

use crate::support::{
    Answered, Database, Failing, NO_ADVISORY_LOCK, ONE_WAITS_FOR_A_LOCK, TestApp, another, answer,
    assert_rows, due_after, endpoint, gate, github, insert_due_of, keep_accepted, keeping_by,
    recover, recovery, secret, send, soon, write_effect,
};

const TWO_WAIT_FOR_A_LOCK: &str = "2 = (
    select count(*) from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'
)";

/// Three batches.
const MANY: u64 = 1200;

/// The state of a delivery, or `gone`.
async fn state_of(database: &Database, id: &str) -> String {
    let state = "select coalesce(
        (select state from idempotent_webhook.kept_deliveries where delivery_id = $1), 'gone'
    )";
    sqlx::query_scalar(state)
        .bind(id)
        .fetch_one(&database.pool)
        .await
        .unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Word {
    Retry,
    Discard,
    Erase,
    Reprocess,
}

impl Word {
    const ALL: [Self; 4] = [Self::Retry, Self::Discard, Self::Erase, Self::Reprocess];

    async fn of_all(self, endpoint: &Endpoint) -> sqlx::Result<Changes> {
        let all = Filter::new();
        match self {
            Self::Retry => endpoint.retry_all(&all).await,
            Self::Discard => endpoint.discard_all(&all).await,
            Self::Erase => endpoint.erase_all(&all).await,
            Self::Reprocess => endpoint.reprocess_all(&all).await,
        }
    }

    /// Performs the operation on one delivery. Returns whether the delivery was changed.
    async fn of_one(self, endpoint: &Endpoint, id: &str) -> sqlx::Result<bool> {
        match self {
            Self::Retry => endpoint.retry(id).await.map(|done| done == Retried::Due),
            Self::Discard => {
                let discarded = endpoint.discard(id).await;
                discarded.map(|done| done == Discarded::Discarded)
            }
            Self::Erase => endpoint.erase(id).await,
            Self::Reprocess => {
                let reprocessed = endpoint.reprocess(id).await;
                reprocessed.map(|done| done == Reprocessed::Due)
            }
        }
    }

    /// The state of the deliveries that the operation changes.
    fn before(self) -> &'static str {
        match self {
            Self::Reprocess => "processed",
            _ => "dead",
        }
    }

    fn after(self) -> &'static str {
        match self {
            Self::Retry | Self::Reprocess => "due",
            Self::Discard => "gone",
            Self::Erase => "recorded",
        }
    }
}

/// Inserts deliveries in this state, with the ids `d0001` and so on.
async fn insert(database: &Database, state: &str, number: u64) {
    database
        .run(&format!(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, last_failed_at, next_attempt_at,
                  processed_at, archived_for, archived_until)
             select 'test', 'd' || lpad(n::text, 4, '0'), '{state}', 1, now() - interval '1 hour',
                 case '{state}' when 'due' then now() end,
                 case '{state}' when 'processed' then now() - interval '1 hour' end,
                 case '{state}' when 'processed' then interval '1 day' end, now() + interval '1 day'
             from generate_series(1, {number}) as n;
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             select endpoint, delivery_id, 1, 'POST', '/', '', '{{}}'
             from idempotent_webhook.kept_deliveries;
             insert into idempotent_webhook.deliveries (endpoint, delivery_id)
             select endpoint, delivery_id from idempotent_webhook.kept_deliveries
             where state = 'processed'"
        ))
        .await;
}

/// The endpoint with a pool that waits for locks for a long time.
async fn patient(database: &Database) -> Endpoint {
    impatient(database, "1min").await
}

async fn impatient(database: &Database, lock_timeout: &str) -> Endpoint {
    let options = database.options();
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .connect_with(options.options([("lock_timeout", lock_timeout)]))
        .await
        .unwrap();
    Endpoint::new(pool, "test")
}

/// Locks the row of a delivery, as a session does that changes the row outside of an attempt.
async fn hold(database: &Database, id: &str) -> Transaction<'static, Postgres> {
    let row = format!(
        "select from idempotent_webhook.kept_deliveries where delivery_id = '{id}' for update"
    );
    another(database, &row).await
}

/// Locks the claim and the row of a delivery, as an attempt does.
async fn run(database: &Database, id: &str) -> Transaction<'static, Postgres> {
    let claim = format!(
        "select pg_advisory_xact_lock(
            hashtextextended('{id}', hashtextextended('', hashtextextended('test', 0)))
         );
         select from idempotent_webhook.kept_deliveries where delivery_id = '{id}' for update"
    );
    another(database, &claim).await
}

fn numbers(changes: &Changes) -> (u64, u64) {
    (changes.changed, changes.running)
}

/// An operation that has finished its first batch.
struct Midst {
    held: Transaction<'static, Postgres>,
    word: tokio::task::JoinHandle<sqlx::Result<Changes>>,
}

impl Midst {
    async fn of(database: &Database, word: Word) -> Self {
        let held = hold(database, "d0700").await;
        let endpoint = patient(database).await;
        let word = tokio::spawn(async move { word.of_all(&endpoint).await });
        database.until(ONE_WAITS_FOR_A_LOCK).await;
        Self { held, word }
    }

    /// Lets the operation continue to its end. Returns how many deliveries it has changed, and how many it has left
    /// alone.
    async fn goes_on(self) -> (u64, u64) {
        self.held.rollback().await.unwrap();
        numbers(&soon(self.word).await.unwrap().unwrap())
    }
}

/// The provider got a 2xx for each copy that it sent during the operation, so each copy must run.
#[tokio::test(flavor = "multi_thread")]
async fn r13_what_the_provider_sends_again_during_an_operation_is_kept_and_runs() {
    for word in [Word::Discard, Word::Erase] {
        let failing = Failing::times(0);
        let app = keeping_by(keep_accepted, failing.handler()).await;
        insert(&app.database, "dead", MANY).await;
        app.database.insert_process().await;
        // The deliveries of the last batch: dead, due later, due now, and running in a living process.
        app.database
            .run(
                "update idempotent_webhook.kept_deliveries
                 set state = 'due', next_attempt_at = now() + interval '1 hour'
                 where delivery_id = 'd1102';
                 update idempotent_webhook.kept_deliveries
                 set state = 'due', next_attempt_at = now() - interval '1 hour'
                 where delivery_id = 'd1103';
                 update idempotent_webhook.kept_deliveries
                 set state = 'due', next_attempt_at = now() - interval '1 hour', taken_by = 1
                 where delivery_id = 'd1104'",
            )
            .await;
        let midst = Midst::of(&app.database, word).await;
        let sent_again = ["d0001", "d1101", "d1102", "d1103", "d1104"];
        for id in sent_again {
            let sent = soon(app.send(github(id, "{}"))).await;
            assert_eq!(sent, answer(200, "accepted", ""), "{word:?} {id}");
        }
        assert_eq!(midst.goes_on().await, (MANY - 4, 0), "{word:?}");
        app.database
            .run("delete from idempotent_webhook.processes where number = 1")
            .await;
        let recovery = recover(&app);
        app.database
            .until("(select count(*) from effects) = 5")
            .await;
        recovery.stop().await;
        assert_rows!(app.database, claims: 5, effects: 5, "{word:?}");
        for id in sent_again {
            assert_eq!(state_of(&app.database, id).await, "gone", "{word:?} {id}");
        }
    }
}

/// The row of the delivery is locked for as long as its attempt runs, so another table notes that a copy came.
#[tokio::test(flavor = "multi_thread")]
async fn r13_what_the_provider_sends_again_while_an_attempt_runs_is_kept_if_that_fails() {
    for word in [Word::Discard, Word::Erase] {
        let (mut gate, way) = gate();
        let failing = Failing::times(1);
        let handler = {
            let handler = failing.handler();
            move |tx: DedupeTx, delivery: Delivery| -> Answered {
                let (way, answered) = (way.clone(), handler(tx, delivery));
                Box::pin(async move {
                    way.pass().await;
                    answered.await
                })
            }
        };
        let hour = Duration::from_secs(60 * 60);
        let keep = |recovery: &Recovery| Keep::accepted(recovery).retry_delays([hour; 3]);
        let app = keeping_by(keep, handler).await;
        insert(&app.database, "dead", MANY).await;
        let is_due = "update idempotent_webhook.kept_deliveries
             set state = 'due', next_attempt_at = now() where delivery_id = 'd1101'";
        app.database.run(is_due).await;
        let recovery = recover(&app);
        gate.reached().await;
        let midst = Midst::of(&app.database, word).await;
        let sent = soon(app.send(github("d1101", "{}"))).await;
        assert_eq!(sent, answer(200, "accepted", ""), "{word:?}");
        gate.open();
        app.database.until(&due_after("30 minutes")).await;
        assert_eq!(midst.goes_on().await, (MANY - 1, 0), "{word:?}");
        assert_eq!(state_of(&app.database, "d1101").await, "due", "{word:?}");

        app.database.run(is_due).await;
        gate.reached().await;
        gate.open();
        app.database
            .until("(select count(*) from effects) = 1")
            .await;
        recovery.stop().await;
        assert_rows!(app.database, claims: 1, effects: 1, "{word:?}");
        // The next operation includes deliveries that came before it started.
        let all = soon(word.of_all(&endpoint(&app))).await.unwrap();
        assert_eq!(all.running, 0, "{word:?}");
        assert_eq!(state_of(&app.database, "d1101").await, "gone", "{word:?}");
    }
}

/// A process has taken the delivery, and the attempt has not claimed it yet. A copy from the provider is noted in
/// another table, so it does not wait for the locked row.
#[tokio::test(flavor = "multi_thread")]
async fn r13_what_the_provider_sends_again_while_an_operation_commits_is_kept() {
    let held = [
        // After its last check, a discard waits for the first of these locks, and an erasure waits for the second.
        (
            Word::Discard,
            "insert into idempotent_webhook.discarded (endpoint, delivery_id) values ('test', 'd0002')",
        ),
        (
            Word::Erase,
            "select from idempotent_webhook.kept_requests where delivery_id = 'd0002' for update",
        ),
    ];
    for (word, holds) in held {
        let app = keeping_by(keep_accepted, write_effect).await;
        insert(&app.database, "due", 3).await;
        app.database.insert_process().await;
        app.database
            .run("update idempotent_webhook.kept_deliveries set taken_by = 1")
            .await;
        let held = another(&app.database, holds).await;
        let of = patient(&app.database).await;
        let word_of_all = tokio::spawn(async move { word.of_all(&of).await });
        app.database.until(ONE_WAITS_FOR_A_LOCK).await;
        let router = app.router.clone();
        let sending = tokio::spawn(async move { send(&router, github("d0002", "{}")).await });
        // The copy may also be answered without waiting.
        let is_answered = async {
            while !sending.is_finished() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = is_answered => {}
            () = app.database.until(TWO_WAIT_FOR_A_LOCK) => {}
        }
        held.rollback().await.unwrap();
        let changes = soon(word_of_all).await.unwrap().unwrap();
        assert_eq!(numbers(&changes), (3, 0), "{word:?}");
        let sent = soon(sending).await.unwrap();
        assert_eq!(sent, answer(200, "accepted", ""), "{word:?}");
        assert_eq!(state_of(&app.database, "d0002").await, "due", "{word:?}");
        let recovery = recover(&app);
        app.database
            .until("(select count(*) from effects) = 1")
            .await;
        recovery.stop().await;
        assert_rows!(app.database, claims: 1, effects: 1, "{word:?}");
    }
}

/// A request for a known delivery notes that a copy came. An operation delays these notes only for its own endpoint.
#[tokio::test(flavor = "multi_thread")]
async fn r13_what_the_provider_sends_again_does_not_wait_for_an_operation_on_another_endpoint() {
    let app = keeping_by(keep_accepted, write_effect).await;
    insert(&app.database, "dead", 3).await;
    insert_due_of(&app.database, "another", "/", 1).await;
    let held = another(
        &app.database,
        "select from idempotent_webhook.kept_requests where delivery_id = 'd0002' for update",
    )
    .await;
    let of = patient(&app.database).await;
    let erasing = tokio::spawn(async move { Word::Erase.of_all(&of).await });
    // The operation waits here after it has taken all its other locks.
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;

    let pool = app.database.another_pool(5).await;
    let recovery = recovery(&pool);
    let layer = IdempotentWebhook::new(pool, "another", presets::github(secret()))
        .keep(keep_accepted(&recovery));
    let router = Router::new().route("/", post(write_effect).layer(layer));
    let sent = soon(send(&router, github("due-1", "{}"))).await;
    assert_eq!(sent, answer(200, "accepted", ""));
    let noted: Vec<(String, String)> =
        sqlx::query_as("select endpoint, delivery_id from idempotent_webhook.sent_again")
            .fetch_all(&app.database.pool)
            .await
            .unwrap();
    assert_eq!(noted, [("another".to_owned(), "due-1".to_owned())]);
    assert!(!erasing.is_finished());

    held.rollback().await.unwrap();
    let changes = soon(erasing).await.unwrap().unwrap();
    assert_eq!(numbers(&changes), (3, 0));
    assert_eq!(state_of(&app.database, "d0002").await, "recorded");
    let recovery = recovery.spawn(router);
    app.database
        .until("(select count(*) from effects) = 1")
        .await;
    recovery.stop().await;
    assert_eq!(state_of(&app.database, "due-1").await, "gone");
    assert_rows!(app.database, claims: 1, effects: 1);
}

/// A request that fails and is kept also counts as a request that came during the operation.
#[tokio::test(flavor = "multi_thread")]
async fn r13_what_fails_for_the_provider_during_an_operation_is_kept() {
    for word in [Word::Discard, Word::Erase] {
        let app = TestApp::keeping(|keep| keep, Failing::times(9).handler()).await;
        insert(&app.database, "dead", MANY).await;
        let midst = Midst::of(&app.database, word).await;
        for id in ["d0001", "d1101"] {
            let sent = soon(app.send(github(id, "{}"))).await;
            // `d1101` is still dead, so its failure does not make it run again.
            let outcome = if id == "d0001" { "kept" } else { "failed" };
            assert_eq!(sent.outcome, outcome, "{word:?} {id}");
        }
        assert_eq!(midst.goes_on().await, (MANY - 1, 0), "{word:?}");
        assert_eq!(state_of(&app.database, "d0001").await, "due", "{word:?}");
        assert_eq!(state_of(&app.database, "d1101").await, "dead", "{word:?}");
        assert_rows!(app.database, claims: 0, effects: 0);
    }
}

/// The endpoint is paused, so the provider adds deliveries and none is removed. The operation still ends.
#[tokio::test(flavor = "multi_thread")]
async fn r13_an_operation_ends_while_the_provider_sends() {
    let app = keeping_by(keep_accepted, write_effect).await;
    endpoint(&app).pause().await.unwrap();
    insert(&app.database, "dead", MANY).await;
    let router = app.router.clone();
    let sending = tokio::spawn(async move {
        for round in 0.. {
            let sent = send(&router, github(&format!("d{:04}", round % MANY + 1), "{}")).await;
            assert_eq!(sent.outcome, "accepted");
        }
    });
    for word in [Word::Erase, Word::Discard] {
        let changes = soon(word.of_all(&endpoint(&app))).await.unwrap();
        assert!(changes.changed <= MANY, "{word:?} {changes:?}");
    }
    sending.abort();
    assert!(sending.await.unwrap_err().is_cancelled());
    assert_rows!(app.database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_what_runs_is_left_and_counted_by_each_operation() {
    for word in Word::ALL {
        let database = Database::new().await;
        insert(&database, word.before(), MANY).await;
        let running = [run(&database, "d0002").await, run(&database, "d1200").await];
        let endpoint = patient(&database).await;
        let changes = soon(word.of_all(&endpoint)).await.unwrap();
        assert_eq!(numbers(&changes), (MANY - 2, 2), "{word:?}");
        for id in ["d0002", "d1200"] {
            assert_eq!(state_of(&database, id).await, word.before(), "{word:?}");
        }
        for running in running {
            running.rollback().await.unwrap();
        }
        let changes = soon(word.of_all(&endpoint)).await.unwrap();
        assert_eq!(numbers(&changes), (2, 0), "{word:?}");
        assert_eq!(state_of(&database, "d0002").await, word.after(), "{word:?}");
        database.until(NO_ADVISORY_LOCK).await;
    }
}

/// An attempt with a late claim holds no lock before it claims, so the operation must recognize a taken delivery by its
/// row.
#[tokio::test]
async fn r13_what_a_process_has_taken_is_running_for_a_retry() {
    let database = Database::new().await;
    insert(&database, "due", 3).await;
    database.insert_process().await;
    database
        .run(
            "update idempotent_webhook.kept_deliveries
             set taken_by = 1 where delivery_id = 'd0001';
             update idempotent_webhook.kept_deliveries
             set taken_by = 2 where delivery_id = 'd0002'",
        )
        .await;
    let endpoint = patient(&database).await;
    let changes = endpoint.retry_all(&Filter::new()).await.unwrap();
    // The process of the second delivery is gone, and the third delivery is already due.
    assert_eq!(numbers(&changes), (1, 1));
    assert_eq!(endpoint.retry("d0001").await.unwrap(), Retried::Unchanged);
    let taken = "(select array_agg(delivery_id) from idempotent_webhook.kept_deliveries
         where taken_by is not null) = array['d0001']";
    database.until(taken).await;
}

/// An operation or retention holds the row, and no attempt is running. If the operation skipped such rows, it would
/// report zero deliveries, as if there were none.
#[tokio::test(flavor = "multi_thread")]
async fn r13_what_another_operation_holds_is_waited_for() {
    let of_dead = [Word::Retry, Word::Discard, Word::Erase];
    let of_processed = [Word::Reprocess, Word::Erase];
    for (state, words) in [("dead", &of_dead[..]), ("processed", &of_processed)] {
        for (&word, &other) in words
            .iter()
            .flat_map(|word| words.iter().map(move |other| (word, other)))
        {
            let database = Database::new().await;
            insert(&database, state, MANY).await;
            let midst = Midst::of(&database, other).await;
            let endpoint = patient(&database).await;
            let waiting = tokio::spawn(async move { word.of_all(&endpoint).await });
            database.until(TWO_WAIT_FOR_A_LOCK).await;
            // The other operation is cancelled.
            midst.word.abort();
            assert!(midst.word.await.unwrap_err().is_cancelled());
            midst.held.rollback().await.unwrap();
            // How many deliveries this operation can no longer change, because the first batch of the cancelled
            // operation has changed them.
            let done = match (word, other) {
                (Word::Erase, Word::Retry | Word::Reprocess) => 0,
                (Word::Discard, Word::Retry | Word::Erase) => 0,
                _ => 500,
            };
            let changes = soon(waiting).await.unwrap().unwrap();
            let expected = (MANY - done, 0);
            assert_eq!(numbers(&changes), expected, "{word:?} beside {other:?}");
            assert_ne!(state_of(&database, "d0900").await, state);
        }
    }
}

/// The deliveries came before the erasure started, so they are erased even if they change state in the meantime.
#[tokio::test(flavor = "multi_thread")]
async fn r13_what_fails_or_is_processed_during_an_erasure_is_erased() {
    let database = Database::new().await;
    insert(&database, "dead", MANY).await;
    let midst = Midst::of(&database, Word::Erase).await;
    database
        .run(
            "update idempotent_webhook.kept_deliveries
             set state = 'due', next_attempt_at = now() + interval '1 hour', last_failed_at = now()
             where delivery_id between 'd1101' and 'd1150';
             update idempotent_webhook.kept_deliveries
             set state = 'processed', processed_at = now(), archived_until = now() + interval '1 day'
             where delivery_id between 'd1151' and 'd1200'",
        )
        .await;
    assert_eq!(midst.goes_on().await, (MANY, 0));
    let erased = "not exists (select from idempotent_webhook.kept_requests)";
    database.until(erased).await;
    assert_eq!(state_of(&database, "d1101").await, "recorded");
    assert_eq!(state_of(&database, "d1151").await, "gone");
}

/// The time of a processed delivery comes from its transaction, which may have started before the operation.
#[tokio::test(flavor = "multi_thread")]
async fn r13_a_reprocess_of_many_takes_each_once() {
    let database = Database::new().await;
    insert(&database, "processed", MANY).await;
    let midst = Midst::of(&database, Word::Reprocess).await;
    database
        .run(
            "insert into idempotent_webhook.deliveries (endpoint, delivery_id) values ('test', 'd0001');
             update idempotent_webhook.kept_deliveries
             set state = 'processed', processed_at = now() - interval '30 minutes',
                 archived_until = now() + interval '1 day'
             where delivery_id = 'd0001'",
        )
        .await;
    assert_eq!(midst.goes_on().await, (MANY, 0));
    assert_eq!(state_of(&database, "d0001").await, "processed");
    assert_rows!(database, claims: 1, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_an_operation_waits_within_the_limit_of_the_pool_or_its_own() {
    // If the pool sets no limit, the operation's own limit of two seconds applies.
    for lock_timeout in ["50ms", "0"] {
        for word in Word::ALL {
            let database = Database::new().await;
            insert(&database, word.before(), 3).await;
            let held = hold(&database, "d0002").await;
            let endpoint = impatient(&database, lock_timeout).await;
            for error in [
                soon(word.of_all(&endpoint)).await.map(drop).unwrap_err(),
                soon(word.of_one(&endpoint, "d0002"))
                    .await
                    .map(drop)
                    .unwrap_err(),
            ] {
                let code = error.as_database_error().and_then(|error| error.code());
                assert_eq!(code.as_deref(), Some("55P03"), "{word:?}");
            }
            assert!(soon(word.of_one(&endpoint, "d0001")).await.unwrap());
            held.rollback().await.unwrap();
            assert_eq!(state_of(&database, "d0002").await, word.before());
            let changes = soon(word.of_all(&endpoint)).await.unwrap();
            assert_eq!(numbers(&changes), (2, 0), "{word:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_a_forget_waits_within_the_limit_of_the_pool() {
    let database = Database::new().await;
    insert(&database, "processed", 1).await;
    let held = hold(&database, "d0001").await;
    let endpoint = impatient(&database, "50ms").await;
    let error = soon(endpoint.forget("d0001")).await.unwrap_err();
    let code = error.as_database_error().and_then(|error| error.code());
    assert_eq!(code.as_deref(), Some("55P03"));
    held.rollback().await.unwrap();
    assert!(endpoint.forget("d0001").await.unwrap());
    assert!(!endpoint.forget("d0001").await.unwrap());
    assert_rows!(database, claims: 0, effects: 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_an_operation_that_is_dropped_in_the_midst_has_changed_its_finished_batches() {
    for word in Word::ALL {
        let database = Database::new().await;
        insert(&database, word.before(), MANY).await;
        let midst = Midst::of(&database, word).await;
        midst.word.abort();
        assert!(midst.word.await.unwrap_err().is_cancelled());
        midst.held.rollback().await.unwrap();
        // Postgres has noticed that the operation was cancelled.
        database.until(NO_ADVISORY_LOCK).await;
        assert_eq!(state_of(&database, "d0500").await, word.after(), "{word:?}");
        assert_eq!(
            state_of(&database, "d0501").await,
            word.before(),
            "{word:?}"
        );
        let changes = soon(word.of_all(&patient(&database).await)).await.unwrap();
        assert_eq!(numbers(&changes), (MANY - 500, 0), "{word:?}");
    }
}

const IN_PROCESS_OF_ITS_OWN: &str = "WORDS_DATABASE";

#[tokio::test]
#[ignore = "the test below runs it in a process of its own"]
async fn says_a_word_in_a_process_of_its_own() {
    let Ok(url) = std::env::var(IN_PROCESS_OF_ITS_OWN) else {
        return;
    };
    let (url, name) = url.split_once(' ').unwrap();
    let word = Word::ALL
        .into_iter()
        .find(|word| format!("{word:?}") == name);
    let pool = PgPoolOptions::new()
        .connect_with(
            url.parse::<PgConnectOptions>()
                .unwrap()
                .options([("lock_timeout", "1min")]),
        )
        .await
        .unwrap();
    word.unwrap()
        .of_all(&Endpoint::new(pool, "test"))
        .await
        .unwrap();
}

/// The process is killed by SIGKILL, once while it waits for a row of its second batch, and once while it commits this
/// batch.
#[tokio::test(flavor = "multi_thread")]
async fn r13_an_operation_whose_process_is_killed_has_changed_each_delivery_or_has_not() {
    for (word, commits) in Word::ALL
        .into_iter()
        .flat_map(|word| [(word, false), (word, true)])
    {
        let database = Database::new().await;
        insert(&database, word.before(), MANY).await;
        let held = match commits {
            false => hold(&database, "d0700").await,
            true => {
                database
                    .run(
                        "create function waits() returns trigger language plpgsql as
                            $$ begin perform pg_advisory_xact_lock(7); return null; end $$;
                         create constraint trigger waits after update or delete
                            on idempotent_webhook.kept_deliveries deferrable initially deferred
                            for each row when (old.delivery_id = 'd0700') execute function waits()",
                    )
                    .await;
                another(&database, "select pg_advisory_xact_lock(7)").await
            }
        };
        let (_, module) = module_path!().split_once("::").unwrap();
        let url = database.options().to_url_lossy();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact"])
            .arg(format!("{module}::says_a_word_in_a_process_of_its_own"))
            .env(IN_PROCESS_OF_ITS_OWN, format!("{url} {word:?}"))
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        database.until(ONE_WAITS_FOR_A_LOCK).await;
        process.kill().await.unwrap();
        held.rollback().await.unwrap();
        // Postgres has noticed that the process was killed.
        database.until(NO_ADVISORY_LOCK).await;
        // If the commit had been requested, Postgres completes it.
        let changed = if commits { 1000 } else { 500 };
        let states: Vec<(String, bool, bool)> = sqlx::query_as(
            "select
                coalesce(kept.state, 'gone'),
                request.delivery_id is not null,
                claim.delivery_id is not null
             from generate_series(1, $1) as n
             cross join lateral (select 'd' || lpad(n::text, 4, '0') as delivery_id) as id
             left join idempotent_webhook.kept_deliveries as kept using (delivery_id)
             left join idempotent_webhook.kept_requests as request using (delivery_id)
             left join idempotent_webhook.deliveries as claim using (delivery_id)
             order by n",
        )
        .bind(MANY.cast_signed())
        .fetch_all(&database.pool)
        .await
        .unwrap();
        let row = |state: &str| {
            (
                state.to_owned(),
                matches!(state, "dead" | "due" | "processed"),
                state == "processed",
            )
        };
        for (place, found) in states.iter().enumerate() {
            let state = if place < changed {
                word.after()
            } else {
                word.before()
            };
            assert_eq!(*found, row(state), "{word:?} {commits} {place}");
        }
        let changes = soon(word.of_all(&patient(&database).await)).await.unwrap();
        let rest = MANY - changed as u64;
        assert_eq!(numbers(&changes), (rest, 0), "{word:?} {commits}");
        assert_eq!(state_of(&database, "d1200").await, word.after(), "{word:?}");
    }
}

#[tokio::test]
async fn r13_an_operation_on_what_waits_does_not_read_the_archive() {
    const ARCHIVED: u64 = 20_000;
    for word in [Word::Retry, Word::Discard] {
        let database = Database::new().await;
        insert(&database, "dead", 30).await;
        database
            .run(&format!(
                "insert into idempotent_webhook.kept_deliveries
                     (endpoint, delivery_id, state, attempts, processed_at, archived_for, archived_until)
                 select 'test', 'p' || n, 'processed', 1, now(), interval '1 day', now() + interval '1 day'
                 from generate_series(1, {ARCHIVED}) as n"
            ))
            .await;
        database
            .run("analyze idempotent_webhook.kept_deliveries")
            .await;
        let pool = database.another_pool(1).await;
        let changes = word.of_all(&Endpoint::new(pool.clone(), "test")).await;
        assert_eq!(numbers(&changes.unwrap()), (30, 0), "{word:?}");
        // Postgres counts what a session has read when the session ends.
        pool.close().await;
        let read = "select sum(seq_tup_read + idx_tup_fetch)::int8 from pg_stat_user_tables
            where relname = 'kept_deliveries'";
        database.until(&format!("60 <= ({read})")).await;
        let read: i64 = sqlx::query_scalar(read)
            .fetch_one(&database.pool)
            .await
            .unwrap();
        assert!(read < 1000, "{word:?} has read {read} rows");
    }
}

/// The role lacks the right to delete from a table.
#[tokio::test(flavor = "multi_thread")]
async fn r13_an_operation_without_the_right_to_delete_says_so_and_changes_nothing() {
    for word in [Word::Discard, Word::Erase, Word::Reprocess] {
        let database = Database::new().await;
        insert(&database, word.before(), 3).await;
        let role = format!("operating_{}", database.name);
        database
            .run(&format!(
                "create role {role} login;
                 grant usage on schema idempotent_webhook to {role};
                 grant select, insert, update on all tables in schema idempotent_webhook to {role}"
            ))
            .await;
        let pool = PgPool::connect_lazy_with(database.options().username(&role));
        let of = Endpoint::new(pool.clone(), "test");
        let errors = [
            soon(word.of_all(&of)).await.map(drop).unwrap_err(),
            soon(word.of_one(&of, "d0002")).await.map(drop).unwrap_err(),
        ];
        for error in errors {
            let error = error.as_database_error().unwrap();
            assert_eq!(error.code().as_deref(), Some("42501"), "{word:?}");
            assert!(
                error.message().starts_with("permission denied for table"),
                "{error}"
            );
        }
        for id in ["d0001", "d0002", "d0003"] {
            assert_eq!(state_of(&database, id).await, word.before(), "{word:?}");
        }
        database
            .until(
                "3 = (select count(*) from idempotent_webhook.kept_requests)
                 and not exists (select from idempotent_webhook.discarded)",
            )
            .await;
        let all = soon(word.of_all(&patient(&database).await)).await.unwrap();
        assert_eq!(numbers(&all), (3, 0), "{word:?}");
        pool.close().await;
        database
            .run(&format!("drop owned by {role}; drop role {role}"))
            .await;
    }
}

/// The operation's process is frozen, or its host is lost, so Postgres must end the transaction by itself.
#[tokio::test]
async fn r13_an_operation_holds_nothing_for_longer_than_postgres_is_told() {
    let database = Database::new().await;
    let pool = database.another_pool(1).await;
    let operation = include_str!("../../../src/recovery/operator/operation.rs");
    let (_, settings) = operation.split_once("begin_own!(),\n    \";").unwrap();
    let (settings, _) = settings.split_once('"').unwrap();
    for (set, expected) in [("0", ("2s", "10s")), ("7s", ("7s", "7s"))] {
        let mut connection = pool.acquire().await.unwrap();
        let sql = format!(
            "set lock_timeout = '{set}'; set idle_in_transaction_session_timeout = '{set}'; begin; {settings}"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
            .execute(&mut *connection)
            .await
            .unwrap();
        let settings: (String, String) = sqlx::query_as(
            "select current_setting('lock_timeout'),
                current_setting('idle_in_transaction_session_timeout')",
        )
        .fetch_one(&mut *connection)
        .await
        .unwrap();
        assert_eq!((&*settings.0, &*settings.1), expected);
        sqlx::raw_sql("rollback")
            .execute(&mut *connection)
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_operations_beside_recovery_and_retention_lose_nothing_and_count_truly() {
    let set = |keep: Keep| keep.retry_delays([]);
    let app = TestApp::keeping(set, write_effect).await;
    app.database.has_window("test", "3 days").await;
    insert(&app.database, "dead", MANY).await;
    app.database
        .run(
            "update idempotent_webhook.kept_deliveries set last_failed_at = now() - interval '1 year'
             where delivery_id > 'd1100'",
        )
        .await;
    let recovery = recover(&app);
    let of = endpoint(&app);
    let all = Filter::new();
    let month = Duration::from_secs(30 * 24 * 60 * 60);
    let (retried, discarded, pruned) = tokio::join!(
        soon(of.retry_all(&all)),
        soon(of.discard_all(&all)),
        soon(prune(&app.database.pool, month)),
    );
    let (retried, discarded) = (retried.unwrap(), discarded.unwrap());
    pruned.unwrap();
    app.database
        .until(
            "not exists (
                select from idempotent_webhook.kept_deliveries where state <> 'recorded'
            )",
        )
        .await;
    recovery.stop().await;
    let processed = app.database.rows().await.effects.unsigned_abs();
    assert!(processed <= retried.changed, "{processed} {retried:?}");
    assert!(
        processed + discarded.changed <= MANY,
        "{processed} {discarded:?}"
    );
    assert!(
        processed + discarded.changed >= MANY - 100,
        "{processed} {discarded:?}"
    );
    let processed = processed.cast_signed();
    assert_rows!(app.database, claims: processed, effects: processed);
}

/// The operation checks a filter by state again when it gets to a delivery, so only deliveries that are still in this
/// state are changed.
#[tokio::test(flavor = "multi_thread")]
async fn r13_a_filter_is_asked_again_after_a_wait() {
    let database = Database::new().await;
    insert(&database, "dead", 3).await;
    let retrying = another(
        &database,
        "update idempotent_webhook.kept_deliveries set state = 'due', next_attempt_at = now()
         where delivery_id = 'd0002'",
    )
    .await;
    let of = patient(&database).await;
    let discarding =
        tokio::spawn(async move { of.discard_all(&Filter::new().state(KeptState::Dead)).await });
    database.until(ONE_WAITS_FOR_A_LOCK).await;
    retrying.commit().await.unwrap();
    let changes = soon(discarding).await.unwrap().unwrap();
    assert_eq!(numbers(&changes), (2, 0));
    assert_eq!(state_of(&database, "d0002").await, "due");
}
