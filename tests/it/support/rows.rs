use sqlx::{Executor, FromRow, Postgres};

/// How many deliveries are claimed, and how many effects the handlers have left.
#[derive(Debug, PartialEq, Eq, FromRow)]
pub struct Rows {
    pub claims: i64,
    pub effects: i64,
}

impl Rows {
    /// Counts claims and effects in one statement, so that both counts are from the same moment.
    pub async fn count(executor: impl Executor<'_, Database = Postgres>) -> sqlx::Result<Self> {
        sqlx::query_as(
            "select
                (select count(*) from idempotent_webhook.deliveries) as claims,
                (select count(*) from effects) as effects",
        )
        .fetch_one(executor)
        .await
    }
}
