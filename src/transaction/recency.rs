//! The highest version seen for each subject. It shows whether an event is stale.

use std::borrow::Cow;

use sqlx::PgConnection;

use crate::provider::delivery::Delivery;
use crate::provider::digest::sha256_hex;

/// The longest subject that is stored as it is, in bytes.
const MAX_SUBJECT: usize = 255;

/// How the version of an event compares with the highest version seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recency {
    /// Higher than any version seen before, or the first one.
    Newer,
    /// Equal to the highest version. It may still be a new event: if the version is a time, several events may share
    /// it.
    Same,
    /// Lower than the highest version: the event is stale.
    Older,
}

/// Compares the version with the highest version, and returns 1, 0 or -1. It locks the subject until the end of the
/// transaction, so that the result stays true. The SQL function (`migrations/0004_claim.sql`) sets `enable_seqscan` for
/// itself, because this transaction has the handler's settings.
const ADVANCE: &str = "select idempotent_webhook.advance($1, $2, $3, $4)";

/// The stored form of a subject. A subject is stored as its digest if it is too long for an index, or if it contains a
/// NUL, which Postgres cannot store. The SQL function `idempotent_webhook.stored_subject` does the same.
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
    let compared: i32 = sqlx::query_scalar(ADVANCE)
        .bind(delivery.endpoint())
        .bind(delivery.key_tenant())
        .bind(&*stored(subject))
        .bind(version)
        .fetch_one(connection)
        .await?;
    Ok(match compared {
        1.. => Recency::Newer,
        0 => Recency::Same,
        _ => Recency::Older,
    })
}
