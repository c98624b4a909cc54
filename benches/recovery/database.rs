//! The database before a part of the benchmark: one that was made for it, or one that has lived.

use sqlx::{AssertSqlSafe, Executor, PgPool};

const TABLES: &str = "
    create table mended (delivery_id text);
    create table inbox (
        delivery_id text collate \"C\" primary key,
        body bytea not null,
        received_at timestamptz not null default now()
    )
";

/// Autovacuum would analyze them within a minute or two.
const NEVER_ANALYZED: &str = "
    alter table idempotent_webhook.deliveries set (autovacuum_analyze_threshold = 2000000000);
    alter table idempotent_webhook.kept_deliveries set (autovacuum_analyze_threshold = 2000000000);
    alter table idempotent_webhook.kept_requests set (autovacuum_analyze_threshold = 2000000000)
";

/// A million processed deliveries, and 10,000 dead ones, of an endpoint with which nothing is measured.
const LIVED: &str = "
    insert into idempotent_webhook.deliveries (endpoint, delivery_id, event_type, received_at)
    select 'lived', gen_random_uuid()::text, 'push', now() - n * interval '1 second'
    from generate_series(1, 1000000) as n;
    insert into idempotent_webhook.kept_deliveries (
        endpoint, delivery_id, event_type, state, attempts, first_failed_at, last_failed_at,
        died_at, status, reason, body_bytes
    )
    select
        'lived', 'dead ' || n, 'push', 'dead', 11, now() - interval '3 days', now(),
        now(), 503, 'a benchmark', 3000
    from generate_series(1, 10000) as n;
    insert into idempotent_webhook.kept_requests
        (endpoint, delivery_id, format, method, uri, headers, body)
    select 'lived', 'dead ' || n, 1, 'POST', '/', '', convert_to(repeat('x', 3000), 'UTF8')
    from generate_series(1, 10000) as n
";

/// What the database has seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// Nothing: no statistics either.
    None,
    /// Processed deliveries and dead ones, with statistics.
    Lived,
}

impl Past {
    pub async fn prepare(self, pool: &PgPool) {
        run(pool, TABLES).await;
        match self {
            Self::None => run(pool, NEVER_ANALYZED).await,
            Self::Lived => {
                run(pool, LIVED).await;
                run(pool, "vacuum analyze").await;
                run(pool, "checkpoint").await;
            }
        }
    }

    /// Deletes deliveries that were kept since.
    pub async fn restore(self, pool: &PgPool) {
        run(pool, "truncate inbox").await;
        match self {
            Self::None => {
                let truncate =
                    "truncate idempotent_webhook.kept_deliveries, idempotent_webhook.kept_requests";
                run(pool, truncate).await;
            }
            Self::Lived => {
                let delete =
                    "delete from idempotent_webhook.kept_deliveries where endpoint <> 'lived'";
                run(pool, delete).await;
                self.tidy(pool).await;
            }
        }
    }

    /// After many rows were kept or deleted.
    pub async fn tidy(self, pool: &PgPool) {
        if self == Self::Lived {
            for table in ["kept_deliveries", "kept_requests"] {
                run(pool, &format!("vacuum analyze idempotent_webhook.{table}")).await;
            }
        }
        // Now, rather than in what is measured next. What has been kept for a while has seen one, too.
        run(pool, "checkpoint").await;
    }
}

async fn run(pool: &PgPool, statements: &str) {
    pool.execute(sqlx::raw_sql(AssertSqlSafe(statements)))
        .await
        .unwrap();
}
