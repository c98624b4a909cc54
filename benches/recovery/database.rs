//! The *past* of the database: what it contains before a part of the benchmark starts.

use sqlx::{AssertSqlSafe, Executor, PgPool};

const TABLES: &str = "
    create table mended (delivery_id text);
    create table inbox (
        delivery_id text collate \"C\" primary key,
        body bytea not null,
        received_at timestamptz not null default now()
    )
";

/// Prevents autovacuum from analyzing these tables, as it would do within a minute or two.
const NEVER_ANALYZED: &str = "
    alter table idempotent_webhook.deliveries set (autovacuum_analyze_threshold = 2000000000);
    alter table idempotent_webhook.kept_deliveries set (autovacuum_analyze_threshold = 2000000000);
    alter table idempotent_webhook.kept_requests set (autovacuum_analyze_threshold = 2000000000)
";

/// A million processed and 10,000 dead deliveries of an endpoint that is not used in measurements.
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

/// What the database contains before a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// Nothing, and no statistics.
    None,
    /// Processed and dead deliveries, with statistics.
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

    /// Restores this past: deletes the deliveries that a measurement has kept.
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

    /// Tidies up after many rows were kept or deleted.
    pub async fn tidy(self, pool: &PgPool) {
        if self == Self::Lived {
            for table in ["kept_deliveries", "kept_requests"] {
                run(pool, &format!("vacuum analyze idempotent_webhook.{table}")).await;
            }
        }
        // Makes the checkpoint happen now, and not during the next measurement. Deliveries that were kept for a while
        // in production have also been through a checkpoint.
        run(pool, "checkpoint").await;
    }
}

async fn run(pool: &PgPool, statements: &str) {
    pool.execute(sqlx::raw_sql(AssertSqlSafe(statements)))
        .await
        .unwrap();
}
