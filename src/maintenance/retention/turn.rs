//! Elects the process that prunes.

use sqlx::{PgConnection, PgPool};
use tokio::time::{Duration, Instant};

use crate::random::random;
use crate::transaction::BEGIN_APART;

/// 0: another process is pruning. 1: another one holds the lock, to look or for a step. 2: it is
/// this process's turn until the end of its transaction.
const TAKE: &str = "
    select case
        when exists (
            select
            from idempotent_webhook.retention_turns
            where process <> $1 and ends_at > now()
        ) then 0
        when pg_try_advisory_xact_lock(hashtextextended('idempotent_webhook.retention', 0)) then 2
        else 1
    end
";

const OTHER_TURNS: &str = "
    delete from idempotent_webhook.retention_turns
";

/// Far longer than a step and its pause.
const EXTEND: &str = "
    insert into idempotent_webhook.retention_turns (process, ends_at)
    values ($1, now() + interval '5 minutes')
";

const END: &str = "
    delete from idempotent_webhook.retention_turns
    where process = $1
";

const EXTENDED_EVERY: Duration = Duration::from_secs(60);

/// Whose turn it is.
pub(super) enum Whose {
    Ours,
    OursInAMoment,
    NotOurs,
}

/// The turn of one round.
pub(super) struct Turn {
    process: i64,
    /// When it was extended last by a transaction that was committed.
    extended: Option<Instant>,
    extending: Option<Instant>,
}

impl Turn {
    pub(super) fn new() -> Self {
        Self {
            process: random().cast_signed(),
            extended: None,
            extending: None,
        }
    }

    /// Whether the round may go on with a step, in the step's own transaction.
    pub(super) async fn take(&mut self, connection: &mut PgConnection) -> sqlx::Result<Whose> {
        self.extending = None;
        let whose: i32 = sqlx::query_scalar(TAKE)
            .bind(self.process)
            .fetch_one(&mut *connection)
            .await?;
        match whose {
            2 => {}
            // The other process will find out that it is not its turn.
            1 if self.extended.is_some() => return Ok(Whose::OursInAMoment),
            _ => return Ok(Whose::NotOurs),
        }
        let is_recent = |extended: Instant| extended.elapsed() < EXTENDED_EVERY;
        if !self.extended.is_some_and(is_recent) {
            sqlx::query(OTHER_TURNS).execute(&mut *connection).await?;
            sqlx::query(EXTEND)
                .bind(self.process)
                .execute(connection)
                .await?;
            self.extending = Some(Instant::now());
        }
        Ok(Whose::Ours)
    }

    /// That transaction has been committed.
    pub(super) fn committed(&mut self) {
        self.extended = self.extending.or(self.extended);
    }

    /// Ends the turn, if there was one, so that another process can prune.
    pub(super) async fn end(self, pool: &PgPool) -> sqlx::Result<()> {
        if self.extended.is_some() {
            let mut tx = pool.begin_with(BEGIN_APART).await?;
            sqlx::query(END)
                .bind(self.process)
                .execute(&mut *tx)
                .await?;
            tx.commit().await?;
        }
        Ok(())
    }
}
