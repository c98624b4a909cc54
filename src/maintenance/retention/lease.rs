//! The lease of the process that prunes.

use sqlx::{PgConnection, PgPool};

use crate::random::random;
use crate::transaction::ShortTx;

/// Returns a row if this process has the lease now. The row is locked to the end of the transaction.
const TAKE: &str = "
    insert into idempotent_webhook.retention_turn as turn (process, ends_at)
    values ($1, now() + interval '5 minutes')
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
        let taken = sqlx::query(TAKE).bind(self.process);
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
