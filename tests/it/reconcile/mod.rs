//! Reconciliation: rounds that compare the recorded deliveries with the provider's list of events.

mod answers;
mod backups;
mod bounds;
mod gaps;
mod limits;
mod orders;
mod rounds;
mod sources;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::reconcile::{
    EventPage, EventSource, ListedEvent, PageQuery, ReconcileError, ReconcileTask, Reconciled,
    SourceError,
};
use idempotent_webhook::recovery::RecoveryTask;
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Keep, Reconcile, Recovery, presets,
};
use sqlx::PgPool;
use tokio::runtime::Runtime;

use crate::support::{Database, insert_effect, recovery, secret, soon, stripe_event};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A provider's list of events in pages, newest first. All clones share one list.
#[derive(Clone)]
struct List(Arc<Mutex<Inner>>, &'static str);

#[derive(Default)]
struct Inner {
    events: Vec<ListedEvent>,
    page: usize,
    /// Errors that the list returns instead of the next pages. `None` returns a page.
    failures: VecDeque<Option<SourceError>>,
    /// The cursors of the requests.
    asked: Vec<Option<String>>,
    /// The types of the last query.
    types: Option<Vec<String>>,
    /// The cursors that the pages give in turn, in an endless circle.
    circle: Vec<String>,
    /// The list hangs forever after this number of pages.
    hangs_after: Option<usize>,
}

impl List {
    fn empty() -> Self {
        Self::of([])
    }

    /// A list of Stripe events that occurred this long ago.
    fn of<'a>(events: impl IntoIterator<Item = (&'a str, Duration)>) -> Self {
        let inner = Inner {
            page: 2,
            ..Inner::default()
        };
        let list = Self(Arc::new(Mutex::new(inner)), "list");
        for (id, age) in events {
            list.add(id, age);
        }
        list
    }

    fn named(&self, name: &'static str) -> Self {
        Self(self.0.clone(), name)
    }

    fn add(&self, id: &str, age: Duration) {
        let event = ListedEvent::new(SystemTime::now() - age, stripe_event(id));
        self.add_event(event);
    }

    fn add_event(&self, event: ListedEvent) {
        self.0.lock().unwrap().events.push(event);
    }

    fn fail_with(&self, error: SourceError) {
        self.0.lock().unwrap().failures.push_back(Some(error));
    }

    /// Makes the list answer with a page, after the failures that were added before.
    fn succeed(&self) {
        self.0.lock().unwrap().failures.push_back(None);
    }

    fn hang_after(&self, pages: Option<usize>) {
        self.0.lock().unwrap().hangs_after = pages;
    }

    /// Makes the list return the same page forever, with these cursors in turn, or without a cursor if there are none.
    fn go_round(&self, cursors: &[&str]) {
        self.0.lock().unwrap().circle = cursors.iter().map(|&cursor| cursor.to_owned()).collect();
    }

    fn asked(&self) -> Vec<Option<String>> {
        std::mem::take(&mut self.0.lock().unwrap().asked)
    }

    fn asked_for_types(&self) -> Option<Vec<String>> {
        self.0.lock().unwrap().types.clone()
    }
}

impl EventSource for List {
    fn name(&self) -> String {
        self.1.to_owned()
    }

    async fn page(&self, query: &PageQuery) -> Result<EventPage, SourceError> {
        let hangs = {
            let mut inner = self.0.lock().unwrap();
            inner.asked.push(query.cursor().map(str::to_owned));
            inner.types = query.event_types().map(<[String]>::to_vec);
            if let Some(error) = inner.failures.pop_front().flatten() {
                return Err(error);
            }
            inner
                .hangs_after
                .is_some_and(|pages| inner.asked.len() > pages)
        };
        if hangs {
            std::future::pending::<()>().await;
        }
        let inner = self.0.lock().unwrap();
        if !inner.circle.is_empty() {
            let mut circle = inner.circle.iter().cycle();
            let next = match query.cursor() {
                Some(cursor) => circle.skip_while(|one| *one != cursor).nth(1),
                None => circle.next(),
            };
            // The panic must not happen while the mutex is locked.
            if inner.circle[0] == "panic" {
                drop(inner);
                panic!("as the test says");
            }
            return Ok(EventPage::new(inner.events.clone(), next.cloned()));
        }
        let from: usize = query.cursor().map_or(Ok(0), str::parse)?;
        let until = (from + inner.page).min(inner.events.len());
        let next = (until < inner.events.len()).then(|| until.to_string());
        Ok(EventPage::new(inner.events[from..until].to_vec(), next))
    }
}

/// A process that receives Stripe's webhooks. It shares nothing with other processes except the database. Its handler
/// writes an effect, with `#` after the id if reconciliation has found the delivery.
struct Process {
    layer: IdempotentWebhook,
    router: Router,
    recovery: Recovery,
}

impl Process {
    fn new(pool: PgPool) -> Self {
        Self::with(pool, |keep| keep)
    }

    fn with(pool: PgPool, set: impl FnOnce(Keep) -> Keep) -> Self {
        let recovery = recovery(&pool);
        let keep = set(Keep::all(&recovery).retry_delays([Duration::from_millis(20); 3]));
        let layer = IdempotentWebhook::new(pool, "test", presets::stripe(secret()))
            .database_timeout(Duration::from_secs(20))
            .keep(keep);
        let router = Router::new().route("/", post(handle).layer(layer.clone()));
        Self {
            layer,
            router,
            recovery,
        }
    }

    /// A reconciliation that considers events of the last year, without a grace time.
    fn reconcile(&self, list: &List) -> Reconcile<List> {
        Reconcile::new(&self.layer, list.clone(), "/")
            .unwrap()
            .grace(Duration::ZERO)
            .since(SystemTime::now() - 365 * DAY)
    }

    fn recover(&self) -> RecoveryTask {
        self.recovery.clone().spawn(self.router.clone())
    }

    /// Runs everything that is due, and returns the number of attempts.
    async fn run_due(&self) -> usize {
        self.recovery.run_due(&self.router).await.unwrap().len()
    }
}

/// Reconciles in the background until a SQL condition holds.
async fn spawn_until(reconcile: Reconcile<List>, database: &Database, condition: &str) {
    let task = reconcile.spawn();
    database.until(condition).await;
    soon(task.stop()).await;
}

/// A separate process that reconciles. It has its own pool, so that its connections end when it is killed.
struct OtherProcess {
    runtime: Runtime,
    _task: ReconcileTask,
}

impl OtherProcess {
    fn reconciles(reconcile: Reconcile<List>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let task = {
            let _in_process = runtime.enter();
            reconcile.spawn()
        };
        Self {
            runtime,
            _task: task,
        }
    }

    /// Kills the process, and ends its turn at once. Otherwise, the turn of a killed process would end only after some
    /// time.
    async fn kill(self, database: &Database) {
        let ended = tokio::task::spawn_blocking(|| self.runtime.shutdown_timeout(MINUTE));
        ended.await.unwrap();
        database
            .run("update idempotent_webhook.turns set next_at = now() where task = 'reconciliation' and process is not null")
            .await;
    }
}

async fn handle(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
    if delivery.is_reconciled() {
        let marked = format!("{}#", delivery.id());
        sqlx::query("insert into effects (delivery_id) values ($1)")
            .bind(marked)
            .execute(&mut *tx)
            .await?;
    } else {
        insert_effect(&mut tx, &delivery).await?;
    }
    if delivery.id().as_str().starts_with("discard") {
        return Err(HandlerError::new("not wanted").discard());
    }
    Ok(StatusCode::OK)
}

/// The effects, in alphabetical order.
async fn effects(database: &Database) -> Vec<String> {
    sqlx::query_scalar("select delivery_id from effects order by delivery_id collate \"C\"")
        .fetch_all(&database.pool)
        .await
        .unwrap()
}

/// The row counts of all tables, which a dry run must not change.
async fn tables(database: &Database) -> Vec<i64> {
    sqlx::query_scalar(
        "select (xpath('/row/n/text()', query_to_xml(
             format('select count(*) as n from idempotent_webhook.%I', table_name), false, true, ''
         )))[1]::text::int8
         from information_schema.tables
         where table_schema = 'idempotent_webhook' and table_type = 'BASE TABLE'
         order by table_name",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

async fn missed(reconcile: &Reconcile<List>) -> Result<u64, ReconcileError> {
    reconcile
        .run_once()
        .await
        .map(|round: Reconciled| round.missed)
}
