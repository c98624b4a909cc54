//! The lease of the process that prunes.

use std::time::Duration;

use sqlx::{PgConnection, PgPool};

use crate::pg_time::interval;
use crate::random::random;
use crate::transaction::ShortTx;

/// How long a lease lasts unless the next step extends it. A step ends after two minutes at most, and the pause after it is
/// three times as long.
pub(super) const LEASE: Duration = Duration::from_secs(10 * 60);

/// Returns a row if this process has the lease now. The row is locked to the end of the transaction.
const TAKE: &str = "
    insert into idempotent_webhook.retention_turn as turn (process, ends_at)
    values ($1, now() + $2)
    on conflict (is_the_only_one) do update
    set process = $1, ends_at = excluded.ends_at
    where turn.process = $1 or turn.ends_at < now()
    returning 1
";

const END: &str = "
    delete from idempotent_webhook.retention_turn
    where process = $1
";

/// The lease for one round. Each step extends it.
pub(super) struct Lease {
    process: i64,
}

impl Lease {
    pub(super) fn new() -> Self {
        Self {
            process: random().cast_signed(),
        }
    }

    /// Whether the round may go on with a step, in the step's own transaction.
    pub(super) async fn take(&self, connection: &mut PgConnection) -> sqlx::Result<bool> {
        let taken = sqlx::query(TAKE).bind(self.process).bind(interval(LEASE));
        Ok(taken.fetch_optional(connection).await?.is_some())
    }

    /// Gives the lease up, so that another process can prune now.
    pub(super) async fn end(&self, pool: &PgPool) -> sqlx::Result<()> {
        ShortTx::run(pool, async |tx| {
            let ended = sqlx::query(END).bind(self.process);
            ended.execute(tx).await.map(drop)
        })
        .await
    }
}
