-- Returns what is known about a list, and the time since which deliveries are recorded. Times are in Unix seconds, by
-- the clock of Postgres.
--
-- $1 endpoint, $2 path, $3 source, $4 whether deliveries belong to tenants.
with list as (
    select
        path = $2 as is_at_this_path, begins_at,
        -- If the application reconciles the list at another path (route) than before, the time up to which the list is
        -- reconciled stays.
        max(reconciled_until) over () as reconciled_until,
        round_since, round_until
    from idempotent_webhook.reconciliations as list
    where endpoint = $1 and source = $3 and (path = $2 or not $4)
    order by path = $2 desc, list.reconciled_until desc nulls last
    limit 1
),
-- The deliveries of another list or another tenant say nothing about this list.
first as (
    select received_at
    from idempotent_webhook.deliveries
    where endpoint = $1
        and received_at > '-infinity'
        and not $4
        and not exists (select 1 from idempotent_webhook.reconciliations where endpoint = $1)
    order by received_at
    limit 1
)
select
    extract(epoch from now())::float8 as now,
    extract(epoch from coalesce(begins_at, received_at, now()))::float8 as recorded_since,
    extract(epoch from reconciled_until)::float8 as reconciled_until,
    coalesce(is_at_this_path, false) as is_at_this_path,
    extract(epoch from round_since)::float8 as round_since,
    extract(epoch from round_until)::float8 as round_until,
    (
        select extract(epoch from before)::float8
        from idempotent_webhook.pruned
        where endpoint = $1
    ) as pruned_before
from (select) as one
left join first on true
left join list on true
