//! The record of failed attempts, which survives their rollback.

use std::fmt;

use http::{Response, StatusCode};
use sqlx::PgConnection;

use crate::delivery::Delivery;

/// The longest reason that is kept, in characters.
const MAX_REASON: usize = 1000;

/// Nothing is written down of a delivery that another process has completed meanwhile.
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

/// How an attempt failed.
pub(crate) struct FailedAttempt {
    status: StatusCode,
    reason: String,
}

impl FailedAttempt {
    pub(crate) fn new(status: StatusCode, reason: impl fmt::Display) -> Self {
        let reason = reason.to_string();
        Self {
            status,
            // Postgres cannot store NUL, and a panic may say anything.
            reason: reason
                .chars()
                .filter(|c| *c != '\0')
                .take(MAX_REASON)
                .collect(),
        }
    }

    /// The inner service, which is not the handler itself, has failed without an answer.
    pub(crate) fn inner_service() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the inner service failed",
        )
    }

    /// The handler's own answer.
    pub(crate) fn answered<B>(response: &Response<B>) -> Self {
        let status = response.status();
        Self::new(status, format_args!("the handler answered {status}"))
    }

    pub(crate) async fn record(
        &self,
        connection: &mut PgConnection,
        delivery: &Delivery,
    ) -> sqlx::Result<()> {
        sqlx::query(RECORD)
            .bind(delivery.endpoint())
            .bind(delivery.key_tenant())
            .bind(delivery.id().as_str())
            .bind(delivery.event_type())
            // At most 999.
            .bind(self.status.as_u16().cast_signed())
            .bind(&self.reason)
            .execute(connection)
            .await?;
        Ok(())
    }
}
