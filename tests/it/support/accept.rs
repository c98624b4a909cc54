//! Deliveries that are kept before their handler runs: the ways to keep them, and groups of
//! deliveries.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::handler::Handler;
use axum::http::{Request, StatusCode};
use idempotent_webhook::{
    DedupeTx, Delivery, IdempotentWebhook, Keep, Provider, Recovery, presets,
};
use tokio::task::JoinHandle;

use super::recovery::{Answered, ONE_WAITS_FOR_A_LOCK, Process, SOON};
use super::request::{github_delivery, secret};
use super::test_app::{Answer, TestApp, insert_effect, soon, spawn_send, until_all_wait};

/// Keeps all deliveries, for four attempts.
pub fn keep_all(recovery: &Recovery) -> Keep {
    Keep::all(recovery).retry_delays([SOON, SOON, SOON])
}

pub fn keep_accepted(recovery: &Recovery) -> Keep {
    Keep::accepted(recovery).retry_delays([SOON, SOON, SOON])
}

/// An application for GitHub's deliveries, which are kept in this way.
pub async fn keeping_by<H, T>(way: impl FnOnce(&Recovery) -> Keep, handler: H) -> TestApp
where
    H: Handler<T, ()> + Sync,
    T: 'static,
{
    keeping_of(presets::github(secret()), way, handler).await
}

/// An application for deliveries of any provider, which are kept in this way.
pub async fn keeping_of<H, T>(
    provider: Provider,
    way: impl FnOnce(&Recovery) -> Keep,
    handler: H,
) -> TestApp
where
    H: Handler<T, ()> + Sync,
    T: 'static,
{
    let set = |layer: IdempotentWebhook, recovery: &Recovery| {
        // This limit is far longer than a query takes, even on a busy machine.
        let layer = layer.database_timeout(Duration::from_secs(20));
        layer.keep(way(recovery))
    };
    TestApp::recovered(provider, set, handler).await
}

/// How many times the handler has run, by tenant and delivery id.
#[derive(Clone, Default)]
pub struct Runs(Arc<Mutex<BTreeMap<(String, String), u32>>>);

impl Runs {
    pub fn handler(
        &self,
    ) -> impl Fn(DedupeTx, Delivery) -> Answered + Clone + Send + Sync + 'static {
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

    /// An application that accepts GitHub's deliveries.
    pub async fn app(&self) -> TestApp {
        keeping_by(keep_accepted, self.handler()).await
    }

    /// Another process, with a pool of this many connections.
    pub async fn elsewhere(&self, app: &TestApp, connections: u32) -> Process {
        let pool = app.database.another_pool(connections).await;
        Process::new(pool, keep_accepted, self.handler())
    }

    pub fn all(&self) -> BTreeMap<(String, String), u32> {
        self.0.lock().unwrap().clone()
    }

    pub fn of(&self, id: &str) -> u32 {
        let runs = self.0.lock().unwrap();
        let of_id = runs.iter().filter(|((_, of), _)| of == id);
        of_id.map(|(_, runs)| runs).sum()
    }
}

/// Sends the requests, and waits until one transaction waits for a lock and all other deliveries
/// wait for that transaction.
pub async fn send_in_one_group(
    app: &TestApp,
    requests: Vec<Request<Body>>,
) -> Vec<JoinHandle<Answer>> {
    let before = spawn_send(&app.router, github_delivery().id("before").request());
    app.database.until(ONE_WAITS_FOR_A_LOCK).await;
    let group = requests
        .into_iter()
        .map(|request| spawn_send(&app.router, request));
    let sent = std::iter::once(before).chain(group).collect();
    until_all_wait().await;
    sent
}

pub async fn outcomes(sent: Vec<JoinHandle<Answer>>) -> Vec<(u16, String)> {
    let mut outcomes = Vec::new();
    for sent in sent {
        let answered = soon(sent).await.unwrap();
        outcomes.push((answered.status, answered.outcome));
    }
    outcomes
}

pub async fn assert_accepted(sent: Vec<JoinHandle<Answer>>) {
    for outcome in outcomes(sent).await {
        assert_eq!(outcome, (200, "accepted".to_owned()));
    }
}
