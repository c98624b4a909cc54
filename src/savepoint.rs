//! Savepoints that keep to the transaction of the claim, whatever fails or is cancelled.
//!
//! If sqlx 0.9.0 cannot make a savepoint, or is cancelled while it makes one, it gives up a
//! level of its own count and queues the rollback of that level; `Transaction::begin` gives
//! up two. When the count is at zero, the transaction is over, and each further statement is
//! committed by itself. So the count is checked before each use of the connection.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;

use sqlx::{PgConnection, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;

use crate::database::{Manager, read_what_is_left};

/// sqlx's count in the transaction of a claim, outside of savepoints.
pub(crate) const CLAIM_DEPTH: usize = 1;

const GONE: &str = "the transaction of the delivery is gone or in doubt, so nothing more is \
                    written: a savepoint could not be made, was cancelled while it began or \
                    ended, or was never ended";

/// The connection, if the transaction or savepoint at `depth` is what is open on it.
///
/// # Panics
///
/// If it is not. At a lower count, what would be written now would be committed by itself,
/// although the delivery fails, and once more for each of its retries. At a higher one, sqlx
/// would take the savepoints of others for its own.
#[track_caller]
#[expect(
    clippy::panic,
    reason = "`Deref` cannot fail otherwise, and the layer makes it a 500"
)]
pub(crate) fn intact(connection: &mut PgConnection, depth: usize) -> &mut PgConnection {
    if Manager::get_transaction_depth(connection) != depth {
        panic!("{GONE}");
    }
    connection
}

/// What [`DedupeTx::transaction`](crate::DedupeTx::transaction) runs.
pub(crate) type Work<'s, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 's>>;

/// A savepoint in the transaction of a delivery, see [`DedupeTx::begin`](crate::DedupeTx::begin).
///
/// It dereferences to [`PgConnection`], so queries run with `.execute(&mut *savepoint)`. It
/// ends with [`commit`](Self::commit) or [`rollback`](Self::rollback). What was committed is
/// kept if the delivery is.
///
/// Dropping it rolls it back, too, along with the next statement. After a statement in it was
/// cancelled, by a timeout for example, end it with `rollback`: if the statement has failed, the
/// next one would report that and not be sent.
///
/// ```
/// use idempotent_webhook::DedupeTx;
///
/// /// Books a payment, or says why not if the order does not take it.
/// async fn book(tx: &mut DedupeTx, order: i64) -> sqlx::Result<()> {
///     let mut savepoint = tx.begin().await?;
///     let booked = sqlx::query("insert into payments (order_id) values ($1)")
///         .bind(order)
///         .execute(&mut *savepoint)
///         .await;
///     match booked {
///         Ok(_) => savepoint.commit().await,
///         Err(error) => {
///             savepoint.rollback().await?;
///             sqlx::query("insert into refused_payments (order_id, reason) values ($1, $2)")
///                 .bind(order)
///                 .bind(error.to_string())
///                 .execute(&mut **tx)
///                 .await?;
///             Ok(())
///         }
///     }
/// }
/// ```
#[must_use = "a savepoint that is dropped is rolled back"]
pub struct Savepoint<'t> {
    connection: &'t mut PgConnection,
    /// sqlx's count within it.
    depth: usize,
    open: bool,
}

impl<'t> Savepoint<'t> {
    pub(crate) async fn begin_on(connection: &'t mut PgConnection) -> sqlx::Result<Self> {
        // If these fail, or are cancelled, nothing is given up. What cancelled statements have
        // left unread is read before sqlx's own `begin`, which is left with one round trip.
        read_what_is_left(connection).await?;
        sqlx::raw_sql("savepoint idempotent_webhook; release savepoint idempotent_webhook")
            .execute(&mut *connection)
            .await?;
        Manager::begin(connection, None).await?;
        let depth = Manager::get_transaction_depth(connection);
        Ok(Self {
            connection,
            depth,
            open: true,
        })
    }

    /// Makes a savepoint within this one.
    ///
    /// # Errors
    ///
    /// Whatever Postgres reports, among it a transaction that is aborted.
    pub async fn begin(&mut self) -> sqlx::Result<Savepoint<'_>> {
        Savepoint::begin_on(self).await
    }

    /// Runs `work` in a savepoint within this one, see
    /// [`DedupeTx::transaction`](crate::DedupeTx::transaction).
    ///
    /// # Errors
    ///
    /// What `work` returns, or what Postgres reports of the savepoint.
    pub async fn transaction<T, E: From<sqlx::Error>>(
        &mut self,
        work: impl for<'s> FnOnce(&'s mut Savepoint<'_>) -> Work<'s, T, E> + Send,
    ) -> Result<T, E> {
        self.begin().await?.run(work).await
    }

    /// Hides sqlx's, which fails within a transaction and gives up one of its levels.
    #[doc(hidden)]
    pub async fn begin_with(&mut self, _: impl SqlSafeStr) -> sqlx::Result<Savepoint<'_>> {
        Err(sqlx::Error::InvalidSavePointStatement)
    }

    /// Keeps what was done through it, as part of what it was made in.
    ///
    /// # Errors
    ///
    /// Whatever Postgres reports, among it a transaction that is aborted.
    pub async fn commit(mut self) -> sqlx::Result<()> {
        // Otherwise sqlx would commit or roll back something else, even the transaction.
        let connection = intact(self.connection, self.depth);
        // If this is cancelled, nobody knows whether the savepoint is still there, and a
        // rollback might go back to an older one of the same name. Then sqlx's count stays
        // where it is, and all that follows is refused.
        self.open = false;
        let committed = Manager::commit(connection).await;
        self.open = is_refused(&committed);
        committed
    }

    /// Undoes what was done through it, statements that failed included, also one that failed
    /// after it was cancelled.
    ///
    /// # Errors
    ///
    /// Whatever Postgres reports.
    pub async fn rollback(mut self) -> sqlx::Result<()> {
        let connection = intact(self.connection, self.depth);
        // As in `commit`.
        self.open = false;
        read_what_is_left(connection).await?;
        let rolled_back = Manager::rollback(connection).await;
        self.open = is_refused(&rolled_back);
        rolled_back
    }

    pub(crate) async fn run<T, E: From<sqlx::Error>>(
        mut self,
        work: impl for<'s> FnOnce(&'s mut Savepoint<'_>) -> Work<'s, T, E> + Send,
    ) -> Result<T, E> {
        let done = work(&mut self).await?;
        self.commit().await?;
        Ok(done)
    }
}

/// Whether Postgres has refused to end a savepoint, so that it is surely still there.
fn is_refused(ended: &sqlx::Result<()>) -> bool {
    matches!(ended, Err(sqlx::Error::Database(_)))
}

impl Deref for Savepoint<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.connection
    }
}

impl DerefMut for Savepoint<'_> {
    /// # Panics
    ///
    /// If the savepoint is gone, see [`DedupeTx`](crate::DedupeTx).
    #[track_caller]
    fn deref_mut(&mut self) -> &mut PgConnection {
        intact(self.connection, self.depth)
    }
}

impl Drop for Savepoint<'_> {
    fn drop(&mut self) {
        // At a higher count something within was left open, which the commit will not pass; at
        // a lower one this has been rolled back.
        if self.open && Manager::get_transaction_depth(self.connection) == self.depth {
            Manager::start_rollback(self.connection);
        }
    }
}

impl fmt::Debug for Savepoint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Savepoint").finish_non_exhaustive()
    }
}
