//! Guarantee Handle 2: every layer has a *watch*, a background loop that writes its counts and
//! reads its gauges. The layers of one recovery handle share one watch.

use std::time::Duration;

use axum::Router;
use axum::routing::post;
use idempotent_webhook::recovery::RecoveryTask;
use idempotent_webhook::{IdempotentWebhook, presets};
use metrics_exporter_prometheus::PrometheusBuilder;

use crate::support::{
    Database, assert_rows, github, let_pass, recovery, secret, send, soon, until_all_wait,
    write_effect,
};

const LAYERS: usize = 20;

/// Twenty layers that have joined a handle, each at a path of its own.
fn joined(database: &Database) -> (Vec<IdempotentWebhook>, Router, RecoveryTask) {
    let recovery = recovery(&database.pool).poll_interval(Duration::from_secs(3600));
    let layers: Vec<_> = (0..LAYERS)
        .map(|number| {
            let pool = database.pool.clone();
            IdempotentWebhook::new(pool, format!("{number}"), presets::github(secret()))
                .join(&recovery)
                .expect_every(Duration::from_secs(3600))
                .only(["push"])
        })
        .collect();
    let router = layers.iter().enumerate().fold(Router::new(), |router, at| {
        let (number, layer) = at;
        router.route(
            &format!("/{number}"),
            post(write_effect).layer(layer.clone()),
        )
    });
    let task = recovery.spawn(router.clone());
    (layers, router, task)
}

/// Sends one request to each layer.
async fn send_to_each(router: &Router, id: &str) {
    for number in 0..LAYERS {
        let mut request = github(&format!("{id}{number}"), "{}");
        *request.uri_mut() = format!("/{number}").parse().unwrap();
        assert_eq!(send(router, request).await.status, 200);
    }
}

fn counted_in_each(requests: usize) -> String {
    format!(
        "(select count(*) from (
             select endpoint from idempotent_webhook.activity
             where source = 'request' and outcome = 'processed'
             group by endpoint having sum(count) = {requests}
         ) as layer) = {LAYERS}"
    )
}

/// The number of different transactions that last wrote the rows of activity.
const WRITERS: &str = "select count(distinct xmin::text) from idempotent_webhook.activity";

fn alive_tasks() -> usize {
    tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks()
}

#[tokio::test]
async fn handle_2_what_all_layers_count_is_one_transaction_of_one_loop() {
    let database = Database::new().await;
    let before = alive_tasks();
    let (_layers, router, task) = joined(&database);
    // Each layer has its own watch until it sees that the handle has one.
    assert!(alive_tasks() > before + LAYERS);
    let few = before + LAYERS / 2;
    soon(async {
        while alive_tasks() > few {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    send_to_each(&router, "a").await;
    assert!(alive_tasks() <= few);
    database.until(&counted_in_each(1)).await;
    // The watch may have written once in the middle of the requests, and once after them.
    let writers = database.count(WRITERS).await;
    assert!((1..=2).contains(&writers), "{writers}");
    let settings = "select count(*) from idempotent_webhook.endpoint_settings";
    assert_eq!(database.count(settings).await, LAYERS as i64);
    assert_rows!(database, claims: LAYERS as i64, effects: LAYERS as i64);
    soon(task.stop()).await;
}

#[tokio::test]
async fn handle_2_one_reading_tells_the_metrics_of_all_layers() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let exporter = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let database = Database::new().await;
    let (_layers, _router, task) = joined(&database);
    // Waits for the first look of the watch.
    until_all_wait().await;
    soon(tokio::time::sleep(Duration::from_millis(5500))).await;
    database
        .run(
            r#"insert into idempotent_webhook.activity (endpoint, hour, source, outcome, count, last_at)
             select number::text, now(), 'request', 'processed', 1, to_timestamp(2000000000 + number)
             from generate_series(0, 19) as number;
             insert into idempotent_webhook.endpoint_settings (endpoint, settings, ignores_since, names_since, told_at)
             select
                 number::text, '{"event_types": ["push", "fork"], "ignores_other_events": true}',
                 now() - interval '9 days', now() - interval '9 days', now()
             from generate_series(0, 19) as number;
             insert into idempotent_webhook.event_types (endpoint, event_type, first_at, last_at, days, is_handled, clock)
             select number::text, type, now() - first, now() - last, days, is_handled, clock
             from generate_series(0, 19) as number
             cross join (
                 values
                     ('push', interval '9 days', interval '2 days', 7, true, 100),
                     ('fork', interval '9 days', interval '0', 7, true, 200),
                     ('star', interval '0', interval '0', 1, false, 0)
             ) as each (type, first, last, days, is_handled, clock)
             where number % 2 = 0 or type <> 'star'"#,
        )
        .await;
    let_pass(Duration::from_secs(31)).await;
    let expected: Vec<_> = (0..LAYERS)
        .flat_map(|number| {
            let labels = format!("{{endpoint=\"{number}\",provider=\"github\"");
            let new = if number % 2 == 0 { 1 } else { 0 };
            [
                format!(
                    "idempotent_webhook_last_authentic_timestamp_seconds{labels}}} {}\n",
                    2_000_000_000 + number
                ),
                format!("idempotent_webhook_event_types{labels},state=\"new\"}} {new}\n"),
                format!("idempotent_webhook_event_types{labels},state=\"stopped\"}} 1\n"),
            ]
        })
        .collect();
    soon(async {
        while !expected
            .iter()
            .all(|gauge| exporter.render().contains(gauge))
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    soon(task.stop()).await;
}

#[tokio::test]
async fn handle_2_a_layer_whose_handle_has_stopped_writes_by_itself() {
    let database = Database::new().await;
    let (layers, router, task) = joined(&database);
    send_to_each(&router, "a").await;
    assert!(soon(task.stop()).await.is_empty());
    database.until(&counted_in_each(1)).await;
    send_to_each(&router, "b").await;
    database.until(&counted_in_each(2)).await;
    // The counts of a layer are written even if the layer is dropped.
    send_to_each(&router, "c").await;
    drop((layers, router));
    database.until(&counted_in_each(3)).await;
    assert_rows!(database, claims: 3 * LAYERS as i64, effects: 3 * LAYERS as i64);
}

#[tokio::test]
async fn handle_2_a_layer_that_is_dropped_has_its_numbers_written_by_the_handle() {
    let database = Database::new().await;
    let (layers, router, task) = joined(&database);
    until_all_wait().await;
    send_to_each(&router, "a").await;
    drop((layers, router));
    database.until(&counted_in_each(1)).await;
    soon(task.stop()).await;
}
