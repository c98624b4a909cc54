//! What is not found by the walk: activity, what operators did, the archive, and before when deliveries
//! are deleted.

use sqlx::postgres::types::PgInterval;

use super::ranges::Numbers;

/// Deliveries before this time may be deleted. Not an update, for which the role may have no right.
const REMEMBER_PRUNED: &str = "
    with known as (
        delete from idempotent_webhook.pruned
        returning before
    )
    insert into idempotent_webhook.pruned (before)
    select greatest(now() - $1, max(before))
    from known
    returning 1::int8
";

/// The tables are small, so all at once. What operators did stays for a year at least.
const DELETE_OLD: &str = "
    with activity as (
        delete from idempotent_webhook.activity
        where hour < now() - $1
    ),
    actions as (
        delete from idempotent_webhook.operator_actions
        where began_at < now() - greatest($1, interval '1 year')
    )
    select 1::int8
";

/// The requests of processed deliveries whose time is over.
const DELETE_ARCHIVED: &str = "
    with deleted as (
        delete from idempotent_webhook.kept_deliveries
        where ctid = any (array(
            select ctid
            from idempotent_webhook.kept_deliveries
            where state = 'processed' and archived_until < now()
            limit $1
        ))
        -- It may have been updated since it was selected.
        and state = 'processed' and archived_until < now()
        returning 1
    )
    select count(*) from deleted
";

/// Returns how many were deleted, at most `limit`.
pub(super) fn delete_archived(limit: i64) -> Numbers {
    sqlx::query_scalar(DELETE_ARCHIVED).bind(limit)
}

pub(super) fn remember_pruned(age: PgInterval) -> Numbers {
    sqlx::query_scalar(REMEMBER_PRUNED).bind(age)
}

pub(super) fn delete_old(age: PgInterval) -> Numbers {
    sqlx::query_scalar(DELETE_OLD).bind(age)
}
