//! How much is kept of an endpoint at most.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::Row;
use tokio::time::Instant;

use crate::transaction::{DatabaseError, Store, with_timeout};

/// How long the result of a check holds. Until then, more may be kept than the quota says.
const CHECKED_FOR: Duration = Duration::from_secs(5);

/// Counts at most as many rows as there may be.
const IS_FULL: &str = "
    select count(*) >= $2 or coalesce(sum(body_bytes), 0) >= $3
    from (
        select body_bytes
        from idempotent_webhook.kept_deliveries
        where endpoint = $1
        limit $2
    ) as kept
";

/// The quota of an endpoint. Clones share the last check, and make the next one once.
#[derive(Clone, Debug)]
pub(crate) struct Quota {
    deliveries: i64,
    bytes: i64,
    checked: Arc<Mutex<Option<(Instant, bool)>>>,
    /// Held by the one that checks again.
    check: Arc<tokio::sync::Mutex<()>>,
}

impl Quota {
    pub(crate) fn new(deliveries: u32, bytes: u64) -> Self {
        Self {
            deliveries: deliveries.into(),
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            checked: Arc::default(),
            check: Arc::default(),
        }
    }

    /// Whether nothing more may be kept of the endpoint.
    pub(crate) async fn is_full(
        &self,
        store: &Store,
        endpoint: &str,
    ) -> Result<bool, DatabaseError> {
        let last = *self.checked();
        if let Some((at, is_full)) = last
            && at.elapsed() < CHECKED_FOR
        {
            return Ok(is_full);
        }
        let _one_checks = match (self.check.try_lock(), last) {
            (Ok(one_checks), _) => one_checks,
            (Err(_), Some((_, is_full))) => return Ok(is_full),
            // After a start. There may be many rows, and many who would count them.
            (Err(_), None) => {
                let turn = async { Ok(self.check.lock().await) };
                let one_checks = with_timeout(store.timeout, turn).await?;
                if let Some((_, is_full)) = *self.checked() {
                    return Ok(is_full);
                }
                one_checks
            }
        };
        let statement = sqlx::query(IS_FULL)
            .bind(endpoint)
            .bind(self.deliveries)
            .bind(self.bytes);
        let rows = store.run(statement).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let is_full: bool = row.try_get(0)?;
        if is_full {
            tracing::error!(
                endpoint,
                "webhook quota exhausted: no more deliveries of this endpoint are kept; retry or discard \
                 what is dead, or raise `keep_quota`"
            );
        }
        *self.checked() = Some((Instant::now(), is_full));
        Ok(is_full)
    }

    fn checked(&self) -> MutexGuard<'_, Option<(Instant, bool)>> {
        // Nothing panics while it holds the lock.
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Quota {
    fn default() -> Self {
        Self::new(100_000, 1024 * 1024 * 1024)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use sqlx::PgPool;

    use super::*;
    use crate::error::BoxError;

    const SECONDS: Duration = Duration::from_secs(5);
    const HOUR: Duration = Duration::from_secs(60 * 60);

    /// Of a server that does not answer, for as long as the listener is there.
    fn store_without_answers(timeout: Duration) -> Result<(TcpListener, Store), BoxError> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("postgres://{}", listener.local_addr()?);
        let store = Store::new(PgPool::connect_lazy(&url)?, timeout, timeout);
        Ok((listener, store))
    }

    async fn until_one_checks(quota: &Quota) {
        while quota.check.try_lock().is_ok() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn one_checks_again_and_the_others_use_the_last_result() -> Result<(), BoxError> {
        let (_listener, store) = store_without_answers(HOUR)?;
        let quota = Quota::default();
        let long_ago = Instant::now().checked_sub(2 * CHECKED_FOR);
        *quota.checked() = long_ago.map(|at| (at, false));
        let first = {
            let (quota, store) = (quota.clone(), store.clone());
            tokio::spawn(async move { quota.is_full(&store, "test").await })
        };
        until_one_checks(&quota).await;
        let second = quota.is_full(&store, "test");
        let second = tokio::time::timeout(SECONDS, second).await;
        assert!(matches!(second, Ok(Ok(false))), "{second:?}");
        first.abort();
        Ok(())
    }

    #[tokio::test]
    async fn whoever_waits_for_the_first_check_uses_its_result() -> Result<(), BoxError> {
        let (_listener, store) = store_without_answers(HOUR)?;
        let quota = Quota::default();
        let first = quota.check.lock().await;
        let second = {
            let (quota, store) = (quota.clone(), store.clone());
            tokio::spawn(async move { quota.is_full(&store, "test").await })
        };
        // It has seen that there is no result yet.
        tokio::task::yield_now().await;
        *quota.checked() = Some((Instant::now(), true));
        drop(first);
        let second = tokio::time::timeout(SECONDS, second).await?;
        assert!(matches!(second, Ok(Ok(true))), "{second:?}");
        Ok(())
    }

    #[tokio::test]
    async fn whoever_waits_for_the_first_check_waits_within_the_timeout() -> Result<(), BoxError> {
        let (_listener, store) = store_without_answers(Duration::from_millis(10))?;
        let quota = Quota::default();
        let _first = quota.check.lock().await;
        let second = quota.is_full(&store, "test");
        let second = tokio::time::timeout(SECONDS, second).await;
        assert!(
            matches!(second, Ok(Err(DatabaseError::TimedOut))),
            "{second:?}"
        );
        Ok(())
    }
}
