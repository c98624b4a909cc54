//! The highest version seen of each subject, by which stale events are detected.

use std::borrow::Cow;

use sqlx::PgConnection;

use crate::delivery::Delivery;
use crate::digest::sha256_hex;

/// The longest subject that is stored as it is, in bytes.
const MAX_SUBJECT: usize = 255;

/// How the version of an event compares with the highest one seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recency {
    /// Higher than any seen before, or the first one.
    Newer,
    /// Equal to the highest. It may be a new event all the same: if the version is a time, several
    /// events may share it.
    Same,
    /// Lower than the highest: the event is stale.
    Older,
}

/// Returns a row if the version is the highest. Either way it locks the subject until the end of
/// the transaction, so that the answer stays true.
const ADVANCE: &str = "
    insert into idempotent_webhook.subjects as seen (endpoint, tenant, subject, version)
    values ($1, $2, $3, $4)
    on conflict (endpoint, tenant, subject) do update
    set version = excluded.version, advanced_at = excluded.advanced_at
    where seen.version < excluded.version
    returning true
";

const VERSION: &str = "
    select version
    from idempotent_webhook.subjects
    where endpoint = $1 and tenant = $2 and subject = $3
";

/// How a subject is stored: as its digest if an index could not hold it, or Postgres its NUL. The SQL function
/// `idempotent_webhook.stored_subject` does the same.
fn stored(subject: &str) -> Cow<'_, str> {
    if subject.len() <= MAX_SUBJECT && !subject.contains('\0') {
        Cow::Borrowed(subject)
    } else {
        Cow::Owned(format!("sha256:{}", sha256_hex(subject.as_bytes())))
    }
}

pub(super) async fn advance(
    connection: &mut PgConnection,
    delivery: &Delivery,
    subject: &str,
    version: i64,
) -> sqlx::Result<Recency> {
    let subject = stored(subject);
    let advanced: Option<bool> = sqlx::query_scalar(ADVANCE)
        .bind(delivery.endpoint())
        .bind(delivery.key_tenant())
        .bind(&*subject)
        .bind(version)
        .fetch_optional(&mut *connection)
        .await?;
    if advanced.is_some() {
        return Ok(Recency::Newer);
    }
    let highest: i64 = sqlx::query_scalar(VERSION)
        .bind(delivery.endpoint())
        .bind(delivery.key_tenant())
        .bind(&*subject)
        .fetch_one(connection)
        .await?;
    Ok(if highest == version {
        Recency::Same
    } else {
        Recency::Older
    })
}
