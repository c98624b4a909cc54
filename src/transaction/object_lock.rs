//! `serialize_by`: the lock that makes all processes run the deliveries of one object one at a time. Before a delivery
//! waits for this lock, it has waited for other deliveries in its process, without a connection
//! (`layer/request/guards.rs`).

use sqlx::AssertSqlSafe;
use tokio::time::Instant;

use super::claim::time_until;
use super::connection::TxConnection;
use super::pg_error::{DatabaseError, with_timeout};
use super::pg_time::millis;
use super::store::Store;
use crate::provider::delivery::Delivery;

const LOCK_OBJECT: &str = include_str!("lock_object.sql");
const KEEP_OBJECT: &str = include_str!("keep_object.sql");

/// Begins a new transaction in the same session, with a new snapshot. The settings of the old transaction end with it.
/// The limit on idle transactions is set in the same message, because a host that is lost after this must not hold the
/// object. The transaction of a claim begins as in [`BEGIN_CLAIM`](super::store::BEGIN_CLAIM).
fn begin_again(idle_timeout: &str, is_claim: bool) -> AssertSqlSafe<String> {
    let setting = match is_claim {
        true => "; set local enable_seqscan = off",
        false => "",
    };
    AssertSqlSafe(format!(
        "rollback and chain; set local idle_in_transaction_session_timeout = {idle_timeout}{setting}"
    ))
}

impl Store {
    /// Waits until no other delivery of the object is being processed, and locks the object until the end of the
    /// transaction. The transaction sees what was committed during the wait. Returns `false` if the wait timed out.
    pub(super) async fn lock_object(
        &self,
        connection: &mut TxConnection,
        delivery: &Delivery,
        object: &str,
        deadline: Instant,
        idle_timeout: &str,
        is_claim: bool,
    ) -> Result<bool, DatabaseError> {
        let wait = time_until(deadline);
        let locked = with_timeout(
            wait + self.timeout,
            sqlx::query_scalar(LOCK_OBJECT)
                .bind(delivery.endpoint())
                .bind(delivery.key_tenant())
                .bind(object)
                .bind(millis(wait))
                .bind(idle_timeout)
                .fetch_one(&mut **connection),
        );
        match locked.await {
            Ok(false) => return Ok(true),
            Ok(true) => {}
            Err(error) if error.is_wait_over() => return Ok(false),
            Err(error) => return Err(error),
        }
        // If this fails, the connection is closed, and the session's lock ends with it.
        with_timeout(self.timeout, async {
            sqlx::raw_sql(begin_again(idle_timeout, is_claim))
                .execute(&mut **connection)
                .await?;
            sqlx::query(KEEP_OBJECT)
                .bind(delivery.endpoint())
                .bind(delivery.key_tenant())
                .bind(object)
                .execute(&mut **connection)
                .await
        })
        .await?;
        Ok(true)
    }
}
