//! R15: deliveries that are accepted at the same time share a transaction, and nothing else.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::post;
use idempotent_webhook::recovery::Filter;
use idempotent_webhook::{
    DedupeTx, Delivery, Endpoint, IdempotentWebhook, Provider, Secret, Secrets, TenantSecrets,
    presets,
};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Executor, PgPool};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinHandle;

use crate::recovery::{Answered, Failing, NOTHING_KEPT, endpoint, keep, kept, recover};
use crate::recovery_field::{END_WHO_WAITS_FOR_A_LOCK, ONE_WAITS_FOR_A_LOCK, lock};
use crate::support::{
    Answer, Database, SECRET, TestApp, answer, assert_rows, github, github_delivery, insert_effect,
    logged, secret, send, soon, spawn_send, until_all_wait,
};

/// How often the handler has run, by tenant and delivery id.
#[derive(Clone, Default)]
struct Runs(Arc<Mutex<BTreeMap<(String, String), u32>>>);

impl Runs {
    fn handler(&self) -> impl Fn(DedupeTx, Delivery) -> Answered + Clone + Send + Sync + 'static {
        let runs = self.0.clone();
        move |mut tx: DedupeTx, delivery: Delivery| -> Answered {
            let tenant = delivery.tenant().unwrap_or_default().to_owned();
            let key = (tenant, delivery.id().to_string());
            *runs.lock().unwrap().entry(key).or_default() += 1;
            Box::pin(async move {
                insert_effect(&mut tx, &delivery).await?;
                Ok(StatusCode::OK)
            })
        }
    }

    fn of(&self, id: &str) -> u32 {
        let runs = self.0.lock().unwrap();
        let of_id = runs.iter().filter(|((_, of), _)| of == id);
        of_id.map(|(_, runs)| runs).sum()
    }
}

fn accept(layer: IdempotentWebhook) -> IdempotentWebhook {
    // Far more than it takes, however busy the machine is.
    let layer = layer.database_timeout(Duration::from_secs(20));
    keep(layer).accept_first()
}

/// The tenant is the query of the URI.
fn of_tenants() -> Provider {
    let tenant = |head: &Parts| head.uri.query().map(str::to_owned);
    let secrets = TenantSecrets::new(tenant, |_| async {
        Ok(Some(Secrets::new(Secret::new(SECRET)?)))
    });
    presets::github(secrets.separate_ids())
}

/// Sends, and waits until one transaction waits for a lock and all other deliveries for it.
async fn send_in_one_group(
    app: &TestApp,
    requests: Vec<axum::http::Request<axum::body::Body>>,
) -> Vec<JoinHandle<Answer>> {
    let before = spawn_send(&app.router, github_delivery().id("before").request());
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    let mut sent = vec![before];
    sent.extend(
        requests
            .into_iter()
            .map(|request| spawn_send(&app.router, request)),
    );
    until_all_wait().await;
    sent
}

async fn outcomes(sent: Vec<JoinHandle<Answer>>) -> Vec<(u16, String)> {
    let mut outcomes = Vec::new();
    for sent in sent {
        let answered = soon(sent).await.unwrap();
        outcomes.push((answered.status, answered.outcome));
    }
    outcomes
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_many_that_are_accepted_at_once_are_each_kept_and_run_once() {
    accept_many_at_once(None).await;
}

/// In which a statement fails that meets a row of another transaction.
#[tokio::test(flavor = "multi_thread")]
async fn r15_the_same_where_repeatable_read_is_the_default() {
    accept_many_at_once(Some(
        "do $$ begin
            execute format(
                'alter database %I set default_transaction_isolation = ''repeatable read''',
                current_database()
            );
        end $$",
    ))
    .await;
}

async fn accept_many_at_once(setting: Option<&'static str>) {
    const IDS: u32 = 30;
    let runs = Runs::default();
    let app = TestApp::with(of_tenants(), accept, runs.handler()).await;
    if let Some(setting) = setting {
        app.database.run(setting).await;
    }
    let elsewhere = {
        let pool = app.database.another_pool(5).await;
        let layer = accept(IdempotentWebhook::new(pool, "test", of_tenants()));
        Router::new().route("/", post(runs.handler()).layer(layer))
    };
    let routers = [&app.router, &elsewhere];
    let mut sent = Vec::new();
    for id in 0..IDS {
        for tenant in ["acme", "globex"] {
            for copy in 0..4 {
                let request = github_delivery()
                    .id(format!("id-{id}"))
                    .uri(&format!("/?{tenant}"))
                    .body(vec![b' '; 30_000]);
                sent.push(spawn_send(routers[copy % 2], request.request()));
            }
        }
    }
    for (status, outcome) in outcomes(sent).await {
        let is_there = ["accepted", "duplicate"].contains(&&*outcome);
        assert!(status == 200 && is_there, "{status} {outcome}");
    }
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 60, effects: 60);
    let runs = runs.0.lock().unwrap().clone();
    assert_eq!(runs.len(), 60);
    assert!(runs.values().all(|runs| *runs == 1), "{runs:?}");
}

/// Whoever accepts keeps the only connection while there is always another delivery.
#[tokio::test(flavor = "multi_thread")]
async fn r15_a_stream_of_deliveries_leaves_the_connections_to_the_handlers() {
    let runs = Runs::default();
    let app = TestApp::github_with(accept, runs.handler()).await;
    let only_one = accept(IdempotentWebhook::new(
        app.database.another_pool(1).await,
        "test",
        presets::github(Secret::new(SECRET).unwrap()),
    ));
    let router = Router::new().route("/", post(runs.handler()).layer(only_one));
    let senders: Vec<_> = (0..16)
        .map(|sender| {
            let router = router.clone();
            tokio::spawn(async move {
                for number in 0.. {
                    let id = format!("{sender}-{number}");
                    let _ = send(&router, github(&id, "{}")).await;
                }
            })
        })
        .collect();
    app.database
        .until("(select count(*) from idempotent_webhook.deliveries) >= 3")
        .await;
    for sender in senders {
        sender.abort();
    }
}

/// Each connection gets notifications, as after a handler that has listened.
#[tokio::test(flavor = "multi_thread")]
async fn r15_notifications_do_not_fail_what_is_accepted() {
    let runs = Runs::default();
    let app = TestApp::github_with(accept, runs.handler()).await;
    let listening = PgPoolOptions::new()
        .max_connections(5)
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute("listen orders").await.map(drop) })
        })
        .connect_lazy_with(app.database.options().await);
    let layer = accept(IdempotentWebhook::new(
        listening,
        "test",
        presets::github(Secret::new(SECRET).unwrap()),
    ));
    let router = Router::new().route("/", post(runs.handler()).layer(layer));
    let notifying = tokio::spawn({
        let pool = app.database.another_pool(1).await;
        async move {
            loop {
                sqlx::query("notify orders").execute(&pool).await.unwrap();
            }
        }
    });
    let mut senders = Vec::new();
    for sender in 0..4 {
        let router = router.clone();
        senders.push(tokio::spawn(async move {
            for number in 0..25 {
                let id = format!("{sender}-{number}");
                assert_eq!(
                    send(&router, github(&id, "{}")).await,
                    answer(200, "accepted", "")
                );
            }
        }));
    }
    for sender in senders {
        sender.await.unwrap();
    }
    notifying.abort();
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 100, effects: 100);
}

/// That of the last group is kept for the next one, which does not find out before it is written.
#[tokio::test]
async fn r15_a_kept_connection_that_is_lost_fails_nothing() {
    let runs = Runs::default();
    let app = TestApp::github_with(accept, runs.handler()).await;
    app.database
        .run(
            "create function wait() returns trigger language plpgsql as $$
             begin
                if new.uri = '/?slow' then perform pg_advisory_xact_lock_shared(1); end if;
                return new;
             end $$;
             create trigger wait before insert on idempotent_webhook.kept_requests
                for each row execute function wait()",
        )
        .await;
    assert_eq!(app.send(github("first", "{}")).await.outcome, "accepted");
    app.database.until(NOTHING_KEPT).await;

    let mut slow = app.database.another_pool(1).await.begin().await.unwrap();
    slow.execute("select pg_advisory_xact_lock(1)")
        .await
        .unwrap();
    let locked = lock(&app.database, "kept_deliveries").await;
    let group = ["a", "b"].map(|id| github_delivery().id(id).uri("/?slow").request());
    let sent = send_in_one_group(&app, group.into()).await;
    drop(locked);
    let waits = "exists (select from pg_locks where locktype = 'advisory' and not granted)";
    app.database.until(waits).await;
    app.database.run(END_WHO_WAITS_FOR_A_LOCK).await;
    app.database.until(waits).await;
    drop(slow);
    assert_eq!(outcomes(sent).await, vec![(200, "accepted".to_owned()); 3]);
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 4, effects: 4);
}

#[tokio::test]
async fn r15_a_delivery_that_postgres_refuses_does_not_fail_the_others() {
    let runs = Runs::default();
    let app = TestApp::github_with(accept, runs.handler()).await;
    // As a database with another encoding refuses what it cannot hold.
    app.database
        .run("alter table idempotent_webhook.kept_requests add check (uri <> '/?refused')")
        .await;
    // Also for the quota, which is then known for some seconds.
    assert_eq!(app.send(github("first", "{}")).await.outcome, "accepted");
    app.database.until(NOTHING_KEPT).await;

    let locked = lock(&app.database, "kept_deliveries").await;
    let group = ["a", "b", "refused", "c", "d", "refused"].map(|id| {
        let uri = if id == "refused" { "/?refused" } else { "/" };
        github_delivery().id(id).uri(uri).request()
    });
    let sent = send_in_one_group(&app, group.into()).await;
    drop(locked);
    let accepted = (200, "accepted".to_owned());
    let refused = (503, "failed".to_owned());
    let [a, r] = [accepted, refused];
    assert_eq!(
        outcomes(sent).await[1..],
        [a.clone(), a.clone(), r.clone(), a.clone(), a, r]
    );
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    for id in ["a", "b", "c", "d"] {
        assert_eq!(runs.of(id), 1, "{id}");
    }
    assert_eq!(runs.of("refused"), 0);
    let effects = 5 + i64::from(runs.of("before"));
    assert_rows!(app.database, claims: effects, effects: effects);
}

#[tokio::test]
async fn r15_in_one_group_each_delivery_has_the_outcome_of_its_state() {
    let runs = Runs::default();
    let app = TestApp::github_with(accept, runs.handler()).await;
    let processed = app.send(github("processed", "{}")).await;
    assert_eq!(processed, answer(200, "accepted", ""));
    app.database.until(NOTHING_KEPT).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, retries, next_attempt_at, running_until)
             values
                 ('test', 'due', 'due', 1, 0, now() + interval '1 hour', null),
                 ('test', 'running', 'due', 2, 1, now() + interval '1 hour',
                  now() + interval '1 hour'),
                 ('test', 'dead', 'dead', 4, 3, null, null),
                 ('test', 'recorded', 'recorded', 7, 0, null, null);
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             select 'test', delivery_id, 1, 'POST', '/', '', 'first'
             from idempotent_webhook.kept_deliveries where delivery_id <> 'recorded'",
        )
        .await;
    // Nothing begins, so that what is written can be looked at.
    endpoint(&app).pause().await.unwrap();
    let locked = lock(&app.database, "kept_deliveries").await;
    let ids = ["processed", "due", "running", "dead", "recorded", "new"];
    let group = [ids, ids].concat();
    let group = group.iter().map(|id| github(id, "second")).collect();
    let sent = send_in_one_group(&app, group).await;
    drop(locked);
    let outcomes = outcomes(sent).await;
    for (id, of_id) in ids.iter().chain(&ids).zip(&outcomes[1..]) {
        let expected = match *id {
            "processed" => "duplicate",
            _ => "accepted",
        };
        assert_eq!(*of_id, (200, expected.to_owned()), "{id}");
    }
    type Row = (String, String, i32, i32, bool, bool, String);
    let rows: Vec<Row> = sqlx::query_as(
        "select delivery_id, state, attempts, retries, next_attempt_at <= now(),
             running_until is not null, convert_from(body, 'utf8')
         from idempotent_webhook.kept_deliveries
         join idempotent_webhook.kept_requests using (endpoint, tenant, delivery_id)
         where delivery_id <> 'before'
         order by delivery_id",
    )
    .fetch_all(&app.database.pool)
    .await
    .unwrap();
    let row = |id: &str, attempts, retries, is_due, is_running, body: &str| -> Row {
        let (id, body) = (id.to_owned(), body.to_owned());
        (
            id,
            "due".to_owned(),
            attempts,
            retries,
            is_due,
            is_running,
            body,
        )
    };
    assert_eq!(
        rows,
        [
            row("dead", 4, 0, true, false, "first"),
            row("due", 1, 0, true, false, "first"),
            row("new", 0, 0, true, false, "second"),
            row("recorded", 7, 0, true, false, "second"),
            // Its attempt says when the next one is.
            row("running", 2, 1, false, true, "first"),
        ]
    );

    endpoint(&app).resume().await.unwrap();
    app.database
        .run("update idempotent_webhook.kept_deliveries set running_until = null, next_attempt_at = now()")
        .await;
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    for id in ids {
        assert_eq!(runs.of(id), 1, "{id}");
    }
    assert_rows!(app.database, claims: 7, effects: 7);
}

#[tokio::test]
async fn r15_two_lost_connections_fail_the_group_and_nothing_waits_afterwards() {
    let runs = Runs::default();
    let app = TestApp::github_with(accept, runs.handler()).await;
    assert_eq!(app.send(github("first", "{}")).await.outcome, "accepted");
    app.database.until(NOTHING_KEPT).await;

    let locked = lock(&app.database, "kept_deliveries").await;
    let group = (0..10)
        .map(|id| github(&format!("id-{id}"), "{}"))
        .collect();
    let sent = send_in_one_group(&app, group).await;
    // The first transaction, and then the one with the group.
    let mut sent = sent.into_iter();
    let lose_two = async || {
        for _ in 0..2 {
            app.database.until(ONE_WAITS_FOR_A_LOCK).await;
            app.database.run(END_WHO_WAITS_FOR_A_LOCK).await;
        }
    };
    lose_two().await;
    let refused = (503, "failed".to_owned());
    let first = outcomes(sent.by_ref().take(1).collect()).await;
    assert_eq!(first, std::slice::from_ref(&refused));
    lose_two().await;
    assert_eq!(outcomes(sent.collect()).await, vec![refused; 10]);
    drop(locked);
    app.database.until(NOTHING_KEPT).await;

    for id in 0..10 {
        let again = soon(app.send(github(&format!("id-{id}"), "{}"))).await;
        assert_eq!(again, answer(200, "accepted", ""));
    }
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 11, effects: 11);
}

#[tokio::test]
async fn r15_an_exhausted_pool_is_a_503_and_nothing_waits_afterwards() {
    let set = |layer| accept(layer).database_timeout(Duration::from_millis(1500));
    let runs = Runs::default();
    let app = TestApp::github_with(set, runs.handler()).await;
    // With and without the quota being known.
    for round in 0..2 {
        let mut taken = Vec::new();
        for _ in 0..5 {
            taken.push(app.database.pool.acquire().await.unwrap());
        }
        let sent = (0..20).map(|id| spawn_send(&app.router, github(&format!("id-{id}"), "{}")));
        let refused = (503, "failed".to_owned());
        assert_eq!(outcomes(sent.collect()).await, vec![refused; 20], "{round}");
        drop(taken);
        let sent = (0..20).map(|id| {
            let request = github(&format!("of-{round}-{id}"), "{}");
            spawn_send(&app.router, request)
        });
        let accepted = (200, "accepted".to_owned());
        assert_eq!(
            outcomes(sent.collect()).await,
            vec![accepted; 20],
            "{round}"
        );
        // Nothing may be running when the pool is exhausted again.
        let recovery = recover(&app);
        app.database.until(NOTHING_KEPT).await;
        recovery.stop().await;
    }
    assert_rows!(app.database, claims: 40, effects: 40);
}

/// By number, and by size.
#[tokio::test]
async fn r15_more_than_one_group_at_once_is_accepted() {
    let runs = Runs::default();
    let app = TestApp::github_with(accept, runs.handler()).await;
    assert_eq!(app.send(github("first", "{}")).await.outcome, "accepted");
    app.database.until(NOTHING_KEPT).await;
    let locked = lock(&app.database, "kept_deliveries").await;
    let group = (0..150).map(|id| github(&format!("id-{id}"), vec![b' '; 20_000]));
    let sent = send_in_one_group(&app, group.collect()).await;
    drop(locked);
    let accepted = (200, "accepted".to_owned());
    assert_eq!(outcomes(sent).await, vec![accepted; 151]);
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 152, effects: 152);
}

#[tokio::test]
async fn r15_the_same_id_of_another_tenant_is_another_delivery() {
    let runs = Runs::default();
    let app = TestApp::with(of_tenants(), accept, runs.handler()).await;
    for tenant in ["/?acme", "/?globex"] {
        let sent = github_delivery().id("a").uri(tenant);
        assert_eq!(app.send(sent.request()).await.outcome, "accepted");
        app.database.until(NOTHING_KEPT).await;
        assert_eq!(app.send(sent.request()).await.outcome, "duplicate");
    }
    assert_eq!(runs.of("a"), 2);
    assert_rows!(app.database, claims: 2, effects: 2);
}

/// One attempt is counted, so one is made, although the second request waits for the first.
#[tokio::test]
async fn r15_copies_in_one_group_are_one_attempt() {
    let failing = Failing::times(99);
    let set = |layer| accept(layer).max_connections(50);
    let app = TestApp::github_with(set, failing.handler()).await;
    assert_eq!(app.send(github("first", "{}")).await.outcome, "accepted");
    let has_failed = "not exists (
        select from idempotent_webhook.kept_deliveries where running_until is not null
    )";
    app.database.until(has_failed).await;
    endpoint(&app).discard("first").await.unwrap();
    let locked = lock(&app.database, "kept_deliveries").await;
    let copies = (0..4).map(|_| github("a", "{}")).collect();
    let sent = send_in_one_group(&app, copies).await;
    drop(locked);
    let accepted = (200, "accepted".to_owned());
    assert_eq!(outcomes(sent).await, vec![accepted; 5]);
    app.database.until(has_failed).await;
    // Those that wait in this process, if there were any, would have begun.
    app.settled().await;
    assert_eq!(failing.attempts(), [1, 1, 1], "one of each delivery");
    assert_rows!(app.database, claims: 0, effects: 0);
}

/// Of a group, only those are written alone that may have to wait.
#[tokio::test]
async fn r15_a_row_that_is_locked_does_not_hold_up_the_others_of_a_group() {
    let runs = Runs::default();
    let app = TestApp::github_with(accept, runs.handler()).await;
    assert_eq!(app.send(github("first", "{}")).await.outcome, "accepted");
    app.database.until(NOTHING_KEPT).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, next_attempt_at)
             values ('test', 'waiting', 'due', 1, now() + interval '1 hour'),
                 ('test', 'dead', 'dead', 1, null);
             insert into idempotent_webhook.kept_requests
                 (endpoint, delivery_id, format, method, uri, headers, body)
             select 'test', delivery_id, 1, 'POST', '/', '', '{}'
             from idempotent_webhook.kept_deliveries",
        )
        .await;
    let mut rows = app.database.another_pool(1).await.begin().await.unwrap();
    rows.execute("select from idempotent_webhook.kept_deliveries for update")
        .await
        .unwrap();
    let locked = lock(&app.database, "kept_deliveries").await;
    let group = ["new", "waiting", "dead"].map(|id| github(id, "{}"));
    let mut sent = send_in_one_group(&app, group.into()).await;
    drop(locked);
    let accepted = (200, "accepted".to_owned());
    let dead = sent.pop().unwrap();
    assert_eq!(outcomes(sent).await, vec![accepted.clone(); 3]);
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    for _ in 0..100 {
        if runs.of("new") == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(runs.of("new"), 1);
    assert!(!dead.is_finished());
    drop(rows);
    assert_eq!(outcomes(vec![dead]).await[0], accepted);
}

/// Those that have to wait wait apart, also if they come alone.
#[tokio::test(flavor = "multi_thread")]
async fn r15_what_waits_for_a_row_does_not_hold_up_what_comes_later() {
    let runs = Runs::default();
    let app = TestApp::github_with(accept, runs.handler()).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_deliveries (endpoint, delivery_id, state, attempts)
             values ('test', 'dead-1', 'dead', 1), ('test', 'dead-2', 'dead', 1)",
        )
        .await;
    let mut rows = app.database.another_pool(1).await.begin().await.unwrap();
    rows.execute("select from idempotent_webhook.kept_deliveries for update")
        .await
        .unwrap();
    let mut waiting = Vec::new();
    for (dead, fresh) in [("dead-1", "a"), ("dead-2", "b")] {
        waiting.push(spawn_send(&app.router, github(dead, "{}")));
        app.database.until(ONE_WAITS_FOR_A_LOCK).await;
        let fresh = soon(app.send(github(fresh, "{}"))).await;
        assert_eq!(fresh, answer(200, "accepted", ""));
    }
    assert!(waiting.iter().all(|dead| !dead.is_finished()));
    drop(rows);
    let accepted = (200, "accepted".to_owned());
    assert_eq!(outcomes(waiting).await, vec![accepted; 2]);
    // Those that waited had all the places of the background.
    let recovery = recover(&app);
    app.database.until(NOTHING_KEPT).await;
    recovery.stop().await;
    assert_rows!(app.database, claims: 4, effects: 4);
}

/// A server over TCP that hangs up once, in place of the answer to the commit of what is kept.
async fn without_an_answer(database: &Database) -> PgConnectOptions {
    let options = database.options().await;
    let socket = options.get_socket().unwrap().join(".s.PGSQL.5432");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let hangs_up = Arc::new(AtomicBool::new(true));
    tokio::spawn(async move {
        loop {
            let client = listener.accept().await.unwrap().0;
            let server = UnixStream::connect(&socket).await.unwrap();
            tokio::spawn(relay(client, server, hangs_up.clone()));
        }
    });
    database.options_over_tcp().await.port(port)
}

async fn relay(mut client: TcpStream, mut server: UnixStream, hangs_up: Arc<AtomicBool>) {
    let (mut sent, mut answered) = (vec![0; 65536], vec![0; 65536]);
    let mut keeps = false;
    loop {
        tokio::select! {
            read = client.read(&mut sent) => {
                let Ok(length @ 1..) = read else { return };
                let message = &sent[..length];
                server.write_all(message).await.unwrap();
                let has = |text: &[u8]| message.windows(text.len()).any(|part| part == text);
                keeps |= has(b"insert into idempotent_webhook.kept_requests");
                if keeps && has(b"commit") && hangs_up.swap(false, Ordering::Relaxed) {
                    assert!(server.read(&mut answered).await.unwrap() > 0);
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                client.write_all(&answered[..length]).await.unwrap();
            }
        }
    }
}

/// Its row has a lease, and nobody else would run it before that is over.
#[tokio::test(flavor = "multi_thread")]
async fn r15_what_is_committed_although_the_answer_is_lost_runs_at_once() {
    let database = Database::new().await;
    let runs = Runs::default();
    let options = without_an_answer(&database).await;
    let pool = PgPoolOptions::new().connect_lazy_with(options);
    let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()));
    let router = Router::new().route("/", post(runs.handler()).layer(accept(layer)));
    assert_eq!(
        soon(send(&router, github("a", "{}"))).await,
        answer(200, "accepted", "")
    );
    database.until(NOTHING_KEPT).await;
    assert_eq!(runs.of("a"), 1);
    assert_rows!(database, claims: 1, effects: 1);
}

/// It has not begun, so it waits as any other.
#[tokio::test(flavor = "multi_thread")]
async fn r15_what_is_committed_although_the_answer_is_lost_waits_while_paused() {
    let database = Database::new().await;
    Endpoint::new(database.pool.clone(), "test")
        .pause()
        .await
        .unwrap();
    let runs = Runs::default();
    let options = without_an_answer(&database).await;
    let pool = PgPoolOptions::new().connect_lazy_with(options);
    let layer = IdempotentWebhook::new(pool, "test", presets::github(secret()));
    let router = Router::new().route("/", post(runs.handler()).layer(accept(layer.clone())));
    assert_eq!(
        soon(send(&router, github("a", "{}"))).await,
        answer(200, "accepted", "")
    );
    soon(layer.drained()).await;
    assert_eq!(kept(&database).await, ("due".into(), 0, 0));
    assert_eq!(runs.of("a"), 0);
    assert_rows!(database, claims: 0, effects: 0);
}

async fn insert_dead(database: &Database) {
    database
        .run(
            "insert into idempotent_webhook.kept_deliveries (endpoint, delivery_id, state, attempts)
             values ('test', 'dead', 'dead', 1)",
        )
        .await;
}

#[tokio::test]
async fn r15_one_connection_is_enough_for_one_that_is_written_alone() {
    let runs = Runs::default();
    let app = TestApp::github_with(accept, runs.handler()).await;
    let only_one = app.database.another_pool(1).await;
    let layer = IdempotentWebhook::new(only_one, "test", presets::github(secret()));
    let router = Router::new().route("/", post(runs.handler()).layer(accept(layer)));
    insert_dead(&app.database).await;
    // Also for the quota, which is then known for some seconds.
    assert_eq!(send(&router, github("first", "{}")).await.status, 200);
    let locked = lock(&app.database, "kept_deliveries").await;
    let before = spawn_send(&router, github("before", "{}"));
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    let group = ["new", "dead"].map(|id| spawn_send(&router, github(id, "{}")));
    until_all_wait().await;
    drop(locked);
    let sent = std::iter::once(before).chain(group).collect();
    assert_eq!(outcomes(sent).await, vec![(200, "accepted".to_owned()); 3]);
}

#[tokio::test]
async fn r15_two_processes_reopen_what_is_dead_at_the_same_instant() {
    let runs = Runs::default();
    let app = TestApp::github_with(accept, runs.handler()).await;
    let another = app.database.another_pool(2).await;
    let layer = IdempotentWebhook::new(another, "test", presets::github(secret()));
    let elsewhere = Router::new().route("/", post(runs.handler()).layer(accept(layer)));
    insert_dead(&app.database).await;
    let mut row = app.database.another_pool(1).await.begin().await.unwrap();
    row.execute("select from idempotent_webhook.kept_deliveries for update")
        .await
        .unwrap();
    let sent = [&app.router, &elsewhere].map(|router| spawn_send(router, github("dead", "{}")));
    let both_wait = "(
        select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'
    ) = 2";
    app.database.until(both_wait).await;
    drop(row);
    let accepted = (200, "accepted".to_owned());
    assert_eq!(outcomes(sent.into()).await, vec![accepted; 2]);
    app.database.until(NOTHING_KEPT).await;
    assert_eq!(runs.of("dead"), 1);
}

#[tokio::test]
async fn r15_a_duplicate_does_not_wait_for_whoever_changes_its_row() {
    let runs = Runs::default();
    let app = TestApp::github_with(accept, runs.handler()).await;
    app.database
        .run(
            "insert into idempotent_webhook.kept_deliveries
                 (endpoint, delivery_id, state, attempts, next_attempt_at)
             select 'test', id, 'due', 1, now() from unnest(array['a', 'b']) as id",
        )
        .await;
    let mut discarding = app.database.another_pool(1).await.begin().await.unwrap();
    discarding
        .execute("delete from idempotent_webhook.kept_deliveries")
        .await
        .unwrap();
    // Alone, and in a group.
    let again = soon(app.send(github("a", "{}"))).await;
    assert_eq!(again, answer(200, "accepted", ""));
    let locked = lock(&app.database, "kept_requests").await;
    let group = ["a", "b"].map(|id| github(id, "{}"));
    let sent = send_in_one_group(&app, group.into()).await;
    drop(locked);
    let accepted = (200, "accepted".to_owned());
    assert_eq!(outcomes(sent).await, vec![accepted; 3]);
    drop(discarding);
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_what_is_accepted_while_the_pool_is_closed_is_kept() {
    let runs = Runs::default();
    let app = TestApp::github_with(accept, runs.handler()).await;
    endpoint(&app).pause().await.unwrap();
    let pool = app.database.another_pool(5).await;
    let layer = IdempotentWebhook::new(pool.clone(), "test", presets::github(secret()));
    let router = Router::new().route("/", post(runs.handler()).layer(accept(layer)));
    let senders: Vec<_> = (0..8)
        .map(|sender| {
            let router = router.clone();
            tokio::spawn(async move {
                let mut accepted = 0;
                while send(&router, github(&format!("{sender}-{accepted}"), "{}"))
                    .await
                    .status
                    == 200
                {
                    accepted += 1;
                }
                accepted
            })
        })
        .collect();
    let many = "(select count(*) from idempotent_webhook.kept_deliveries) > 50";
    app.database.until(many).await;
    soon(pool.close()).await;
    let mut accepted = 0;
    for sender in senders {
        accepted += soon(sender).await.unwrap();
    }
    // One that was kept may have been refused, as its answer was lost.
    let kept = endpoint(&app).kept(&Filter::new(), 100_000).await.unwrap();
    assert!((accepted..=accepted + 8).contains(&kept.len()));
}

/// With a pool that does not keep prepared statements from one transaction to the next.
pub async fn accepts_in_groups(pool: PgPool) {
    let layer = IdempotentWebhook::new(pool.clone(), "groups", presets::github(secret()));
    let runs = Runs::default();
    let router = Router::new().route("/", post(runs.handler()).layer(accept(layer)));
    let endpoint = Endpoint::new(pool, "groups");
    // For nothing else to be on the connections.
    endpoint.pause().await.unwrap();
    let mut senders = Vec::new();
    for sender in 0..8 {
        let router = router.clone();
        senders.push(tokio::spawn(async move {
            for number in 0..50 {
                let id = format!("{sender}-{number}");
                let answered = send(&router, github(&id, "{}")).await;
                assert_eq!(answered, answer(200, "accepted", ""));
            }
        }));
    }
    let log = logged(async {
        for sender in senders {
            sender.await.unwrap();
        }
    })
    .await;
    assert_eq!(endpoint.kept(&Filter::new(), 500).await.unwrap().len(), 400);
    // It has learned from the first statement that was lost, and from others that were under way.
    let lost = log.matches("writing kept webhooks again").count();
    assert!((1..=4).contains(&lost), "{lost}");
}
