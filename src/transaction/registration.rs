//! The registration of an endpoint's redelivery window: the time in which its provider may send a delivery again.
//! Retention keeps claims for at least that long. This file also reads the settings of the pool's sessions.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;
use tokio::time::Instant;

use super::connection::TxConnection;
use super::pg_error::{DatabaseError, Manager, with_timeout};
use super::pg_time::millis;
use super::store::{BEGIN_CLAIM, Registration, Store};
use crate::provider::delivery::Delivery;

/// Makes room for this process's registration. If the endpoint's window `$2` was last registered more than 30 minutes
/// ago, its row is deleted, so that it can be inserted with a new time. A window of another length is deleted if no
/// process has registered it for a day: by then, a rolling deploy is over.
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

/// The settings that claims change: `lock_timeout` as `show` prints it, the limit on idle transactions in milliseconds,
/// and `enable_seqscan`.
const SETTINGS: &str = "
    select
        current_setting('lock_timeout'),
        (
            select setting
            from pg_settings
            where name = 'idle_in_transaction_session_timeout'
        ),
        current_setting('enable_seqscan')
";

/// How often a process that claims deliveries registers its window.
const INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The longest limit that Postgres accepts, in milliseconds.
const MAX_IDLE: u128 = 2_147_483_647;

/// The settings of the pool's connections that claims change.
#[derive(Clone, Debug)]
pub(super) struct PoolSettings {
    /// Restored after a claim.
    pub(super) lock_timeout: Arc<str>,
    /// How long a transaction may be idle. Zero means no limit.
    idle_millis: u128,
    /// Restored after a claim.
    pub(super) enable_seqscan: Arc<str>,
}

impl PoolSettings {
    fn read(row: &PgRow) -> sqlx::Result<Self> {
        Ok(Self {
            lock_timeout: row.try_get::<String, _>(0)?.into(),
            idle_millis: row.try_get::<String, _>(1)?.parse().unwrap_or(0),
            enable_seqscan: row.try_get::<String, _>(2)?.into(),
        })
    }

    /// The limit on idle time for a transaction whose handler may be idle for `longest`: `longest`, or the pool's own
    /// limit if that is lower.
    pub(super) fn idle_timeout(&self, longest: Duration) -> String {
        let limit = longest.as_millis().clamp(1, MAX_IDLE);
        let limit = match self.idle_millis {
            0 => limit,
            own => limit.min(own),
        };
        limit.to_string()
    }
}

impl Store {
    /// The pool's own settings. Registers the window first if that is due.
    pub(super) async fn pool_settings(
        &self,
        connection: &mut TxConnection,
        delivery: &Delivery,
    ) -> Result<PoolSettings, DatabaseError> {
        match self.registered() {
            Some(settings) => Ok(settings),
            None => self.register(connection, delivery).await,
        }
    }

    /// The pool's own settings, read in the transaction of a rehearsal. This registers nothing.
    pub(super) async fn settings_for_rehearsal(
        &self,
        connection: &mut TxConnection,
    ) -> Result<PoolSettings, DatabaseError> {
        let settings = sqlx::raw_sql(SETTINGS).fetch_one(&mut **connection);
        Ok(PoolSettings::read(
            &with_timeout(self.timeout, settings).await?,
        )?)
    }

    /// Registers the window if that is due. This is for a delivery with a late claim, because its handler may claim it
    /// without the layer.
    pub(super) async fn ensure_registered(&self, delivery: &Delivery) -> Result<(), DatabaseError> {
        if self.registered().is_some() {
            return Ok(());
        }
        let mut connection = self.begin().await?;
        self.register(&mut connection, delivery).await?;
        connection.roll_back(self.timeout).await;
        Ok(())
    }

    /// The pool's own settings, or `None` if this delivery must register the window. When the window must be registered
    /// again, one delivery does so, and the other deliveries go on without waiting.
    fn registered(&self) -> Option<PoolSettings> {
        let mut registration = self.registration();
        let known = registration.as_mut()?;
        if known.registered_at.elapsed() < INTERVAL {
            return Some(known.settings.clone());
        }
        known.registered_at = Instant::now();
        None
    }

    /// Registers the window and reads the pool's own settings.
    ///
    /// This commits the registration and begins another transaction. Without this commit, other deliveries would wait
    /// for the lock on the window's row.
    async fn register(
        &self,
        connection: &mut TxConnection,
        delivery: &Delivery,
    ) -> Result<PoolSettings, DatabaseError> {
        let limit = format!("set local lock_timeout = {}", millis(self.longest_wait()));
        let registered = with_timeout(self.timeout, async {
            sqlx::raw_sql(AssertSqlSafe(limit))
                .execute(&mut **connection)
                .await?;
            for statement in [DELETE_OUTDATED, REGISTER] {
                sqlx::query(statement)
                    .bind(delivery.endpoint())
                    .bind(self.redelivery_window.as_secs_f64())
                    .execute(&mut **connection)
                    .await?;
            }
            Manager::commit(connection).await?;
            let row = sqlx::raw_sql(SETTINGS).fetch_one(&mut **connection).await?;
            Manager::begin(connection, Some(BEGIN_CLAIM.into_sql_str())).await?;
            PoolSettings::read(&row)
        })
        .await;
        let mut registration = self.registration();
        match registered {
            Ok(settings) => {
                *registration = Some(Registration {
                    registered_at: Instant::now(),
                    settings: settings.clone(),
                });
                Ok(settings)
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
