//! An action on all deliveries of a selection, in the background.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time::Instant;

use super::audit;
use crate::recovery::Filter;
use crate::recovery::control::{Batches, Change, Of};
use crate::transaction::{BEGIN_APART, is_conflict};

/// How often a batch is tried again after a deadlock.
const MAX_CONFLICTS: usize = 10;

/// The longest pause between two batches.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Changes all deliveries of a filter. Each batch is counted in its own transaction, so the number is
/// true at any time, also if the process is killed.
pub(super) async fn run(pool: PgPool, id: i64, change: Change, endpoint: String, filter: Filter) {
    let of = Of {
        endpoint: &endpoint,
        tenant: None,
    };
    let mut batches = Batches::new(change, of, &filter);
    let mut conflicts = 0;
    let note = loop {
        let started = Instant::now();
        match batch(&pool, id, &mut batches).await {
            Ok(Go::On) => {}
            Ok(Go::End) => break None,
            Err(error) if is_conflict(&error) && conflicts < MAX_CONFLICTS => conflicts += 1,
            Err(error) => {
                tracing::warn!(%error, id, "an action of a webhook operator failed");
                break Some("The database could not be written. The log says why.");
            }
        }
        // For half of the time the database is left to deliveries.
        tokio::time::sleep(started.elapsed().min(MAX_PAUSE)).await;
    };
    if let Err(error) = audit::end(&pool, id, 0, note).await {
        tracing::warn!(%error, id, "could not write down that an action of a webhook operator ended");
    }
}

enum Go {
    On,
    End,
}

async fn batch(pool: &PgPool, id: i64, batches: &mut Batches<'_>) -> sqlx::Result<Go> {
    let mut tx = pool.begin_with(BEGIN_APART).await?;
    let batch = batches.next(&mut tx).await?;
    let is_cancelled = audit::add(&mut tx, id, batch.changed).await?;
    tx.commit().await?;
    batches.committed(&batch);
    Ok(if batch.has_more && !is_cancelled {
        Go::On
    } else {
        Go::End
    })
}
