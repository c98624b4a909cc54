//! The record of failed attempts. It is written after their rollback.

use std::fmt;

use http::StatusCode;
use sqlx_core::transaction::TransactionManager;

use super::pg_error::{DatabaseError, Manager, with_timeout};
use super::store::Store;
use crate::delivery::Delivery;

/// The longest recorded reason, in characters.
const MAX_REASON: usize = 1000;

/// Records nothing if another process has committed the delivery meanwhile.
const RECORD: &str = "
    insert into idempotent_webhook.failures as known
        (endpoint, tenant, delivery_id, event_type, status, reason)
    select $1, $2, $3, $4, $5, $6
    where not exists (
        select
        from idempotent_webhook.deliveries
        where endpoint = $1 and tenant = $2 and delivery_id = $3
    )
    on conflict (endpoint, tenant, delivery_id) do update
    set event_type = excluded.event_type,
        attempts = known.attempts + 1,
        last_failed_at = now(),
        status = excluded.status,
        reason = excluded.reason
";

/// A failed attempt at a delivery.
pub(crate) struct FailedAttempt {
    status: StatusCode,
    reason: String,
}

impl FailedAttempt {
    pub(crate) fn new(status: StatusCode, reason: impl fmt::Display) -> Self {
        let reason = reason.to_string();
        Self {
            status,
            // Postgres cannot store NUL, and a panic message may have one.
            reason: reason
                .chars()
                .filter(|c| *c != '\0')
                .take(MAX_REASON)
                .collect(),
        }
    }
}

impl Store {
    /// Records a failed attempt, in a transaction of its own.
    pub(crate) async fn record_failure(
        &self,
        attempt: &FailedAttempt,
        delivery: &Delivery,
    ) -> Result<(), DatabaseError> {
        let mut connection = self.begin().await?;
        with_timeout(self.timeout, async {
            sqlx::query(RECORD)
                .bind(delivery.endpoint())
                .bind(delivery.key_tenant())
                .bind(delivery.id())
                .bind(delivery.event_type())
                // At most 999.
                .bind(attempt.status.as_u16().cast_signed())
                .bind(&attempt.reason)
                .execute(&mut *connection)
                .await?;
            Manager::commit(&mut connection).await
        })
        .await?;
        connection.release();
        Ok(())
    }
}
