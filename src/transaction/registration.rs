//! The registration of an endpoint's redelivery window, which retention must not undercut.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::{Row, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;
use tokio::time::Instant;

use super::connection::TxConnection;
use super::pg_error::{DatabaseError, Manager, with_timeout};
use super::store::{BEGIN, Registration, Store};
use crate::delivery::Delivery;

/// Makes room for this process's registration. Another window of the endpoint is deleted once no
/// process has registered it for a day: by then a rolling deploy is over.
const DELETE_OUTDATED: &str = "
    delete from idempotent_webhook.redelivery_windows
    where endpoint = $1
        and (
            redelivery_window = make_interval(secs => $2)
                and registered_at < now() - interval '30 minutes'
            or registered_at < now() - interval '1 day'
        )
";

const REGISTER: &str = "
    insert into idempotent_webhook.redelivery_windows (endpoint, redelivery_window)
    values ($1, make_interval(secs => $2))
    on conflict do nothing
";

/// How often a process that claims deliveries registers its window.
const INTERVAL: Duration = Duration::from_secs(60 * 60);

impl Store {
    /// The pool's own `lock_timeout`. Registers the window first if that is due.
    pub(super) async fn lock_timeout(
        &self,
        connection: &mut TxConnection,
        delivery: &Delivery,
    ) -> Result<Arc<str>, DatabaseError> {
        match self.registered() {
            Some(lock_timeout) => Ok(lock_timeout),
            None => self.register(connection, delivery).await,
        }
    }

    /// The pool's own `lock_timeout`, unless this delivery has to register the window. When a
    /// registration is due again, one delivery does it and the others go on.
    fn registered(&self) -> Option<Arc<str>> {
        let mut registration = self.registration();
        let known = registration.as_mut()?;
        if known.registered_at.elapsed() < INTERVAL {
            return Some(known.lock_timeout.clone());
        }
        known.registered_at = Instant::now();
        None
    }

    /// Registers the window and reads the pool's own `lock_timeout`.
    ///
    /// This commits and begins another transaction, so that deliveries do not wait for each
    /// other on this row.
    async fn register(
        &self,
        connection: &mut TxConnection,
        delivery: &Delivery,
    ) -> Result<Arc<str>, DatabaseError> {
        let registered = with_timeout(self.timeout, async {
            for statement in [DELETE_OUTDATED, REGISTER] {
                sqlx::query(statement)
                    .bind(delivery.endpoint())
                    .bind(self.redelivery_window.as_secs_f64())
                    .execute(&mut **connection)
                    .await?;
            }
            Manager::commit(connection).await?;
            let row = sqlx::raw_sql("show lock_timeout")
                .fetch_one(&mut **connection)
                .await?;
            Manager::begin(connection, Some(BEGIN.into_sql_str())).await?;
            row.try_get::<String, _>(0)
        })
        .await;
        let mut registration = self.registration();
        match registered {
            Ok(lock_timeout) => {
                let lock_timeout: Arc<str> = lock_timeout.into();
                *registration = Some(Registration {
                    registered_at: Instant::now(),
                    lock_timeout: lock_timeout.clone(),
                });
                Ok(lock_timeout)
            }
            Err(error) => {
                *registration = None;
                Err(error)
            }
        }
    }

    fn registration(&self) -> MutexGuard<'_, Option<Registration>> {
        // Nothing panics while it holds the lock.
        self.registration
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
