//! Guarantee G10: if Postgres or the network falls silent, at any message, the connection does not occupy its place in
//! the pool for good.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use idempotent_webhook::dashboard::{Access, Dashboard};
use idempotent_webhook::recovery::{Filter, adopt};
use idempotent_webhook::{Endpoint, migrate, prune};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tower::ServiceExt;

use crate::support::{Database, soon};

const FOR_EVER: u32 = u32::MAX;

/// A network that falls silent after some more messages to Postgres. From then on, nothing arrives on either side, and
/// neither side notices.
#[derive(Default)]
struct Network {
    messages_left: AtomicU32,
    fell_silent: Notify,
    /// Notified when the network recovers, which closes the silent connections.
    recovered: Notify,
}

impl Network {
    async fn relay(self: Arc<Self>, mut client: TcpStream, mut server: UnixStream) {
        let (mut sent, mut answered) = (vec![0; 65536], vec![0; 65536]);
        loop {
            tokio::select! {
                read = client.read(&mut sent) => {
                    let Ok(length @ 1..) = read else { return };
                    let passes = |left| match left {
                        0 => None,
                        FOR_EVER => Some(FOR_EVER),
                        left => Some(left - 1),
                    };
                    let order = Ordering::Relaxed;
                    if self.messages_left.fetch_update(order, order, passes).is_err() {
                        self.fell_silent.notify_one();
                        self.recovered.notified().await;
                        return;
                    }
                    server.write_all(&sent[..length]).await.unwrap();
                }
                read = server.read(&mut answered) => {
                    let Ok(length @ 1..) = read else { return };
                    client.write_all(&answered[..length]).await.unwrap();
                }
            }
        }
    }
}

type Done = Pin<Box<dyn Future<Output = bool>>>;

/// A named use of the pool. The function returns whether the use has succeeded.
struct Use(&'static str, Box<dyn Fn(PgPool) -> Done>);

impl Use {
    fn of<T, E>(
        name: &'static str,
        work: impl AsyncFn(PgPool) -> Result<T, E> + Clone + 'static,
    ) -> Self {
        let work = move |pool| -> Done {
            let work = work.clone();
            Box::pin(async move { work(pool).await.is_ok() })
        };
        Self(name, Box::new(work))
    }

    /// An operation (`retry`, for example) on an endpoint with a dead delivery.
    fn verb<T>(
        name: &'static str,
        verb: impl AsyncFn(&Endpoint) -> sqlx::Result<T> + Clone + 'static,
    ) -> Self {
        Self::of(name, async move |pool| {
            verb(&Endpoint::new(pool, "test")).await
        })
    }

    /// A request to the dashboard.
    fn dashboard(name: &'static str, path: &'static str, form: Option<&'static str>) -> Self {
        Self::of(name, async move |pool| {
            let dashboard = Dashboard::new(pool).authorize(|_| Access::operate());
            let request = match form {
                Some(_) => Request::post(path)
                    .header("host", "ops.example")
                    .header("sec-fetch-site", "same-origin"),
                None => Request::get(path).header("sec-fetch-site", "none"),
            };
            let request = request.body(Body::from(form.unwrap_or_default())).unwrap();
            let answered: Response<Body> = dashboard.into_router().oneshot(request).await.unwrap();
            match answered.status().is_server_error() {
                true => Err(()),
                false => Ok(()),
            }
        })
    }

    /// Repeats the use, and lets the network fall silent at the first message, then at the second, and so on. Asserts
    /// that each use ends, and that the pool's only connection can be used again afterwards. Returns the number of
    /// messages.
    async fn assert_it_costs_no_place(&self, database: &Database) -> u32 {
        let Self(name, work) = self;
        let network = Arc::new(Network::default());
        let options = database.options_through({
            let network = network.clone();
            move |client, server| network.clone().relay(client, server)
        });
        let options = options.await;
        for messages in 0.. {
            network.messages_left.store(FOR_EVER, Ordering::Relaxed);
            let pool = PgPoolOptions::new().max_connections(1);
            let pool = pool.connect_lazy_with(options.clone());
            let connected = soon(pool.acquire()).await.unwrap();
            drop(connected);
            until_idle(&pool).await;

            network.messages_left.store(messages, Ordering::Relaxed);
            let work = work(pool.clone());
            let done = async {
                let done = work.await;
                // Messages that are sent when the connection returns to the pool count as well.
                until_unused(&pool).await;
                done
            };
            let mut done = Box::pin(done);
            tokio::select! {
                done = &mut done => {
                    assert!(done, "{name}");
                    return messages;
                }
                () = network.fell_silent.notified() => {}
            }
            // The network is silent, so from here on, only time passes.
            tokio::time::pause();
            let ended = async {
                for _ in 0..1000 {
                    tokio::select! {
                        biased;
                        _ = &mut done => return,
                        () = tokio::time::advance(Duration::from_secs(5)) => {}
                    }
                }
                panic!("{name} does not end, silent after {messages} messages");
            };
            ended.await;
            tokio::time::resume();
            network.messages_left.store(FOR_EVER, Ordering::Relaxed);
            network.recovered.notify_waiters();
            let lent = soon(pool.acquire()).await;
            assert!(lent.is_ok(), "{name}, silent after {messages} messages");
        }
        unreachable!("{name} never ends")
    }
}

async fn until_idle(pool: &PgPool) {
    let idle = async {
        while pool.num_idle() == 0 {
            tokio::task::yield_now().await;
        }
    };
    soon(idle).await;
}

/// Waits until each connection is idle or closed, for longer than a connection may take to return.
async fn until_unused(pool: &PgPool) {
    for _ in 0..1000 {
        if pool.num_idle() == pool.size() as usize {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

const DEAD: &str = "
    insert into idempotent_webhook.kept_deliveries (
        endpoint, tenant, delivery_id, state, attempts, first_received_at, last_failed_at, reason
    )
    select 'test', '', 'a', 'dead', 1, now(), now(), 'no'
    where not exists (select from idempotent_webhook.kept_deliveries)
";

#[tokio::test]
async fn g10_a_peer_that_falls_silent_at_any_message_of_a_short_transaction_costs_no_place() {
    let uses = [
        Use::verb("retry", async |endpoint| endpoint.retry("a").await),
        Use::verb("discard", async |endpoint| endpoint.discard("b").await),
        Use::verb("erase", async |endpoint| endpoint.erase("b").await),
        Use::verb("reprocess", async |endpoint| endpoint.reprocess("a").await),
        Use::verb("forget", async |endpoint| endpoint.forget("a").await),
        Use::verb("kept", async |endpoint| {
            endpoint.kept(&Filter::new(), None, 10).await
        }),
        Use::verb("retry_all", async |endpoint| {
            endpoint.retry_all(&Filter::new()).await
        }),
        Use::verb("erase_all", async |endpoint| {
            endpoint.erase_all(&Filter::new().tenant("x")).await
        }),
        Use::verb("reprocess_all", async |endpoint| {
            endpoint.reprocess_all(&Filter::new()).await
        }),
        Use::verb("discard_all", async |endpoint| {
            endpoint.discard_all(&Filter::new().tenant("x")).await
        }),
        Use::of("adopt", async |pool| adopt(&pool, "production").await),
        Use::verb("pause", async |endpoint| endpoint.pause().await),
        Use::verb("resume", async |endpoint| endpoint.resume().await),
        Use::of("prune", async |pool| {
            prune(&pool, Duration::from_secs(60 * 60 * 24)).await
        }),
        Use::of("migrate", async |pool| migrate(&pool).await),
        Use::dashboard("a page", "/overview", None),
        Use::dashboard(
            "an action on a delivery",
            "/act",
            Some("action=retry&endpoint=test&id=a"),
        ),
        Use::dashboard(
            "an action on all",
            "/act",
            Some("action=retry&endpoint=test&state=dead&before=9999999999"),
        ),
    ];
    let database = Database::new().await;
    database.run(DEAD).await;
    for used in uses {
        let messages = used.assert_it_costs_no_place(&database).await;
        // At least `begin`, a statement, `commit` and the pool's ping.
        assert!(messages >= 3, "{}: {messages}", used.0);
    }
}

/// `migrate` runs on a connection of its own.
#[tokio::test]
async fn g10_a_peer_that_falls_silent_at_any_message_of_the_migrations_costs_no_place() {
    let database = Database::empty().await;
    let migrating = Use::of("migrate", async |pool| migrate(&pool).await);
    let messages = migrating.assert_it_costs_no_place(&database).await;
    assert!(messages > 10, "{messages}");
}
