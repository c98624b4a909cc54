//! The background task: processes take turns, one of them compares for all, and each difference is
//! reported once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use idempotent_webhook::recovery::{EndpointChange, Problem};
use idempotent_webhook::subscriptions::{
    SourceError, StripeSubscriptions, Subscription, SubscriptionSource, Subscriptions,
    SubscriptionsTask,
};
use idempotent_webhook::{Events, IdempotentWebhook, Keep, Recovery, Secret};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use provider_apis::{Api, Hook, KEY, Refusal, at, preset};
use sqlx::PgPool;
use tokio::sync::Notify;

use super::{URL, handle};
use crate::support::{Database, logged, recovery, soon, until_logged};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

const NOT_SUBSCRIBED: &str = "charge.refunded has a handler and is not subscribed";

/// Each report consists of the problem, and whether it is over.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<(Problem, bool)>>>);

impl Told {
    fn note(&self) -> impl Fn(&EndpointChange) + Send + Sync + 'static {
        let told = self.0.clone();
        move |change| told.lock().unwrap().push((change.problem, change.is_over))
    }

    fn all(&self) -> Vec<(Problem, bool)> {
        self.0.lock().unwrap().clone()
    }
}

/// A process that runs one version of the application.
struct Process {
    layer: IdempotentWebhook,
    router: Router,
    recovery: Recovery,
    source: StripeSubscriptions,
}

impl Process {
    /// This version handles `charge.refunded`.
    fn new(pool: PgPool, api: std::net::SocketAddr, told: &Told) -> Self {
        Self::of_version(pool, api, told, "1", "charge.refunded")
    }

    fn of_version(
        pool: PgPool,
        api: std::net::SocketAddr,
        told: &Told,
        version: &str,
        handled: &str,
    ) -> Self {
        let recovery = recovery(&pool).on_change(told.note());
        let layer = IdempotentWebhook::new(pool, "test", preset("stripe"))
            .keep(Keep::failed(&recovery))
            .version(version);
        let events = Events::new().on(handled, handle).ignore_others();
        Self {
            router: Router::new().route("/", post(events.layer(layer.clone()))),
            layer,
            recovery,
            source: StripeSubscriptions::new(Secret::new(KEY).unwrap()).http(at(api)),
        }
    }

    fn spawn_at(&self, address: &str) -> SubscriptionsTask {
        Subscriptions::new(&self.layer, self.source.clone(), address)
            .unwrap()
            .every(DAY)
            .spawn()
    }

    fn spawn(&self) -> SubscriptionsTask {
        self.spawn_at(URL)
    }
}

/// Makes the next comparison and the next search for problems due.
async fn let_an_hour_pass(database: &Database) {
    database
        .run(
            "update idempotent_webhook.subscriptions set compared_at = null;
             update idempotent_webhook.turns set next_at = now() where task = 'subscription';
             update idempotent_webhook.turns set next_at = '-infinity' where task = 'problems'",
        )
        .await;
}

const COMPARED: &str =
    "exists (select from idempotent_webhook.subscriptions where compared_at is not null)";

/// Each process compares if it is its turn, and looks for problems.
async fn look(database: &Database, processes: &[Process]) {
    let tasks: Vec<_> = processes.iter().map(Process::spawn).collect();
    database.until(COMPARED).await;
    for task in tasks {
        soon(task.stop()).await;
    }
    for process in processes {
        process.recovery.run_due(&process.router).await.unwrap();
    }
}

/// Makes the process compare while the API fails, and look for problems.
async fn ask_in_vain(database: &Database, process: &Process) {
    let task = process.spawn();
    database
        .until(
            "(select process is null and next_at between now() + interval '50 minutes' and now() + interval '70 minutes'
              from idempotent_webhook.turns where task = 'subscription')",
        )
        .await;
    soon(task.stop()).await;
    process.recovery.run_due(&process.router).await.unwrap();
}

async fn rows(database: &Database) -> Vec<(String, String, String, Option<Vec<String>>)> {
    sqlx::query_as(
        "select endpoint, address, source, differences from idempotent_webhook.subscriptions",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

fn row(differences: &[&str]) -> (String, String, String, Option<Vec<String>>) {
    let differences = differences.iter().map(|&one| one.to_owned()).collect();
    (
        "test".to_owned(),
        URL.to_owned(),
        "stripe".to_owned(),
        Some(differences),
    )
}

#[tokio::test]
async fn y2_one_process_compares_for_all_and_a_difference_is_told_once() {
    let database = Database::new().await;
    let (api, address) = Api::start("stripe").await;
    api.set_hooks([Hook::new(1, URL, &["invoice.paid"])]);
    let told = Told::default();
    let mut processes = Vec::new();
    for _ in 0..2 {
        let pool = database.another_pool(3).await;
        processes.push(Process::new(pool, address, &told));
    }
    look(&database, &processes).await;
    assert_eq!(api.requests().len(), 1);
    assert_eq!(rows(&database).await, [row(&[NOT_SUBSCRIBED])]);
    let begun = (Problem::SubscriptionDiffers, false);
    assert_eq!(told.all(), [begun]);

    // The next comparison is not due yet. When it is due, the difference still exists.
    look(&database, &processes).await;
    assert_eq!(api.requests().len(), 1);
    let_an_hour_pass(&database).await;
    look(&database, &processes).await;
    assert_eq!(api.requests().len(), 2);
    assert_eq!(told.all(), [begun]);

    // The team subscribes to the type, and forgets to switch the old subscription off.
    let_an_hour_pass(&database).await;
    api.set_hooks([Hook::new(2, URL, &["charge.refunded"])]);
    look(&database, &processes).await;
    assert_eq!(rows(&database).await, [row(&[])]);
    let over = (Problem::SubscriptionDiffers, true);
    assert_eq!(told.all(), [begun, over]);
    let_an_hour_pass(&database).await;
    look(&database, &processes).await;
    assert_eq!(told.all(), [begun, over]);
    let problems: i64 = sqlx::query_scalar("select count(*) from idempotent_webhook.problems")
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert_eq!(problems, 0);
}

#[tokio::test]
async fn y2_a_hint_is_no_problem() {
    let database = Database::new().await;
    let (api, address) = Api::start("stripe").await;
    api.set_hooks([Hook::new(1, URL, &["charge.refunded", "charge.updated"])]);
    let told = Told::default();
    let processes = [Process::new(database.pool.clone(), address, &told)];
    look(&database, &processes).await;
    assert_eq!(rows(&database).await, [row(&[])]);
    assert_eq!(told.all(), []);
}

/// If the API fails, no problem starts and none ends.
#[tokio::test]
async fn y2_an_api_that_fails_changes_nothing() {
    let database = Database::new().await;
    let (api, address) = Api::start("stripe").await;
    let told = Told::default();
    let processes = [Process::new(database.pool.clone(), address, &told)];
    let begun = (Problem::SubscriptionDiffers, false);
    for (hooks, before, expected) in [
        (None, None, vec![]),
        (Some("charge.refunded"), Some(row(&[])), vec![]),
        (
            Some("invoice.paid"),
            Some(row(&[NOT_SUBSCRIBED])),
            vec![begun],
        ),
    ] {
        if let Some(event_type) = hooks {
            api.set_hooks([Hook::new(1, URL, &[event_type])]);
            let_an_hour_pass(&database).await;
            look(&database, &processes).await;
        }
        for refusal in [
            Refusal::TooMany(Some(1)),
            Refusal::TooMany(None),
            Refusal::Broken,
            Refusal::Html,
            Refusal::Malformed,
            Refusal::Echo,
        ] {
            // The hooks do not matter, because the API refuses the request.
            api.set_hooks([]);
            api.refuse(refusal);
            let_an_hour_pass(&database).await;
            let said = logged(ask_in_vain(&database, &processes[0])).await;
            assert!(said.contains("WARN") && !said.contains(KEY), "{said}");
            let mut rows = rows(&database).await;
            let expected_row = before.clone().unwrap_or_else(|| {
                let mut none = row(&[]);
                none.3 = None;
                none
            });
            assert_eq!(rows.pop(), Some(expected_row), "{refusal:?}");
            assert_eq!(told.all(), expected, "{refusal:?}");
        }
    }
}

/// With a wrong API key, for example, every comparison fails.
#[tokio::test]
async fn y2_a_provider_that_cannot_be_asked_for_a_day_is_a_problem() {
    let database = Database::new().await;
    let (api, address) = Api::start("stripe").await;
    api.set_hooks([Hook::new(1, URL, &["charge.refunded"])]);
    let told = Told::default();
    let processes = [Process::new(database.pool.clone(), address, &told)];
    let failure = async || -> Option<String> {
        sqlx::query_scalar("select failure from idempotent_webhook.subscriptions")
            .fetch_one(&database.pool)
            .await
            .unwrap()
    };
    for (hours, expected) in [
        (0, vec![]),
        (23, vec![]),
        (2, vec![(Problem::NotCompared, false)]),
    ] {
        database
            .run(&format!(
                "update idempotent_webhook.subscriptions set failed_at = failed_at - interval '{hours} hours'"
            ))
            .await;
        let_an_hour_pass(&database).await;
        api.refuse(Refusal::Broken);
        ask_in_vain(&database, &processes[0]).await;
        assert!(failure().await.unwrap().contains("500"));
        assert_eq!(told.all(), expected, "{hours} hours later");
    }
    let_an_hour_pass(&database).await;
    look(&database, &processes).await;
    assert_eq!(failure().await, None);
    assert_eq!(rows(&database).await, [row(&[])]);
    let both = [(Problem::NotCompared, false), (Problem::NotCompared, true)];
    assert_eq!(told.all(), both);
}

/// A deploy sets the address of another host, and the next deploy corrects it.
#[tokio::test]
async fn y2_what_was_found_of_an_address_ends_once_it_is_corrected() {
    let database = Database::new().await;
    let (api, address) = Api::start("stripe").await;
    api.set_hooks([Hook::new(1, URL, &["charge.refunded"])]);
    let told = Told::default();
    let processes = [Process::new(database.pool.clone(), address, &told)];
    let wrong = processes[0].spawn_at("https://example.org/webhooks");
    database.until(COMPARED).await;
    soon(wrong.stop()).await;
    let_an_hour_pass(&database).await;
    look(&database, &processes).await;
    let begun = (Problem::SubscriptionDiffers, false);
    // A process that compares the wrong address may still be running.
    assert_eq!(told.all(), [begun]);
    assert_eq!(rows(&database).await.len(), 2);

    let_an_hour_pass(&database).await;
    database
        .run(&format!(
            "update idempotent_webhook.turns set next_at = now() - interval '61 minutes'
             where task = 'subscription' and address <> '{URL}'"
        ))
        .await;
    look(&database, &processes).await;
    assert_eq!(rows(&database).await, [row(&[])]);
    let over = (Problem::SubscriptionDiffers, true);
    assert_eq!(told.all(), [begun, over]);
}

#[tokio::test]
async fn y2_what_was_found_of_a_list_ends_once_it_has_another_name() {
    let database = Database::new().await;
    let (api, address) = Api::start("stripe").await;
    api.set_hooks([Hook::new(1, URL, &["invoice.paid"])]);
    let told = Told::default();
    let processes = [Process::new(database.pool.clone(), address, &told)];
    let former = Subscriptions::new(&processes[0].layer, processes[0].source.clone(), URL)
        .unwrap()
        .named("former")
        .spawn();
    database.until(COMPARED).await;
    soon(former.stop()).await;
    api.set_hooks([Hook::new(1, URL, &["charge.refunded"])]);
    for (overdue, expected) in [(59, 2), (61, 1)] {
        database
            .run(&format!(
                "update idempotent_webhook.subscriptions set compared_at = null;
                 update idempotent_webhook.turns set next_at = now() where task = 'subscription';
                 update idempotent_webhook.turns set next_at = now() - interval '{overdue} minutes'
                 where source = 'former';
                 update idempotent_webhook.turns set next_at = '-infinity' where task = 'problems'"
            ))
            .await;
        look(&database, &processes).await;
        assert_eq!(rows(&database).await.len(), expected, "{overdue} minutes");
    }
    assert_eq!(rows(&database).await, [row(&[])]);
    let changes = [
        (Problem::SubscriptionDiffers, false),
        (Problem::SubscriptionDiffers, true),
    ];
    assert_eq!(told.all(), changes);
}

/// The new version expects other events than the old one.
#[tokio::test]
async fn y2_the_newer_of_two_versions_compares_until_it_is_rolled_back() {
    let database = Database::new().await;
    let (api, address) = Api::start("stripe").await;
    api.set_hooks([Hook::new(1, URL, &["invoice.paid"])]);
    let told = Told::default();
    let process = async |version: &str, handled: &str| {
        let pool = database.another_pool(3).await;
        Process::of_version(pool, address, &told, version, handled)
    };
    let mut processes = vec![process("1", "charge.refunded").await];
    look(&database, &processes).await;
    assert_eq!(rows(&database).await, [row(&[NOT_SUBSCRIBED])]);
    let begun = (Problem::SubscriptionDiffers, false);
    let over = (Problem::SubscriptionDiffers, true);
    assert_eq!(told.all(), [begun]);

    // The new version takes some of the traffic.
    processes.push(process("2", "invoice.paid").await);
    let_an_hour_pass(&database).await;
    look(&database, &processes[1..]).await;
    for _ in 0..8 {
        let_an_hour_pass(&database).await;
        look(&database, &processes).await;
        assert_eq!(rows(&database).await, [row(&[])]);
    }
    assert_eq!(told.all(), [begun, over]);

    let_an_hour_pass(&database).await;
    database
        .run(
            "update idempotent_webhook.turns set next_at = now() - interval '61 minutes'
             where task = 'subscription'",
        )
        .await;
    look(&database, &processes[..1]).await;
    assert_eq!(rows(&database).await, [row(&[NOT_SUBSCRIBED])]);
    assert_eq!(told.all(), [begun, over, begun]);
    let versions: (String, Vec<String>) =
        sqlx::query_as("select version, former_versions from idempotent_webhook.subscriptions")
            .fetch_one(&database.pool)
            .await
            .unwrap();
    let [one, two] = ["1", "2"].map(str::to_owned);
    assert_eq!(versions, (one.clone(), vec![two, one]));
}

/// A turn can be far in the future if the clock was set back, or if another process compares only
/// once a year.
#[tokio::test]
async fn y2_a_turn_that_is_further_away_than_the_interval_is_now() {
    let database = Database::new().await;
    let (api, address) = Api::start("stripe").await;
    api.set_hooks([Hook::new(1, URL, &["charge.refunded"])]);
    let processes = [Process::new(
        database.pool.clone(),
        address,
        &Told::default(),
    )];
    look(&database, &processes).await;
    database
        .run(
            "update idempotent_webhook.subscriptions set compared_at = null;
             update idempotent_webhook.turns set next_at = now() + interval '27 hours'
             where task = 'subscription'",
        )
        .await;
    look(&database, &processes).await;
    assert_eq!(api.requests().len(), 2);
    database
        .until(
            "(select next_at < now() + interval '26.4 hours'
              from idempotent_webhook.turns where task = 'subscription')",
        )
        .await;
}

#[tokio::test]
async fn y2_each_difference_is_logged_when_it_begins_and_when_it_is_over() {
    let database = Database::new().await;
    let (api, address) = Api::start("stripe").await;
    api.set_hooks([Hook::new(1, URL, &["invoice.paid"])]);
    let processes = [Process::new(
        database.pool.clone(),
        address,
        &Told::default(),
    )];
    let begins = "webhook subscription differs";
    let ends = "webhook subscription no longer differs";
    let said = logged(async {
        let task = processes[0].spawn();
        until_logged(begins).await;
        task.stop().await;
        let_an_hour_pass(&database).await;
        look(&database, &processes).await;
        api.set_hooks([Hook::new(1, URL, &["charge.refunded"])]);
        let_an_hour_pass(&database).await;
        let task = processes[0].spawn();
        until_logged(ends).await;
        task.stop().await;
    })
    .await;
    for (text, level) in [(begins, "WARN"), (ends, "INFO")] {
        let mut lines = said.lines().filter(|line| line.contains(text));
        let line = lines.next().unwrap();
        assert!(
            line.contains(level) && line.contains(NOT_SUBSCRIBED),
            "{line}"
        );
        assert_eq!(lines.next(), None, "{said}");
    }
}

/// The turn of the killed process ends by itself.
#[tokio::test]
async fn y2_another_process_compares_where_one_was_killed() {
    let database = Database::new().await;
    let (api, address) = Api::start("stripe").await;
    api.delay(Duration::from_secs(3600));
    let told = Told::default();
    let killed = Process::new(database.another_pool(2).await, address, &told);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    {
        let _in_process = runtime.enter();
        let _task = killed.spawn();
    }
    database
        .until("exists (select from idempotent_webhook.turns where task = 'subscription' and process is not null)")
        .await;
    let other = [Process::new(database.another_pool(2).await, address, &told)];
    runtime.shutdown_background();
    api.delay(Duration::ZERO);
    api.set_hooks([Hook::new(1, URL, &["charge.refunded"])]);
    let_an_hour_pass(&database).await;
    look(&database, &other).await;
    assert_eq!(rows(&database).await, [row(&[])]);
}

/// Waits until a process has set the gauge to this number.
async fn until_gauge(exporter: &PrometheusHandle, number: u32) {
    let gauge = format!(
        "idempotent_webhook_subscription_differences{{endpoint=\"test\",provider=\"stripe\"}} {number}\n"
    );
    soon(async {
        while !exporter.render().contains(&gauge) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// The process was frozen for longer than its turn, so its findings are out of date.
#[tokio::test]
async fn y2_a_process_that_lost_its_turn_writes_nothing() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    let (_api, address) = Api::start("stripe").await;
    let process = Process::new(database.pool.clone(), address, &Told::default());
    let frozen = Frozen(Arc::default());
    let task = Subscriptions::new(&process.layer, frozen.clone(), URL)
        .unwrap()
        .spawn();
    database
        .until("exists (select from idempotent_webhook.turns where task = 'subscription' and process is not null)")
        .await;
    // Another process has compared in the meantime.
    database
        .run(
            "update idempotent_webhook.subscriptions set differences = '{a,b,c}';
             update idempotent_webhook.turns set process = 7, next_at = now() + interval '1 hour'
             where task = 'subscription'",
        )
        .await;
    frozen.0.notify_one();
    // Once the process has finished its comparison, it sets its gauge to the findings of the other
    // process.
    until_gauge(&exporter, 3).await;
    soon(task.stop()).await;
    assert_eq!(rows(&database).await, [row(&["a", "b", "c"])]);
}

/// A source that hangs until the test continues it, and then answers that there are no
/// subscriptions.
#[derive(Clone)]
struct Frozen(Arc<Notify>);

impl SubscriptionSource for Frozen {
    fn name(&self) -> String {
        "stripe".to_owned()
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, SourceError> {
        self.0.notified().await;
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn y2_each_process_has_the_gauge() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    let (api, address) = Api::start("stripe").await;
    let process = Process::new(database.pool.clone(), address, &Told::default());
    // Another process has compared.
    database
        .run(&format!(
            "insert into idempotent_webhook.subscriptions (endpoint, address, source, differences)
             values ('test', '{URL}', 'stripe', '{{a,b}}');
             insert into idempotent_webhook.turns (task, endpoint, address, source, next_at)
             values ('subscription', 'test', '{URL}', 'stripe', now() + interval '1 hour')"
        ))
        .await;
    let task = process.spawn();
    until_gauge(&exporter, 2).await;
    soon(task.stop()).await;
    assert!(api.requests().is_empty());
}
