//! How much is kept of an endpoint at most.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::Row;
use tokio::time::Instant;

use crate::delivery::Delivery;
use crate::transaction::{DatabaseError, Store, with_timeout};

/// How long the result of a check holds. Until then, more may be kept than the quota says.
const CHECKED_FOR: Duration = Duration::from_secs(5);

/// For how long it counts that there was room, while another check is under way or fails.
const HAD_ROOM_FOR: Duration = Duration::from_secs(60);

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

/// Whether a delivery was processed, or has a row.
const IS_KNOWN: &str = "
    select exists (
        select
        from idempotent_webhook.deliveries
        where endpoint = $1 and tenant = $2 and delivery_id = $3
    ) or exists (
        select
        from idempotent_webhook.kept_deliveries
        where endpoint = $1 and tenant = $2 and delivery_id = $3
    )
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

    /// Whether a delivery may be kept: the quota has room, or no row is added for it.
    pub(crate) async fn has_room_for(
        &self,
        store: &Store,
        delivery: &Delivery,
    ) -> Result<bool, DatabaseError> {
        if !self.is_full(store, delivery.endpoint()).await? {
            return Ok(true);
        }
        let statement = sqlx::query(IS_KNOWN)
            .bind(delivery.endpoint())
            .bind(delivery.key_tenant())
            .bind(delivery.id());
        let rows = store.run(statement).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(row.try_get(0)?)
    }

    /// Whether nothing more may be kept of the endpoint.
    async fn is_full(&self, store: &Store, endpoint: &str) -> Result<bool, DatabaseError> {
        let last = *self.checked();
        if let Some((at, is_full)) = last
            && at.elapsed() < CHECKED_FOR
        {
            return Ok(is_full);
        }
        let had_room = matches!(last, Some((at, false)) if at.elapsed() < HAD_ROOM_FOR);
        let _one_checks = match self.check.try_lock() {
            Ok(one_checks) => one_checks,
            Err(_) if had_room => return Ok(false),
            // There may be many rows, and many who would count them.
            Err(_) => {
                let turn = async { Ok(self.check.lock().await) };
                let one_checks = with_timeout(store.timeout, turn).await?;
                if let Some((at, is_full)) = *self.checked()
                    && at.elapsed() < CHECKED_FOR
                {
                    return Ok(is_full);
                }
                one_checks
            }
        };
        match self.count(store, endpoint).await {
            Ok(is_full) => {
                *self.checked() = Some((Instant::now(), is_full));
                Ok(is_full)
            }
            Err(error) if had_room => {
                tracing::warn!(endpoint, %error, "could not check the quota of kept webhooks");
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn count(&self, store: &Store, endpoint: &str) -> Result<bool, DatabaseError> {
        let statement = sqlx::query(IS_FULL)
            .bind(endpoint)
            .bind(self.deliveries)
            .bind(self.bytes);
        let rows = store.run(statement).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let is_full = row.try_get(0)?;
        if is_full {
            tracing::error!(
                endpoint,
                "webhook quota exhausted: no more deliveries of this endpoint are kept; retry or discard \
                 what is dead, or raise `keep_quota`"
            );
        }
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

    fn long_ago(time: Duration, is_full: bool) -> Option<(Instant, bool)> {
        Instant::now().checked_sub(time).map(|at| (at, is_full))
    }

    #[tokio::test]
    async fn while_one_checks_again_it_counts_that_there_was_room() -> Result<(), BoxError> {
        let (_listener, store) = store_without_answers(HOUR)?;
        let quota = Quota::default();
        *quota.checked() = long_ago(2 * CHECKED_FOR, false);
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
    async fn a_result_that_is_over_is_not_used() -> Result<(), BoxError> {
        for over in [
            None,
            // There may be room again.
            long_ago(2 * CHECKED_FOR, true),
            long_ago(2 * HAD_ROOM_FOR, false),
        ] {
            let (_listener, store) = store_without_answers(HOUR)?;
            let quota = Quota::default();
            *quota.checked() = over;
            let first = quota.check.lock().await;
            let second = {
                let (quota, store) = (quota.clone(), store.clone());
                tokio::spawn(async move { quota.is_full(&store, "test").await })
            };
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            assert!(!second.is_finished(), "{over:?}");
            *quota.checked() = Some((Instant::now(), true));
            drop(first);
            let second = tokio::time::timeout(SECONDS, second).await?;
            assert!(matches!(second, Ok(Ok(true))), "{second:?}");
        }
        Ok(())
    }

    #[tokio::test]
    async fn a_check_that_fails_refuses_nothing_if_there_was_room() -> Result<(), BoxError> {
        let (_listener, store) = store_without_answers(Duration::from_millis(10))?;
        let quota = Quota::default();
        *quota.checked() = long_ago(2 * CHECKED_FOR, false);
        let checked = quota.is_full(&store, "test").await;
        assert!(matches!(checked, Ok(false)), "{checked:?}");
        for over in [
            long_ago(2 * CHECKED_FOR, true),
            long_ago(2 * HAD_ROOM_FOR, false),
        ] {
            *quota.checked() = over;
            let checked = quota.is_full(&store, "test").await;
            assert!(checked.is_err(), "{over:?}: {checked:?}");
        }
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
