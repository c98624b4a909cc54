//! Savepoints that stay within the transaction of the claim, no matter what fails or is cancelled.
//!
//! If sqlx 0.9.0 cannot make a savepoint, or is cancelled while it makes one, it decrements its transaction depth and
//! queues the rollback of that level. `Transaction::begin` even decrements the depth twice. At depth zero, the
//! transaction is over, and each further statement is committed on its own. To prevent that, the depth is checked
//! before each use of the connection.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::{PgConnection, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;

use super::pg_error::{Manager, read_pending};

/// sqlx's transaction depth in the transaction of a claim, outside any savepoint.
pub(crate) const CLAIM_DEPTH: usize = 1;

const LOST: &str = "the transaction of the delivery is lost or in doubt, so nothing more is \
                    written: a savepoint could not be made, was cancelled while it began or \
                    ended, or was never ended";

/// Returns the connection, after checking that sqlx's transaction depth is `depth`.
///
/// # Panics
///
/// If the depth differs. At a lower depth, the next statement could be committed on its own although the delivery
/// fails, and each retry could commit it again. At a higher depth, sqlx would confuse this savepoint with another one.
#[track_caller]
#[expect(
    clippy::panic,
    reason = "`Deref` cannot fail otherwise, and the layer makes it a 500"
)]
pub(crate) fn intact(connection: &mut PgConnection, depth: usize) -> &mut PgConnection {
    if Manager::get_transaction_depth(connection) != depth {
        panic!("{LOST}");
    }
    connection
}

/// The work that [`DedupeTx::transaction`](crate::DedupeTx::transaction) runs.
pub(crate) type Work<'s, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 's>>;

/// A savepoint in the transaction of a delivery, see [`DedupeTx::begin`](crate::DedupeTx::begin).
///
/// It dereferences to [`PgConnection`], so queries run with `.execute(&mut *savepoint)`. End it with
/// [`commit`](Self::commit) or [`rollback`](Self::rollback). The writes of a committed savepoint become permanent when
/// the delivery commits.
///
/// Dropping a savepoint also rolls it back; the rollback is sent with the next statement. If the handler then answers
/// success, the layer logs a warning, because it is easy to forget the commit. If a statement was cancelled, for
/// example by a timeout, end the savepoint with `rollback`. Otherwise, the next statement would report the error of the
/// cancelled statement and would not be sent.
///
/// ```
/// use idempotent_webhook::DedupeTx;
///
/// /// Books a payment, or records why it was refused.
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
    /// sqlx's transaction depth within the savepoint.
    depth: usize,
    open: bool,
    used: bool,
    /// Set if this savepoint was used, and is dropped without a commit or a rollback.
    dropped: Arc<AtomicBool>,
}

impl<'t> Savepoint<'t> {
    pub(super) async fn begin_on(
        connection: &'t mut PgConnection,
        dropped: Arc<AtomicBool>,
    ) -> sqlx::Result<Self> {
        // If these statements fail or are cancelled, sqlx's depth is unchanged. The answers to cancelled statements are
        // read here, so that sqlx's own `begin` is a single round trip.
        read_pending(connection).await?;
        sqlx::raw_sql("savepoint idempotent_webhook; release savepoint idempotent_webhook")
            .execute(&mut *connection)
            .await?;
        Manager::begin(connection, None).await?;
        let depth = Manager::get_transaction_depth(connection);
        Ok(Self {
            connection,
            depth,
            open: true,
            used: false,
            dropped,
        })
    }

    /// Leaves the savepoint open beyond this value. Returns its depth, for [`resume`](Self::resume).
    #[cfg(feature = "sea-orm")]
    pub(super) fn suspend(mut self) -> usize {
        self.open = false;
        self.depth
    }

    #[cfg(feature = "sea-orm")]
    pub(super) fn resume(
        connection: &'t mut PgConnection,
        depth: usize,
        dropped: Arc<AtomicBool>,
        used: bool,
    ) -> Self {
        Self {
            connection,
            depth,
            open: true,
            used,
            dropped,
        }
    }

    #[cfg(feature = "sea-orm")]
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    #[cfg(feature = "sea-orm")]
    pub(super) fn dropped(&self) -> Arc<AtomicBool> {
        self.dropped.clone()
    }

    /// Makes a savepoint within this one.
    ///
    /// # Errors
    ///
    /// Any error of Postgres, for example if the transaction is aborted.
    pub async fn begin(&mut self) -> sqlx::Result<Savepoint<'_>> {
        let dropped = self.dropped.clone();
        Savepoint::begin_on(self, dropped).await
    }

    /// Runs `work` in a savepoint within this one, see
    /// [`DedupeTx::transaction`](crate::DedupeTx::transaction).
    ///
    /// # Errors
    ///
    /// The error of `work`, or of Postgres for the savepoint itself.
    pub async fn transaction<T, E: From<sqlx::Error>>(
        &mut self,
        work: impl for<'s> FnOnce(&'s mut Savepoint<'_>) -> Work<'s, T, E> + Send,
    ) -> Result<T, E> {
        self.begin().await?.run(work).await
    }

    /// Hides sqlx's method, which fails within a transaction and makes sqlx count one level too few.
    #[doc(hidden)]
    pub async fn begin_with(&mut self, _: impl SqlSafeStr) -> sqlx::Result<Savepoint<'_>> {
        Err(sqlx::Error::InvalidSavePointStatement)
    }

    /// Keeps what was done through this savepoint, as part of the transaction or of the outer savepoint.
    ///
    /// # Errors
    ///
    /// Any error of Postgres, for example if the transaction is aborted.
    pub async fn commit(mut self) -> sqlx::Result<()> {
        // At another depth, sqlx would end a different savepoint, or the transaction.
        let connection = intact(self.connection, self.depth);
        // If the commit is cancelled, nobody knows whether the savepoint still exists, and a rollback might return to
        // an older savepoint of the same name. No rollback is queued in that case: sqlx's depth is left unchanged, and
        // everything that follows is refused.
        self.open = false;
        let committed = Manager::commit(connection).await;
        self.open = is_refused(&committed);
        committed
    }

    /// Undoes what was done through this savepoint, including failed and cancelled statements.
    ///
    /// # Errors
    ///
    /// Any error of Postgres.
    pub async fn rollback(mut self) -> sqlx::Result<()> {
        let connection = intact(self.connection, self.depth);
        // Set before the rollback is sent, for the same reason as in `commit`.
        self.open = false;
        read_pending(connection).await?;
        let rolled_back = Manager::rollback(connection).await;
        self.open = is_refused(&rolled_back);
        rolled_back
    }

    pub(crate) async fn run<T, E: From<sqlx::Error>>(
        mut self,
        work: impl for<'s> FnOnce(&'s mut Savepoint<'_>) -> Work<'s, T, E> + Send,
    ) -> Result<T, E> {
        match work(&mut self).await {
            Ok(done) => {
                self.commit().await?;
                Ok(done)
            }
            Err(error) => {
                // The caller wanted a rollback, so dropping the savepoint is not reported.
                self.used = false;
                Err(error)
            }
        }
    }
}

/// Whether Postgres has refused to end a savepoint, so that the savepoint certainly still exists.
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
    /// If the savepoint is lost, see [`DedupeTx`](crate::DedupeTx#what-is-refused).
    #[track_caller]
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.used = true;
        intact(self.connection, self.depth)
    }
}

impl Drop for Savepoint<'_> {
    fn drop(&mut self) {
        // At a higher depth, an inner savepoint is open, and the delivery's commit will be refused. At a lower depth,
        // this savepoint was already rolled back.
        if self.open && Manager::get_transaction_depth(self.connection) == self.depth {
            Manager::start_rollback(self.connection);
            if self.used {
                self.dropped.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl fmt::Debug for Savepoint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Savepoint").finish_non_exhaustive()
    }
}
