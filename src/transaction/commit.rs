//! The commit of a delivery, and its rollback. `layer/request/attempt.rs` decides between them. If the answer to the
//! commit is lost, nobody knows whether the commit took effect, and the sender gets a 503 (`layer/request/failure.rs`).

use std::time::Duration;

use sqlx::{AssertSqlSafe, Row};
use sqlx_core::transaction::TransactionManager;

use super::after_commit::AfterCommit;
use super::connection::{TransactionId, TxConnection};
use super::pg_error::{DatabaseError, Manager, read_pending, with_timeout};
use super::savepoint::CLAIM_DEPTH;
use super::slot::ClaimedTx;
use super::written::{self, RowsByTable};
use crate::tasks_and_errors::random::random;

/// Returns the id of the current transaction, which must be the claim's, followed by a nonce. Fails in an aborted
/// transaction, because Postgres would answer its `commit` with a rollback and no error.
///
/// The nonce proves that this is the answer to this query: after a `COPY` that failed or was interrupted, sqlx mistakes
/// the answers to earlier statements for answers to later ones.
///
/// Sending this query and the commit in one message would save a round trip, but no CPU time: a message with two
/// statements cannot be prepared, so Postgres would parse and plan the query each time. Such a message would also
/// commit when sqlx mistakes an earlier answer for the answer to this query.
const CURRENT_TRANSACTION: &str = "select pg_current_xact_id_if_assigned()::text || $1::text";

/// Checks the constraints that are deferred to the commit.
const CHECK_CONSTRAINTS: &str = "set constraints all immediate";

/// Rolls back the transaction that a rehearsal is in, even if the handler has begun another one. Resets the read-only
/// setting and releases the locks of the session, because PgBouncer may give the session to another client. Returns
/// whether the transaction of the claim was committed.
fn end_rehearsal(id: &TransactionId) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!(
        "rollback; reset default_transaction_read_only;
         select pg_xact_status('{}'::xid8) = 'committed', pg_advisory_unlock_all()::text",
        id.0
    ))
}

/// Rolls back to the savepoint of `refuse_commits.sql`, which exists only in the transaction of the claim.
const ROLL_BACK_TO_BEGIN: &str = "rollback to savepoint idempotent_webhook_rehearsal";

/// Rolls back and returns the nonce. Begins an empty transaction, because sqlx still counts one transaction as open.
fn roll_back_and_return(nonce: &Nonce) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!("rollback and chain; select '{}'", nonce.0))
}

/// A text that no statement of a handler returns.
struct Nonce(String);

impl Nonce {
    fn new() -> Self {
        Self(format!("/{:016x}", random()))
    }
}

/// Why the handler's work is not committed, or why nobody knows whether it is.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// A statement failed, and the handler ignored the error.
    Aborted,
    /// The claim's transaction has ended, or a savepoint is open.
    TransactionReplaced,
    Database(DatabaseError),
}

/// Why a rehearsed delivery would not be processed.
#[derive(Debug)]
pub(crate) enum RehearsalError {
    /// A commit would have failed.
    NotCommitted(CommitError),
    /// The handler has ended the transaction of the claim. Later writes of the handler may be committed.
    Left,
}

impl CommitError {
    /// Returns an error unless the transaction was the claim's.
    fn of(is_the_claims: Result<bool, DatabaseError>) -> Result<(), Self> {
        match is_the_claims? {
            true => Ok(()),
            false => Err(Self::TransactionReplaced),
        }
    }
}

impl From<DatabaseError> for CommitError {
    fn from(error: DatabaseError) -> Self {
        match error.is_aborted_transaction() {
            true => Self::Aborted,
            false => Self::Database(error),
        }
    }
}

impl ClaimedTx {
    /// Commits if the transaction is still the claim's. Returns the work to do after the commit.
    pub(crate) async fn commit(self) -> Result<AfterCommit, CommitError> {
        let Self {
            mut connection,
            id,
            timeout,
            after_commit,
            ..
        } = self;
        let committed = with_timeout(timeout, async {
            // Statements that the handler has left running may still succeed. They are cancelled only if this wait
            // times out.
            read_pending(&mut connection).await?;
            let is_the_claims = connection.is_in(id).await?;
            if is_the_claims {
                connection.take_from_handler();
                Manager::commit(&mut connection).await?;
            }
            Ok(is_the_claims)
        });
        match CommitError::of(committed.await) {
            Ok(()) => {
                connection.release();
                Ok(after_commit)
            }
            // The connection is closed: nobody knows whether the transaction is committed.
            Err(error @ CommitError::Database(_)) => Err(error),
            Err(error) => {
                connection.roll_back(timeout).await;
                Err(error)
            }
        }
    }

    /// Does everything that precedes a commit, and rolls back. This finds everything that would make the commit fail,
    /// except problems that Postgres detects only at the commit itself, such as a conflict of serializable
    /// transactions. Returns the rows that the handler has written, or `None` if Postgres does not count rows.
    pub(crate) async fn rehearse_commit(mut self) -> Result<Option<RowsByTable>, RehearsalError> {
        let timeout = self.timeout;
        let before = self.written_before.take();
        self.end_rehearsal(async |connection: &mut TxConnection| {
            if Manager::get_transaction_depth(connection) != CLAIM_DEPTH {
                // A savepoint is open.
                return Err(CommitError::TransactionReplaced);
            }
            let checked = sqlx::raw_sql(CHECK_CONSTRAINTS).execute(&mut **connection);
            with_timeout(timeout, checked).await?;
            // The deferred triggers have run, so their rows are counted.
            let after = with_timeout(timeout, written::read(connection)).await?;
            let both = before.zip(after);
            Ok(both.map(|(before, after)| written::between(&before, after)))
        })
        .await
    }

    /// Rolls back a rehearsal whose handler has failed.
    pub(crate) async fn rehearse_rollback(self) -> Result<(), RehearsalError> {
        match self.end_rehearsal(async |_| Ok(())).await {
            // The handler's response already reports the failure.
            Err(RehearsalError::NotCommitted(CommitError::Aborted)) => Ok(()),
            ended => ended,
        }
    }

    /// Ends a rehearsal. If its transaction is still the claim's, `check` runs first.
    async fn end_rehearsal<T>(
        self,
        check: impl AsyncFnOnce(&mut TxConnection) -> Result<T, CommitError>,
    ) -> Result<T, RehearsalError> {
        let Self {
            mut connection,
            id,
            timeout,
            ..
        } = self;
        let id = &id;
        let is_the_claims = with_timeout(timeout, connection.is_of(id)).await;
        let checked = match CommitError::of(is_the_claims) {
            Err(CommitError::TransactionReplaced) => Err(RehearsalError::Left),
            Err(CommitError::Aborted) => {
                let has_savepoint = sqlx::raw_sql(ROLL_BACK_TO_BEGIN).execute(&mut *connection);
                match with_timeout(timeout, has_savepoint).await {
                    Err(error) if error.is_of_savepoint() => Err(RehearsalError::Left),
                    _ => Err(RehearsalError::NotCommitted(CommitError::Aborted)),
                }
            }
            Err(error) => Err(RehearsalError::NotCommitted(error)),
            Ok(()) => check(&mut connection)
                .await
                .map_err(RehearsalError::NotCommitted),
        };
        let was_committed = connection.end_rehearsal(id, timeout).await;
        match was_committed {
            true => Err(RehearsalError::Left),
            false => checked,
        }
    }

    /// Rolls back, and waits until that is done, so that the next attempt can claim the delivery at once.
    pub(crate) async fn roll_back(self) {
        self.connection.roll_back(self.timeout).await;
    }
}

impl TxConnection {
    /// Whether the current transaction is the claim's, without an open savepoint. Fails in an aborted transaction.
    async fn is_in(&mut self, claim: TransactionId) -> sqlx::Result<bool> {
        if Manager::get_transaction_depth(self) != CLAIM_DEPTH {
            return Ok(false);
        }
        self.is_of(&claim).await
    }

    /// Like [`is_in`](Self::is_in), but a savepoint may be open.
    async fn is_of(&mut self, claim: &TransactionId) -> sqlx::Result<bool> {
        let nonce = Nonce::new();
        self.read_answers().await?;
        let current: Option<String> = sqlx::query_scalar(CURRENT_TRANSACTION)
            .bind(&nonce.0)
            .fetch_one(&mut **self)
            .await?;
        Ok(current == Some(format!("{}{}", claim.0, nonce.0)))
    }

    /// Rolls back, waits for the rollback, and closes the connection, because later transactions of its session are
    /// read-only. Returns whether the transaction of the claim was committed.
    async fn end_rehearsal(mut self, claim: &TransactionId, timeout: Duration) -> bool {
        let ended = with_timeout(timeout, async {
            self.read_answers().await?;
            let row = sqlx::raw_sql(end_rehearsal(claim))
                .fetch_one(&mut *self)
                .await?;
            row.try_get::<Option<bool>, _>(0)
        });
        match ended.await {
            Ok(was_committed) => was_committed == Some(true),
            Err(error) => {
                tracing::debug!(%error, "could not roll back, closing the connection");
                false
            }
        }
    }

    /// Rolls back, and waits until that is done.
    ///
    /// If the rollback fails, the connection is closed: Postgres then rolls back a little later. The connection is also
    /// closed if sqlx is out of step with Postgres, or if sqlx's transaction depth is not the claim's.
    pub(super) async fn roll_back(mut self, timeout: Duration) {
        if self.is_of_rehearsal {
            // The caller does not ask whether the claim was committed, so this id is one that no transaction has.
            let none = TransactionId("0".into());
            self.end_rehearsal(&none, timeout).await;
            return;
        }
        let intact = Manager::get_transaction_depth(&self) == CLAIM_DEPTH;
        let nonce = Nonce::new();
        let rolled_back = with_timeout(timeout, async {
            self.read_answers().await?;
            let row = sqlx::raw_sql(roll_back_and_return(&nonce))
                .fetch_one(&mut *self)
                .await?;
            row.try_get::<String, _>(0)
        });
        match rolled_back.await {
            Ok(returned) if intact && returned == nonce.0 => {
                Manager::start_rollback(&mut self);
                self.release();
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "could not roll back, closing the connection"),
        }
    }
}
