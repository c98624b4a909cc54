//! The redelivery windows of endpoints, below which nothing is deleted.

use std::time::Duration;

use sqlx::PgConnection;

/// An endpoint that has claimed nothing for longer than its window gets no redeliveries.
const LONGEST: &str = "
    select endpoint, extract(epoch from redelivery_window)::float8
    from idempotent_webhook.redelivery_windows
    where registered_at > now() - redelivery_window - interval '1 day'
    order by redelivery_window desc
    limit 1
";

/// The endpoint with the longest window in which its provider may still redeliver.
pub(super) async fn longest(
    connection: &mut PgConnection,
) -> sqlx::Result<Option<(String, Duration)>> {
    let longest: Option<(String, f64)> = sqlx::query_as(LONGEST).fetch_optional(connection).await?;
    Ok(longest.map(|(endpoint, seconds)| (endpoint, Duration::from_secs_f64(seconds))))
}
