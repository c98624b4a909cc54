//! The order of events: the highest version that has been seen of a subject.

use sqlx::PgConnection;

use crate::delivery::Delivery;

/// How the version of an event compares with the highest one seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recency {
    /// Higher than any seen before, or the first one.
    Newer,
    /// As high as the highest. It may be news all the same, since a version that is a time may
    /// be that of several events.
    Same,
    /// Lower than the highest: what the event says has been overtaken.
    Older,
}

/// Returns a row if the version is the highest. Either way the subject is locked until the
/// end of the transaction, so that what is said of it stays true.
const ADVANCE: &str = "
    insert into idempotent_webhook.subjects as known (endpoint, tenant, subject, version)
    values ($1, $2, $3, $4)
    on conflict (endpoint, tenant, subject) do update
    set version = excluded.version, advanced_at = now()
    where known.version < excluded.version
    returning true
";

const VERSION: &str = "
    select version
    from idempotent_webhook.subjects
    where endpoint = $1 and tenant = $2 and subject = $3
";

pub(crate) async fn advance(
    connection: &mut PgConnection,
    delivery: &Delivery,
    subject: &str,
    version: i64,
) -> sqlx::Result<Recency> {
    let advanced: Option<bool> = sqlx::query_scalar(ADVANCE)
        .bind(delivery.endpoint())
        .bind(delivery.key_tenant())
        .bind(subject)
        .bind(version)
        .fetch_optional(&mut *connection)
        .await?;
    if advanced.is_some() {
        return Ok(Recency::Newer);
    }
    let highest: i64 = sqlx::query_scalar(VERSION)
        .bind(delivery.endpoint())
        .bind(delivery.key_tenant())
        .bind(subject)
        .fetch_one(connection)
        .await?;
    Ok(if highest == version {
        Recency::Same
    } else {
        Recency::Older
    })
}
