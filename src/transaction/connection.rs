//! A pooled connection with an open transaction.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres};
use tokio::sync::OwnedSemaphorePermit;

/// A connection with an open transaction.
///
/// Dropping it closes the connection: one with an open transaction or an unfinished statement
/// must never return to the pool.
pub(super) struct TxConnection {
    connection: Option<PoolConnection<Postgres>>,
    /// Held for as long as the connection.
    permit: Option<OwnedSemaphorePermit>,
}

/// Postgres' id of the transaction of a claim, as text: sqlx would look up the type `xid8` on
/// every new connection.
pub(super) struct TransactionId(pub(super) String);

/// How long a connection may take to return to the pool, with a rollback and the pool's own work. sqlx limits the
/// close of a connection to the same time.
const RETURN_TIMEOUT: Duration = Duration::from_secs(5);

const UNTIL_RELEASE: &str = "the connection is present until it is released or dropped";

impl TxConnection {
    pub(super) fn new(connection: PoolConnection<Postgres>) -> Self {
        Self {
            connection: Some(connection),
            permit: None,
        }
    }

    pub(super) fn with_permit(mut self, permit: Option<OwnedSemaphorePermit>) -> Self {
        self.permit = permit;
        self
    }

    /// Returns the connection to the pool. Its transaction must have ended.
    ///
    /// The pool pings a connection that returns, and sqlx 0.9.0 waits for the answer without a limit. A peer that falls
    /// silent after the commit would take its place of the pool for ever.
    pub(super) fn release(mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        // Hidden in sqlx's docs. Dropping a connection of the pool spawns the same, without the limit.
        let returned = connection.return_to_pool();
        tokio::spawn(async move {
            // Dropped unfinished, it closes the connection and frees the place.
            if tokio::time::timeout(RETURN_TIMEOUT, returned)
                .await
                .is_err()
            {
                tracing::debug!("closing a connection that does not return to the pool in time");
            }
            // Opens another one if the pool has fewer than `min_connections`.
            drop(connection);
        });
    }
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
        if let Some(connection) = self.connection.take() {
            // Postgres rolls back when the socket closes. Sending Terminate could block.
            drop(connection.detach());
        }
    }
}
