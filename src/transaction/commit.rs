//! The commit of a delivery, and its rollback. Which of the two, `request/attempt.rs` decides.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Row};
use sqlx_core::transaction::TransactionManager;

use super::after_commit::AfterCommit;
use super::connection::{TransactionId, TxConnection};
use super::pg_error::{DatabaseError, Manager, read_pending, with_timeout};
use super::savepoint::CLAIM_DEPTH;
use super::slot::ClaimedTx;
use crate::random::random;

/// The current transaction, which must be the one of the claim, with a nonce. Fails in an aborted
/// transaction, whose `commit` Postgres would answer with a rollback and no error.
///
/// The nonce proves that this is the answer to this query: after a `COPY` that failed or was
/// broken off, sqlx takes the answers to earlier statements for those to later ones.
///
/// One message with this query and the commit would save a round trip, but no CPU time: a message of two
/// statements cannot be prepared, so the query would be parsed and planned each time. It would also commit what
/// sqlx is out of step with.
const CURRENT_TRANSACTION: &str = "select pg_current_xact_id_if_assigned()::text || $1::text";

/// Checks what is deferred to the commit.
const CHECK_CONSTRAINTS: &str = "set constraints all immediate";

/// Rolls back and returns the nonce. Begins an empty transaction, since sqlx still counts one.
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

/// Why the handler's work is not committed, or not known to be.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// A statement had failed, and the handler has ignored the error.
    Aborted,
    /// The claim's transaction has ended, or a savepoint is open.
    TransactionReplaced,
    Database(DatabaseError),
}

impl CommitError {
    /// Why not, by whether the transaction was the claim's.
    fn of(is_the_claims: Result<bool, DatabaseError>) -> Result<(), Self> {
        match is_the_claims {
            Ok(true) => Ok(()),
            Ok(false) => Err(Self::TransactionReplaced),
            Err(error) if error.is_aborted_transaction() => Err(Self::Aborted),
            Err(error) => Err(Self::Database(error)),
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
            let is_the_claims = connection.is_in(id).await?;
            if is_the_claims {
                Manager::commit(&mut connection).await?;
            }
            Ok(is_the_claims)
        });
        match CommitError::of(committed.await) {
            Ok(()) => {
                connection.release();
                Ok(after_commit)
            }
            // Closed: whether it is committed is not known.
            Err(error @ CommitError::Database(_)) => Err(error),
            Err(error) => {
                connection.roll_back(timeout).await;
                Err(error)
            }
        }
    }

    /// Does what precedes a commit, and rolls back: what the commit would refuse is refused, but for what Postgres sees at
    /// the commit only, such as a conflict of serializable transactions.
    pub(crate) async fn rehearse_commit(self) -> Result<(), CommitError> {
        let Self {
            mut connection,
            id,
            timeout,
            ..
        } = self;
        let checked = with_timeout(timeout, async {
            let is_the_claims = connection.is_in(id).await?;
            if is_the_claims {
                sqlx::raw_sql(CHECK_CONSTRAINTS)
                    .execute(&mut *connection)
                    .await?;
            }
            Ok(is_the_claims)
        })
        .await;
        connection.roll_back(timeout).await;
        CommitError::of(checked)
    }

    /// Rolls back and waits for it, so that the next attempt can claim the delivery at once.
    pub(crate) async fn roll_back(self) {
        self.connection.roll_back(self.timeout).await;
    }
}

impl TxConnection {
    /// Whether the current transaction is that of the claim, and has not failed.
    async fn is_in(&mut self, claim: TransactionId) -> sqlx::Result<bool> {
        if Manager::get_transaction_depth(self) != CLAIM_DEPTH {
            return Ok(false);
        }
        let nonce = Nonce::new();
        read_pending(self).await?;
        let current: Option<String> = sqlx::query_scalar(CURRENT_TRANSACTION)
            .bind(&nonce.0)
            .fetch_one(&mut **self)
            .await?;
        Ok(current == Some(claim.0 + &nonce.0))
    }

    /// Rolls back and waits for it.
    ///
    /// If it cannot be rolled back, the connection is closed, which has the same effect a little
    /// later. It is also closed if sqlx is out of step with Postgres, or counts another depth
    /// than that of the claim.
    pub(super) async fn roll_back(mut self, timeout: Duration) {
        let intact = Manager::get_transaction_depth(&self) == CLAIM_DEPTH;
        let nonce = Nonce::new();
        let rolled_back = with_timeout(timeout, async {
            read_pending(&mut self).await?;
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
