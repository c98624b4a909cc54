//! Connections that the crate gave up, for example at a timeout, before Postgres had answered.
//!
//! Postgres does not look at its client while a statement runs or waits for a lock, or while a commit waits for a
//! standby. So a session goes on even after its connection was closed. If each timeout closed a connection, the pool
//! would replace it, and unfinished sessions would pile up until no application could connect to that server. To
//! prevent that, a given-up connection stays open until Postgres has answered. Until then, it also keeps its *place* in
//! the pool: it counts as one of the pool's connections.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool, Postgres, QueryBuilder};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::connection::TransactionId;
use super::database_name::DatabaseName;
use super::pg_error::{DatabaseError, read_pending, with_timeout};

/// How long a statement may go on after it was given up. After that, the place of its connection counts as lost. If the
/// statement belongs to a handler, it is cancelled.
const GRACE: Duration = Duration::from_millis(500);

/// How long a connection may be without an answer before the crate asks Postgres whether anything still runs. The crate
/// repeats the question at this interval.
const ASK_INTERVAL: Duration = Duration::from_secs(2);

/// How long a connection keeps its place if Postgres does not even answer the question whether anything still runs.
/// Without any answer, the network has fallen silent or the host is lost, and nobody knows whether Postgres is still
/// working.
const SILENCE_LIMIT: Duration = Duration::from_secs(2 * 60);

/// How long other connections may use Postgres' answer to the question whether anything still runs.
const ANSWER_IS_FRESH: Duration = Duration::from_secs(1);

/// The time limit for all the work on a connection outside the pool.
const BESIDE_TIMEOUT: Duration = Duration::from_secs(5);

/// Cancels what runs in these transactions, but never a commit that waits for a standby. If such a commit were
/// cancelled, its changes would become visible without being replicated.
const CANCEL: &str = "
    select pg_cancel_backend(pid)
    from pg_stat_activity
    where state = 'active' and wait_event is distinct from 'SyncRep' and backend_xid in
";

/// Whether a statement of this role has run for longer than [`ASK_INTERVAL`]. A statement that waits for its client
/// does not count, because the rest of its client's message was lost and will not come. If `track_activities` is off,
/// Postgres does not know what runs, and the answer is yes.
const ANYTHING_RUNS: &str = "
    select exists (
        select
        from pg_stat_activity
        where datname = current_database() and usename = session_user and pid <> pg_backend_pid()
            and (
                state = 'active'
                    and wait_event_type is distinct from 'Client'
                    and query_start < now() - interval '2 seconds'
                or state = 'disabled'
            )
    )
";

/// Every database and role for which a connection was ever given up. This is a static because the pools of a process
/// may share nothing else.
static DATABASES: Mutex<Vec<Arc<Database>>> = Mutex::new(Vec::new());

/// The total number of places that count as lost. While it is 0, a delivery does not lock `DATABASES`.
static PLACES: AtomicUsize = AtomicUsize::new(0);

/// The given-up connections of one database and role. For all of them, a single connection outside the pools cancels
/// statements and asks Postgres whether anything still runs.
struct Database {
    name: DatabaseName,
    /// Stored because a role may not cancel what another role runs.
    role: String,
    places: Mutex<Vec<Place>>,
    to_cancel: Mutex<Vec<TransactionId>>,
    /// When Postgres was last asked whether anything runs, and the answer. The task that uses the connection outside
    /// the pools holds this lock.
    beside: tokio::sync::Mutex<Option<(Instant, Runs)>>,
}

/// The places that a given-up connection occupies: one in its pool, and perhaps one in a connection limit.
#[derive(Clone)]
struct Place {
    /// The options of the pool, which identify it.
    of_pool: Arc<PgConnectOptions>,
    /// The limit on the connections that deliveries hold, if this connection counts against it.
    of_limit: Option<Arc<Semaphore>>,
}

/// Whether a statement that was given up may still run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    Perhaps,
    No,
    /// Postgres cannot be asked.
    Unknown,
}

/// A given-up connection that keeps its place. Dropping it closes the connection.
struct GivenUp {
    connection: Option<PoolConnection<Postgres>>,
    pool: PgPool,
    /// The handler's transaction, if its statements may be cancelled.
    of_handler: Option<TransactionId>,
    permit: Option<OwnedSemaphorePermit>,
}

/// Counts a place as lost until this is dropped.
struct Counted<'a>(&'a Database, Place);

impl<'a> Counted<'a> {
    fn new(database: &'a Database, place: Place) -> Self {
        lock(&database.places).push(place.clone());
        PLACES.fetch_add(1, Ordering::Relaxed);
        Self(database, place)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let mut places = lock(&self.0.places);
        if let Some(at) = places.iter().position(|place| place.is_like(&self.1)) {
            places.swap_remove(at);
        }
        PLACES.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Place {
    fn is_like(&self, other: &Self) -> bool {
        let is_of_limit = match (&self.of_limit, &other.of_limit) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        is_of_limit && Arc::ptr_eq(&self.of_pool, &other.of_pool)
    }
}

/// Whether Postgres has answered everything that was sent, or the connection is lost. In both cases, nothing runs.
pub(super) fn has_answered(connection: &mut PgConnection) -> bool {
    let read = pin!(read_pending(connection));
    read.poll(&mut Context::from_waker(Waker::noop()))
        .is_ready()
}

/// Spawns a task that keeps a connection open until Postgres has answered. Until then, the connection keeps its place
/// in the pool.
pub(super) fn keep_place(
    connection: PoolConnection<Postgres>,
    pool: &PgPool,
    of_handler: Option<TransactionId>,
    permit: Option<OwnedSemaphorePermit>,
) {
    let given_up = GivenUp {
        connection: Some(connection),
        pool: pool.clone(),
        of_handler,
        permit,
    };
    // Without a runtime, no task could read the answer. Dropping `given_up` then closes the connection.
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(given_up.let_go());
    }
}

/// How many places of a pool are held by given-up connections.
pub(super) fn of_pool(pool: &PgPool) -> usize {
    let options = pool.connect_options();
    count(pool, |place| Arc::ptr_eq(&place.of_pool, &options))
}

/// How many of the connections that this limit allows are given up.
pub(super) fn of_limit(pool: &PgPool, limit: &Arc<Semaphore>) -> usize {
    count(pool, |place| {
        let of_limit = place.of_limit.as_ref();
        of_limit.is_some_and(|of_limit| Arc::ptr_eq(of_limit, limit))
    })
}

fn count(pool: &PgPool, is_counted: impl Fn(&Place) -> bool) -> usize {
    if PLACES.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    let database = Database::of(pool);
    let places = lock(&database.places);
    places.iter().filter(|place| is_counted(place)).count()
}

/// Reads the answers to statements that were cancelled, or whose rows were not all read. If a handler's statement still
/// runs after [`GRACE`], it is cancelled first.
pub(super) async fn read_answers(
    connection: &mut PgConnection,
    pool: &PgPool,
    of_handler: Option<&TransactionId>,
) -> sqlx::Result<()> {
    let Some(id) = of_handler else {
        return read_pending(connection).await;
    };
    if let Ok(read) = timeout(GRACE, read_pending(connection)).await {
        return read;
    }
    Database::of(pool).cancel(pool, id.clone()).await;
    read_pending(connection).await
}

impl GivenUp {
    async fn let_go(mut self) {
        // When the application calls `Pool::close`, the wait for Postgres' answer ends at once, because `close` returns
        // only after each connection has left the pool.
        let mut closing = self.pool.close_event();
        let answered = closing.do_until(self.answered()).await;
        if answered.is_ok()
            && let Some(mut connection) = self.connection.take()
        {
            // The connection keeps its place until it is closed. The pool then opens another one if it has fewer than
            // `min_connections`.
            connection.close_on_drop();
        }
    }

    /// Waits until Postgres has answered, the connection is lost, or nothing runs for the connection. In the last case,
    /// no answer will come.
    async fn answered(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if timeout(GRACE, read_pending(connection)).await.is_ok() {
            return;
        }
        // A connection that gets its answer within a moment does not count as lost, because a caller that needs a place
        // can wait that long.
        let database = Database::of(&self.pool);
        let place = Place {
            of_pool: self.pool.connect_options(),
            of_limit: self
                .permit
                .as_ref()
                .map(|permit| permit.semaphore().clone()),
        };
        let _counted = Counted::new(&database, place);
        let mut heard_at = Instant::now();
        loop {
            let read = read_answers(connection, &self.pool, self.of_handler.as_ref());
            if timeout(ASK_INTERVAL, read).await.is_ok() {
                return;
            }
            match database.runs(&self.pool).await {
                Runs::Perhaps => heard_at = Instant::now(),
                Runs::Unknown if heard_at.elapsed() < SILENCE_LIMIT => {}
                Runs::No | Runs::Unknown => {
                    tracing::debug!("closing a connection whose peer is silent");
                    return;
                }
            }
        }
    }
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            // Postgres rolls back once it sees that the socket is closed. Sending Terminate could block.
            drop(connection.detach());
        }
    }
}

impl Database {
    fn of(pool: &PgPool) -> Arc<Self> {
        let options = pool.connect_options();
        let (name, role) = (DatabaseName::of(&options), options.get_username());
        let mut all = lock(&DATABASES);
        let is_it = |known: &&Arc<Self>| known.name == name && known.role == role;
        if let Some(known) = all.iter().find(is_it) {
            return known.clone();
        }
        let database = Arc::new(Self {
            name,
            role: role.to_owned(),
            places: Mutex::default(),
            to_cancel: Mutex::default(),
            beside: tokio::sync::Mutex::default(),
        });
        all.push(database.clone());
        database
    }

    /// Makes Postgres cancel what runs in this transaction, and in the transactions that other callers want to cancel.
    /// Each transaction is found by its own id. The id of its session is not enough, because the session may be running
    /// another transaction by now.
    async fn cancel(&self, pool: &PgPool, id: TransactionId) {
        lock(&self.to_cancel).push(id);
        let _beside = self.beside.lock().await;
        let ids = std::mem::take(&mut *lock(&self.to_cancel));
        if ids.is_empty() {
            // Another caller has cancelled the statement.
            return;
        }
        let cancelled = beside(pool, async |connection| {
            let mut cancel = QueryBuilder::new(CANCEL);
            cancel.push_tuples(ids, |mut tuple, id| {
                tuple.push_bind(id.0).push_unseparated("::xid8::xid");
            });
            cancel.build().execute(connection).await
        });
        if let Err(error) = cancelled.await {
            tracing::debug!(%error, "could not cancel the statement of a handler that was given up");
        }
    }

    /// Whether anything still runs, according to Postgres.
    async fn runs(&self, pool: &PgPool) -> Runs {
        let mut known = self.beside.lock().await;
        if let Some((at, answer)) = *known
            && at.elapsed() < ANSWER_IS_FRESH
        {
            return answer;
        }
        let asked = beside(pool, async |connection| {
            sqlx::query_scalar(ANYTHING_RUNS)
                .fetch_one(connection)
                .await
        });
        let answer = match asked.await {
            Ok(true) => Runs::Perhaps,
            Ok(false) => Runs::No,
            // Postgres has answered with an error, so it can be reached, and something may still run.
            Err(DatabaseError::Sqlx(error)) if error.as_database_error().is_some() => Runs::Perhaps,
            Err(_) => Runs::Unknown,
        };
        *known = Some((Instant::now(), answer));
        answer
    }
}

/// Runs `work` on a connection outside the pool, because the pool may have no free connection.
async fn beside<T>(
    pool: &PgPool,
    work: impl AsyncFnOnce(&mut PgConnection) -> sqlx::Result<T>,
) -> Result<T, DatabaseError> {
    let options = pool.connect_options();
    with_timeout(BESIDE_TIMEOUT, async {
        let mut connection = options.connect().await?;
        let done = work(&mut connection).await;
        connection.close().await?;
        done
    })
    .await
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds the lock.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
