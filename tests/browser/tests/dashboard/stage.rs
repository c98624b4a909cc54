//! A *stage*: an application with webhooks, and the dashboard of its database.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::routing::post;
use browser::{Database, Page, Server};
use idempotent_webhook::dashboard::{Access, Dashboard};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{DedupeTx, Endpoint, HandlerError, IdempotentWebhook};
use idempotent_webhook::{Keep, Provider, Recovery, Secret, presets};
use serde_json::{Value, json};
use sqlx::{PgPool, Row};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tower::ServiceExt;

pub const PREFIX: &str = "/admin/webhooks";

/// How long background work may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The operator in tests that are not about access rights.
pub fn ada() -> Access {
    Access::operate().with_payloads().named("ada")
}

pub struct Stage {
    pub pool: PgPool,
    /// Deliveries that stay in flight until the stage is dropped.
    in_flight: Vec<JoinHandle<()>>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        for request in &self.in_flight {
            request.abort();
        }
    }
}

impl Stage {
    /// A stage at which nothing has arrived yet.
    pub async fn empty() -> Self {
        let pool = Database::new().await.pool;
        Self {
            pool,
            in_flight: Vec::new(),
        }
    }

    /// The dashboard, nested at [`PREFIX`].
    pub async fn serve(&self, access: Access) -> Server {
        Server::start(Router::new().nest(PREFIX, self.dashboard(access))).await
    }

    pub fn dashboard(&self, access: Access) -> Router {
        Dashboard::new(self.pool.clone())
            .authorize(move |_| access.clone())
            .into_router()
    }

    /// A dead delivery: its handler has failed and has declared it dead.
    pub async fn dead(&self, endpoint: &str, id: &str, reason: &str) {
        let event = json!({"id": id, "type": "invoice.paid", "dead": reason});
        assert_eq!(self.receive(endpoint, keep, &event).await, 409);
    }

    /// A delivery whose handler has failed. It runs again in an hour.
    pub async fn due(&self, endpoint: &str, id: &str, reason: &str) {
        let event = json!({"id": id, "type": "invoice.paid", "fails": reason});
        assert_eq!(self.receive(endpoint, keep, &event).await, 409);
    }

    /// A delivery whose handler has failed, and whose request is not kept.
    pub async fn recorded(&self, endpoint: &str, id: &str, reason: &str) {
        let event = json!({"id": id, "type": "invoice.paid", "fails": reason});
        let record = |layer: IdempotentWebhook, recovery: &Recovery| {
            layer.keep(Keep::failed(recovery).body_limit(0))
        };
        assert_eq!(self.receive(endpoint, record, &event).await, 409);
    }

    pub async fn processed(&self, endpoint: &str, id: &str) {
        let event = json!({"id": id, "type": "invoice.paid"});
        assert_eq!(self.receive(endpoint, keep, &event).await, 200);
    }

    /// A delivery that was accepted before its handler ran, and waits for its first attempt.
    pub async fn accepted(&self, endpoint: &str, id: &str) {
        self.due(endpoint, id, "it has not been tried").await;
        self.run(
            "update idempotent_webhook.kept_deliveries
            set attempts = 0, first_failed_at = null, last_failed_at = null, status = null,
                reason = null, history = '[]'
            where delivery_id = $1",
            id,
        )
        .await;
    }

    /// A delivery with a recovery attempt that is still running.
    pub async fn running(&self, endpoint: &str, id: &str) {
        self.due(endpoint, id, "the ledger is away").await;
        self.run(
            // There is no other process that would expire this process number, so the process
            // counts as running.
            "with taker as (
                insert into idempotent_webhook.processes values (1, 1)
                on conflict do nothing
            )
            update idempotent_webhook.kept_deliveries
            set taken_by = 1
            where delivery_id = $1",
            id,
        )
        .await;
    }

    /// A delivery whose first attempt is running.
    pub async fn in_flight(&mut self, endpoint: &str, id: &str) {
        let event = json!({"id": id, "type": "invoice.paid", "waits": true});
        let (began, has_begun) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let app = app(&self.pool, endpoint, keep, stripe(), Some(began.clone()));
        let request = stripe_delivery(&event).request::<Body>();
        self.in_flight.push(tokio::spawn(async move {
            let answer = app.oneshot(request).await;
            drop(answer.unwrap());
        }));
        tokio::spawn({
            let has_begun = has_begun.clone();
            async move {
                began.notified().await;
                has_begun.notify_one();
            }
        });
        let begun = tokio::time::timeout(PATIENCE, has_begun.notified());
        begun.await.expect("the handler to begin");
    }

    /// Sends an event to an endpoint that keeps failed deliveries. Returns the status of the
    /// answer.
    pub async fn sends(&self, endpoint: &str, event: &Value) -> u16 {
        self.receive(endpoint, keep, event).await
    }

    async fn receive(&self, endpoint: &str, set: Set, event: &Value) -> u16 {
        let app = app(&self.pool, endpoint, set, stripe(), None);
        send(app, &stripe_delivery(event)).await
    }

    /// Sends a delivery whose provider has the id in a header, so that the body can be anything.
    /// Its handler fails.
    pub async fn dead_with_body(&self, endpoint: &str, id: &str, body: impl AsRef<[u8]>) {
        let app = app(&self.pool, endpoint, keep, github(), None);
        assert_eq!(send(app, &github_delivery(id, body)).await, 409);
    }

    pub fn endpoint(&self, name: &str) -> Endpoint {
        Endpoint::new(self.pool.clone(), name)
    }

    /// Runs a statement with one value.
    pub async fn run(&self, statement: &'static str, value: &str) {
        let done = sqlx::query(statement).bind(value).execute(&self.pool).await;
        assert!(done.unwrap().rows_affected() > 0, "{statement} of {value}");
    }

    /// Adds this many dead deliveries to an endpoint.
    pub async fn many_dead(&self, endpoint: &str, number: i64) {
        sqlx::query(
            "with kept as (
                insert into idempotent_webhook.kept_deliveries (
                    endpoint, delivery_id, event_type, state, attempts, first_failed_at,
                    last_failed_at, status, reason, reason_group, body_bytes
                )
                select
                    $1, 'many-' || to_char(number, 'FM00000'), 'invoice.paid', 'dead', 11,
                    now() - interval '2 hours', now() - number * interval '1 second', 500,
                    'order ' || number || ' is missing', md5('order # is missing')::uuid, 2
                from generate_series(1, $2) as numbers (number)
                returning endpoint, delivery_id
            )
            insert into idempotent_webhook.kept_requests
                (endpoint, delivery_id, format, method, uri, headers, body)
            select endpoint, delivery_id, 1, 'POST', '/in', 'content-type: text/plain', 'ok'
            from kept",
        )
        .bind(endpoint)
        .bind(number)
        .execute(&self.pool)
        .await
        .unwrap();
    }

    /// The kept deliveries, such as `billing evt_1 dead`. `due now` means that it runs at once.
    pub async fn kept(&self) -> Vec<String> {
        self.lines(
            "select concat_ws(
                ' ', endpoint, nullif(tenant, ''), delivery_id, state,
                case when state = 'due' and next_attempt_at <= now() then 'now' end
            )
            from idempotent_webhook.kept_deliveries
            order by endpoint, tenant, delivery_id",
        )
        .await
    }

    /// The state of a kept delivery.
    pub async fn state(&self, endpoint: &str, id: &str) -> Option<String> {
        let state = "select state from idempotent_webhook.kept_deliveries
            where endpoint = $1 and delivery_id = $2";
        let state = sqlx::query_scalar(state).bind(endpoint).bind(id);
        state.fetch_optional(&self.pool).await.unwrap()
    }

    pub async fn claims(&self) -> Vec<String> {
        self.lines(
            "select concat_ws(' ', endpoint, delivery_id)
            from idempotent_webhook.deliveries
            order by endpoint, delivery_id",
        )
        .await
    }

    /// The audit record, such as `ada: retry billing evt_1, changed 1`.
    pub async fn audit(&self) -> Vec<String> {
        self.lines(
            "select format(
                '%s: %s%s, changed %s%s', coalesce(operator, 'nobody'),
                concat_ws(' ', action, endpoint, tenant, delivery_id, selection),
                case when reason_group is not null then ', of a reason' end, changed,
                ', cancelled by ' || cancelled_by
            )
            from idempotent_webhook.operator_actions
            order by id",
        )
        .await
    }

    async fn lines(&self, query: &'static str) -> Vec<String> {
        let rows = sqlx::query(query).fetch_all(&self.pool).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Waits until no action is running.
    pub async fn wait_for_actions(&self) {
        self.until(
            "select not exists (
                select from idempotent_webhook.operator_actions where ended_at is null
            )",
        )
        .await;
    }

    /// Waits until a query returns true.
    pub async fn until(&self, query: &'static str) {
        let poll = async {
            while !sqlx::query_scalar::<_, bool>(query)
                .fetch_one(&self.pool)
                .await
                .unwrap()
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, poll).await.is_err() {
            panic!("waited too long for {query}");
        }
    }
}

fn secret() -> Secret {
    Secret::new("a secret").unwrap()
}

fn stripe() -> Provider {
    presets::stripe(secret())
}

fn github() -> Provider {
    presets::github(secret())
}

pub fn github_delivery(id: &str, body: impl AsRef<[u8]>) -> TestDelivery {
    TestDelivery::new(&github()).uri("/in").id(id).body(body)
}

pub fn stripe_delivery(event: &Value) -> TestDelivery {
    TestDelivery::new(&stripe())
        .uri("/in?token=secret-of-the-query")
        .header("x-kept".parse().unwrap(), "secret-of-a-header")
        .body(event.to_string())
}

/// How a layer is configured.
type Set = fn(IdempotentWebhook, &Recovery) -> IdempotentWebhook;

fn keep(layer: IdempotentWebhook, recovery: &Recovery) -> IdempotentWebhook {
    let keep = Keep::failed(recovery)
        .headers(["x-kept".parse().unwrap()])
        .body_limit(25 * 1024 * 1024)
        .retry_delays([Duration::from_secs(3600)]);
    // Deliveries in flight stay in flight until the test ends.
    layer.keep(keep).handler_timeout(Duration::from_secs(3600))
}

fn app(
    pool: &PgPool,
    endpoint: &str,
    set: Set,
    provider: Provider,
    began: Option<Arc<Notify>>,
) -> Router {
    // This layer counts no activity, because layers write their counters at irregular times, and
    // the pages would differ from run to run.
    let layer = IdempotentWebhook::new(pool.clone(), endpoint, provider).without_activity();
    let handle = async move |_: DedupeTx, body: Bytes| handle(&body, began.as_deref()).await;
    let recovery = Recovery::elsewhere(pool.clone());
    let layer = set(layer, &recovery).allow_unused_transaction();
    Router::new().route("/in", post(handle).layer(layer))
}

async fn handle(body: &[u8], began: Option<&Notify>) -> Result<StatusCode, HandlerError> {
    let event: Value = serde_json::from_slice(body).unwrap_or(json!({"dead": "it is no JSON"}));
    let reason = |name: &str| event[name].as_str().map(HandlerError::new);
    if let Some(reason) = reason("dead") {
        return Err(reason.status(StatusCode::CONFLICT).dead());
    }
    if let Some(reason) = reason("fails") {
        return Err(reason.status(StatusCode::CONFLICT));
    }
    if event["waits"] == true {
        if let Some(began) = began {
            began.notify_one();
        }
        std::future::pending::<()>().await;
    }
    Ok(StatusCode::OK)
}

async fn send(app: Router, delivery: &TestDelivery) -> u16 {
    let answer = app.oneshot(delivery.request::<Body>()).await.unwrap();
    answer.status().as_u16()
}

/// Asserts that only scripts of the dashboard ran or will run, that no other host was asked for
/// anything, and that everybody can use the page.
#[track_caller]
pub fn assert_sound(page: &Page) -> impl Future<Output = ()> + '_ {
    let asked = std::panic::Location::caller();
    async move {
        page.assert_accessible().await;
        page.assert_clean().await;
        let url = page.url().await;
        // A form ends the paragraph around it, and the text after the form would no longer belong
        // to the paragraph.
        assert_eq!(page.count("p:empty").await, 0, "{asked}: {url}");
        assert!(
            !page.has_horizontal_overflow().await,
            "{asked}: {url} can be scrolled to the side"
        );
    }
}
