//! What is recorded for operators: activity, their actions, and before when deliveries are deleted.

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

pub(super) fn remember_pruned(age: PgInterval) -> Numbers {
    sqlx::query_scalar(REMEMBER_PRUNED).bind(age)
}

pub(super) fn delete_old(age: PgInterval) -> Numbers {
    sqlx::query_scalar(DELETE_OLD).bind(age)
}
