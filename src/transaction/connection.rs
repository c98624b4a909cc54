//! A pooled connection with an open transaction.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, Postgres, SqlStr};
use sqlx_core::transaction::TransactionManager;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::pg_error::{DatabaseError, Manager, with_deadline};
use super::{given_up, reachability};
use crate::tasks_and_errors::sqlx_error::is_unusable;

/// A connection with an open transaction.
///
/// Dropping it closes the connection as soon as Postgres has answered: a connection with an open transaction or an
/// unfinished statement must never return to the pool.
pub(super) struct TxConnection {
    connection: Option<PoolConnection<Postgres>>,
    pool: PgPool,
    /// The permit of the connection limit, held for as long as the connection.
    permit: Option<OwnedSemaphorePermit>,
    /// The transaction, while a handler uses it. If the layer drops the handler, for example at its timeout, statements
    /// that still run in the transaction may be cancelled.
    of_handler: Option<TransactionId>,
    /// Whether the session belongs to a rehearsal. Nothing else may use such a session.
    pub(super) is_of_rehearsal: bool,
}

/// Postgres' id of the transaction of a claim. The id is a text, because sqlx would look up the type `xid8` in Postgres
/// on every new connection.
#[derive(Clone, Debug)]
pub(super) struct TransactionId(pub(super) Arc<str>);

/// How long a connection may take to return to the pool, including a rollback and the pool's own work. sqlx limits the
/// closing of a connection to the same time.
const RETURN_TIMEOUT: Duration = Duration::from_secs(5);

const UNTIL_RELEASE: &str = "the connection is present until it is released or dropped";

impl TxConnection {
    /// Begins a transaction on a connection without one. The statement must be one that fails within an open
    /// transaction.
    pub(super) async fn begin(
        pool: &PgPool,
        begin: SqlStr,
        deadline: Instant,
    ) -> Result<Self, DatabaseError> {
        let mut connections_left = pool.options().get_max_connections();
        loop {
            let mut connection = Self {
                connection: Some(acquire(pool, deadline).await?),
                pool: pool.clone(),
                permit: None,
                of_handler: None,
                is_of_rehearsal: false,
            };
            let begun = Manager::begin(&mut connection, Some(begin.clone()));
            match with_deadline(deadline, begun).await {
                Ok(()) => {
                    reachability::is_there(pool);
                    return Ok(connection);
                }
                Err(DatabaseError::Sqlx(error)) if connections_left > 0 && is_unusable(&error) => {
                    connections_left -= 1;
                    tracing::debug!(%error, "closing an unusable connection of the pool");
                }
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn with_permit(mut self, permit: Option<OwnedSemaphorePermit>) -> Self {
        self.permit = permit;
        self
    }

    pub(super) fn of_rehearsal(mut self) -> Self {
        self.is_of_rehearsal = true;
        self
    }

    /// Notes that a handler gets the transaction.
    pub(super) fn give_to_handler(&mut self, id: &TransactionId) {
        self.of_handler = Some(id.clone());
    }

    /// Notes that the commit follows. From here on, nothing is cancelled.
    pub(super) fn take_from_handler(&mut self) {
        self.of_handler = None;
    }

    /// Reads the answers to statements that were cancelled, or whose rows were not all read. Statements that a handler
    /// has left running are cancelled.
    pub(super) async fn read_answers(&mut self) -> sqlx::Result<()> {
        let of_handler = self.of_handler.clone();
        let pool = self.pool.clone();
        given_up::read_answers(self, &pool, of_handler.as_ref()).await
    }

    /// Returns the connection to the pool. Its transaction must have ended.
    ///
    /// The pool pings a connection that returns, and sqlx 0.9.0 waits for the answer without a limit. If the server or
    /// the network fell silent after the commit, the connection would count as one of the pool's connections forever.
    pub(super) fn release(mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        // `return_to_pool` is hidden in sqlx's docs. Dropping a connection of the pool does the same work in a task,
        // without a time limit.
        let returned = connection.return_to_pool();
        tokio::spawn(async move {
            // Dropping the unfinished future closes the connection, so that the pool can open another one.
            if tokio::time::timeout(RETURN_TIMEOUT, returned)
                .await
                .is_err()
            {
                tracing::debug!("closing a connection that does not return to the pool in time");
            }
            // The pool opens another one if it has fewer than `min_connections`.
            drop(connection);
        });
    }
}

/// Takes a connection from the pool. If it gets none in time, the error says whether all connections are in use or
/// Postgres does not answer. sqlx's own timeout, which may be shorter than `deadline`, gives no reason.
async fn acquire(
    pool: &PgPool,
    deadline: Instant,
) -> Result<PoolConnection<Postgres>, DatabaseError> {
    // An idle connection is taken without the pool's ping, because the `begin` that follows tests it. This skips the
    // hook `before_acquire`, and sqlx does not say whether the pool has such a hook. If the pool does not ping, it may
    // test connections in this hook, so `acquire` is used. Taking an idle connection overtakes no waiting task, because
    // the pool's semaphore hands a free permit to the first task in its queue.
    if pool.options().get_test_before_acquire()
        && let Some(connection) = pool.try_acquire()
    {
        return Ok(connection);
    }
    let given_up = given_up::of_pool(pool);
    if is_in_use(pool) && fills(given_up, pool) {
        return Err(DatabaseError::GivenUp(given_up));
    }
    // This is read before `acquire` opens or tests a connection, because that connection counts as in use.
    let waits_for_others = is_in_use(pool);
    // Boxed because it is by far the largest future of a request.
    let mut acquiring = Box::pin(pool.acquire());
    // The search for the cause starts at half of the shorter limit, so that the cause is known when the time is over.
    let now = Instant::now();
    let limit = deadline.saturating_duration_since(now);
    let half = now + limit.min(pool.options().get_acquire_timeout()) / 2;
    let acquired = match with_deadline(half, acquiring.as_mut()).await {
        Err(DatabaseError::TimedOut) => {
            if !(waits_for_others && is_in_use(pool)) {
                reachability::look(pool);
            }
            with_deadline(deadline, acquiring).await
        }
        acquired => acquired,
    };
    match acquired {
        Err(DatabaseError::TimedOut | DatabaseError::Sqlx(sqlx::Error::PoolTimedOut)) => {
            if waits_for_others && is_in_use(pool) {
                let connections = pool.options().get_max_connections();
                return Err(DatabaseError::PoolInUse(connections));
            }
            // If all connections were in use until now, nothing has looked for the cause yet. The result helps the next
            // deliveries.
            reachability::look(pool);
            Err(reachability::is_away(pool).unwrap_or(DatabaseError::TimedOut))
        }
        Err(error) => {
            reachability::is_away(pool);
            Err(error)
        }
        Ok(connection) => Ok(connection),
    }
}

/// Whether given-up connections fill the pool, so that no connection becomes free until Postgres has answered on one of
/// them.
fn fills(given_up: usize, pool: &PgPool) -> bool {
    u32::try_from(given_up).is_ok_and(|given_up| given_up >= pool.options().get_max_connections())
}

/// Whether all connections of a pool are in use, and no more may be opened.
pub(super) fn is_in_use(pool: &PgPool) -> bool {
    pool.num_idle() == 0 && pool.size() >= pool.options().get_max_connections()
}

impl Deref for TxConnection {
    type Target = PgConnection;

    #[expect(
        clippy::expect_used,
        reason = "only `release` and `drop` take the connection out"
    )]
    fn deref(&self) -> &PgConnection {
        self.connection.as_deref().expect(UNTIL_RELEASE)
    }
}

impl DerefMut for TxConnection {
    #[expect(
        clippy::expect_used,
        reason = "only `release` and `drop` take the connection out"
    )]
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.connection.as_deref_mut().expect(UNTIL_RELEASE)
    }
}

impl Drop for TxConnection {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        if given_up::has_answered(&mut connection) {
            // Postgres rolls back when the socket closes. Sending Terminate could block.
            drop(connection.detach());
            return;
        }
        let of_handler = self.of_handler.take();
        given_up::keep_place(connection, &self.pool, of_handler, self.permit.take());
    }
}
