use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::handler::Handler;
use axum::http::{Request, StatusCode};
use axum::routing::{MethodRouter, post};
use http_body_util::BodyExt;
use idempotent_webhook::{
    DedupeTx, Delivery, IdempotentWebhook, Keep, Provider, Recovery, presets,
};
use tokio::task::JoinHandle;
use tower::ServiceExt;

use super::database::Database;
use super::recovery::{SOON, keep, recovery};
use super::request::secret;

/// An application with one route, behind the layer, on a database of its own.
pub struct TestApp {
    pub database: Database,
    pub router: Router,
    /// Runs the layer's kept deliveries once it is spawned.
    pub recovery: Recovery,
    provider: Provider,
    runs: Arc<AtomicU32>,
}

/// What the sender sees.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// The value of the header `x-webhook-outcome`.
    pub outcome: String,
    pub body: String,
    pub retry_after: bool,
}

/// An answer of the layer itself, or of a handler that answers with a text.
pub fn answer(status: u16, outcome: &str, body: &str) -> Answer {
    Answer {
        status,
        outcome: outcome.to_owned(),
        body: body.to_owned(),
        retry_after: status == 503,
    }
}

/// Inserts one effect of the delivery in the transaction.
pub async fn insert_effect(tx: &mut DedupeTx, delivery: &Delivery) -> sqlx::Result<()> {
    sqlx::query("insert into effects (delivery_id) values ($1)")
        .bind(delivery.id().as_str())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// A handler that writes one effect and answers 200.
pub async fn write_effect(
    mut tx: DedupeTx,
    delivery: Delivery,
) -> Result<&'static str, StatusCode> {
    insert_effect(&mut tx, &delivery)
        .await
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok("done")
}

impl TestApp {
    /// An application for GitHub's deliveries.
    pub async fn github<H, T>(handler: H) -> Self
    where
        H: Handler<T, ()> + Sync,
        T: 'static,
    {
        Self::of(presets::github(secret()), handler).await
    }

    /// An application for GitHub's deliveries, with settings of the layer.
    pub async fn github_with<H, T>(
        set: impl FnOnce(IdempotentWebhook) -> IdempotentWebhook,
        handler: H,
    ) -> Self
    where
        H: Handler<T, ()> + Sync,
        T: 'static,
    {
        Self::with(presets::github(secret()), set, handler).await
    }

    /// An application for deliveries of any provider.
    pub async fn of<H, T>(provider: Provider, handler: H) -> Self
    where
        H: Handler<T, ()> + Sync,
        T: 'static,
    {
        Self::with(provider, |layer| layer, handler).await
    }

    /// An application for deliveries of any provider, with settings of the layer.
    pub async fn with<H, T>(
        provider: Provider,
        set: impl FnOnce(IdempotentWebhook) -> IdempotentWebhook,
        handler: H,
    ) -> Self
    where
        H: Handler<T, ()> + Sync,
        T: 'static,
    {
        Self::recovered(provider, |layer, _| set(layer), handler).await
    }

    /// An application for GitHub's deliveries, which are kept if they fail, unless `set` changes that. There are four
    /// attempts in all, shortly after each other.
    pub async fn keeping<H, T>(set: impl FnOnce(Keep) -> Keep, handler: H) -> Self
    where
        H: Handler<T, ()> + Sync,
        T: 'static,
    {
        let set = |layer: IdempotentWebhook, recovery: &Recovery| layer.keep(set(keep(recovery)));
        Self::recovered(presets::github(secret()), set, handler).await
    }

    /// An application for GitHub's deliveries, which are all kept before their handler runs. There are four attempts in
    /// all, as with [`Self::keeping`].
    pub async fn keeping_all<H, T>(set: impl FnOnce(Keep) -> Keep, handler: H) -> Self
    where
        H: Handler<T, ()> + Sync,
        T: 'static,
    {
        let set = |layer: IdempotentWebhook, recovery: &Recovery| {
            layer.keep(set(Keep::all(recovery).retry_delays([SOON, SOON, SOON])))
        };
        Self::recovered(presets::github(secret()), set, handler).await
    }

    /// An application for deliveries of any provider, with settings of the layer, which may keep deliveries.
    pub async fn recovered<H, T>(
        provider: Provider,
        set: impl FnOnce(IdempotentWebhook, &Recovery) -> IdempotentWebhook,
        handler: H,
    ) -> Self
    where
        H: Handler<T, ()> + Sync,
        T: 'static,
    {
        let database = Database::new().await;
        let pool = database.pool.clone();
        let recovery = recovery(&pool);
        let layer = IdempotentWebhook::new(pool, "test", provider.clone());
        let runs = Arc::new(AtomicU32::new(0));
        let router = Self::route(&set(layer, &recovery), handler, runs.clone());
        Self {
            database,
            router,
            recovery,
            provider,
            runs,
        }
    }

    fn route<H, T>(layer: &IdempotentWebhook, handler: H, runs: Arc<AtomicU32>) -> Router
    where
        H: Handler<T, ()> + Sync,
        T: 'static,
    {
        let counted: MethodRouter = post(handler).layer(axum::middleware::map_request(
            move |request: Request<Body>| {
                runs.fetch_add(1, Ordering::Relaxed);
                std::future::ready(request)
            },
        ));
        Router::new().route("/", counted.layer(layer.clone()))
    }

    /// The same route in another process, which shares nothing but the database.
    pub async fn elsewhere<H, T>(&self, handler: H) -> Router
    where
        H: Handler<T, ()> + Sync,
        T: 'static,
    {
        self.elsewhere_with(|layer| layer, handler).await
    }

    /// The same route in another process, with settings of its own.
    pub async fn elsewhere_with<H, T>(
        &self,
        set: impl FnOnce(IdempotentWebhook) -> IdempotentWebhook,
        handler: H,
    ) -> Router
    where
        H: Handler<T, ()> + Sync,
        T: 'static,
    {
        let pool = self.database.another_pool(5).await;
        let layer = IdempotentWebhook::new(pool, "test", self.provider.clone());
        Self::route(&set(layer), handler, self.runs.clone())
    }

    /// The same route in another process that keeps deliveries, and the recovery of that process.
    pub async fn elsewhere_keeping<H, T>(
        &self,
        set: impl FnOnce(Keep) -> Keep,
        handler: H,
    ) -> (Router, Recovery)
    where
        H: Handler<T, ()> + Sync,
        T: 'static,
    {
        let pool = self.database.another_pool(5).await;
        let recovery = recovery(&pool);
        let layer =
            IdempotentWebhook::new(pool, "test", self.provider.clone()).keep(set(keep(&recovery)));
        (Self::route(&layer, handler, self.runs.clone()), recovery)
    }

    /// The same route in another process, which describes the provider differently.
    pub async fn elsewhere_of<H, T>(&self, provider: Provider, handler: H) -> Router
    where
        H: Handler<T, ()> + Sync,
        T: 'static,
    {
        let pool = self.database.another_pool(5).await;
        let layer = IdempotentWebhook::new(pool, "test", provider);
        Self::route(&layer, handler, self.runs.clone())
    }

    /// How many times the handler was called.
    pub fn runs(&self) -> u32 {
        self.runs.load(Ordering::Relaxed)
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        send(&self.router, request).await
    }

    /// Serves on a socket, for tests that need a connection.
    pub async fn serve(&self) -> std::net::SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = self.router.clone();
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    /// Waits until no request holds a transaction any more.
    pub async fn settled(&self) {
        for _ in 0..1000 {
            if self.database.in_transaction().await == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("a connection stays in a transaction");
    }
}

pub async fn send(router: &Router, request: Request<Body>) -> Answer {
    let (head, body) = router.clone().oneshot(request).await.unwrap().into_parts();
    let header = |name: &str| Some(head.headers.get(name)?.to_str().unwrap());
    let outcome = header("x-webhook-outcome").unwrap_or_default().to_owned();
    let retry_after = header("retry-after").is_some_and(|seconds| seconds.parse::<u32>().is_ok());
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        status: head.status.as_u16(),
        outcome,
        body: String::from_utf8(body.into()).unwrap(),
        retry_after,
    }
}

/// Awaits an answer with a generous time limit, which only catches an answer that never comes.
pub async fn soon<T>(answer: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), answer)
        .await
        .expect("an answer well within the time limit")
}

/// Lets all other tasks run until each of them waits for something from outside. The test's runtime has a single
/// thread, so each yield lets every other task take a step. A hundred yields are more than the steps of any task.
pub async fn until_all_wait() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Advances the clock, for caches that expire and intervals that pass. No query may be under way, because it would time
/// out when the clock jumps. Afterwards the clock runs again.
pub async fn let_pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Sends the request in a task, as a separate client.
pub fn spawn_send(router: &Router, request: Request<Body>) -> JoinHandle<Answer> {
    let router = router.clone();
    tokio::spawn(async move { send(&router, request).await })
}

/// Sends copies at the same moment, to each of the routers in turn.
pub async fn send_copies(
    routers: &[Router],
    copies: usize,
    request: impl Fn() -> Request<Body>,
) -> Vec<Answer> {
    let sending: Vec<_> = (0..copies)
        .map(|copy| spawn_send(&routers[copy % routers.len()], request()))
        .collect();
    let mut answers = Vec::new();
    for sent in sending {
        answers.push(sent.await.unwrap());
    }
    answers
}
