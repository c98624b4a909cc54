//! Handlers and requests that wait until the test lets them continue.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::middleware::map_request;
use idempotent_webhook::{DedupeTx, Delivery};
use tokio::sync::{Semaphore, mpsc};

use super::test_app::insert_effect;

/// The test's end of a gate, which holds back handlers until the test opens it.
pub struct Gate {
    reached: mpsc::Receiver<()>,
    open: Arc<Semaphore>,
}

/// The handler's end of a gate: the handler waits here.
#[derive(Clone)]
pub struct Way {
    reaching: mpsc::Sender<()>,
    open: Arc<Semaphore>,
}

pub fn gate() -> (Gate, Way) {
    let (reaching, reached) = mpsc::channel(100);
    let open = Arc::new(Semaphore::new(0));
    let way = Way {
        reaching,
        open: open.clone(),
    };
    (Gate { reached, open }, way)
}

impl Way {
    pub async fn pass(&self) {
        self.reaching.send(()).await.unwrap();
        self.open.acquire().await.unwrap().forget();
    }
}

type Status = Pin<Box<dyn Future<Output = StatusCode> + Send>>;

/// A handler that writes one effect, and answers 200 each time the gate is opened.
pub fn gated() -> (
    Gate,
    impl Fn(DedupeTx, Delivery) -> Status + Clone + Send + Sync + 'static,
) {
    let (gate, way) = gate();
    let handler = move |mut tx: DedupeTx, delivery: Delivery| -> Status {
        let way = way.clone();
        Box::pin(async move {
            insert_effect(&mut tx, &delivery).await.unwrap();
            way.pass().await;
            StatusCode::OK
        })
    };
    (gate, handler)
}

/// A handler that answers 502 each time the gate is opened.
pub fn failing_behind_gate() -> (
    Gate,
    impl Fn(DedupeTx) -> Status + Clone + Send + Sync + 'static,
) {
    let (gate, way) = gate();
    let handler = move |_: DedupeTx| -> Status {
        let way = way.clone();
        Box::pin(async move {
            way.pass().await;
            StatusCode::BAD_GATEWAY
        })
    };
    (gate, handler)
}

impl Gate {
    /// Waits until somebody is at the gate, such as a handler that has done its work.
    pub async fn reached(&mut self) {
        self.reached.recv().await.unwrap();
    }

    /// Lets one of the handlers or requests at the gate pass.
    pub fn open(&self) {
        self.open.add_permits(1);
    }
}

/// A router whose requests pass through a gate first.
pub fn held_back(router: &Router) -> (Router, Gate) {
    let (gate, way) = gate();
    let wait = move |request: Request<Body>| {
        let way = way.clone();
        async move {
            way.pass().await;
            request
        }
    };
    (router.clone().layer(map_request(wait)), gate)
}
