//! Captures of kept requests.

use sqlx::{PgPool, Row};
use tokio::task::spawn_blocking;

use super::operator::{Filter, Scope, newest};
use super::rehearsal::TO_REHEARSE;
use super::taken::kept_request_of;
use crate::capture::{Capture, CaptureError, Pseudonyms};
use crate::transaction::ShortTx;

/// Those of the newest deliveries, the newest first.
pub(crate) async fn captures(
    pool: &PgPool,
    scope: Scope<'_>,
    filter: &Filter,
    limit: usize,
    pseudonyms: &Pseudonyms,
) -> sqlx::Result<Vec<Result<Capture, CaptureError>>> {
    let mut captures = Vec::new();
    for chosen in newest(pool, scope, std::slice::from_ref(filter), limit).await? {
        let row = ShortTx::run(pool, async |tx| {
            let read = sqlx::query(TO_REHEARSE)
                .bind(scope.endpoint)
                .bind(&chosen.tenant)
                .bind(&chosen.delivery_id);
            read.fetch_optional(tx).await
        });
        // It may be gone since it was chosen.
        let Some(row) = row.await? else { continue };
        let event_type: Option<String> = row.try_get("event_type")?;
        captures.push(match kept_request_of(&row)? {
            Ok(request) => {
                let pseudonyms = pseudonyms.clone();
                // A large body takes longer than a thread that serves has.
                let made = spawn_blocking(move || pseudonyms.of_kept(&request, event_type));
                let ended = |_| Err(CaptureError::new("the runtime has ended"));
                made.await.unwrap_or_else(ended)
            }
            Err(_unreadable) => Err(CaptureError::new("what was kept of it cannot be read")),
        });
    }
    Ok(captures)
}
