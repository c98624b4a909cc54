-- The times of the events that a round looks at, and since when events count at all, in Unix seconds.
--
-- $1 endpoint, $2 path, $3 source, $4 look-back, $5 grace time, $6 whether deliveries belong to tenants, $7 since
-- when events count as the application says, `null` if it does not, $8 whether to look at those again that are
-- reconciled.
with known as (
    select begins_at, reconciled_until
    from idempotent_webhook.reconciliations
    where endpoint = $1 and path = $2 and source = $3
),
-- What another list or another tenant has had recorded says nothing of this one.
first as (
    select min(received_at) as received_at
    from idempotent_webhook.deliveries
    where endpoint = $1
        and not $6
        and not exists (select 1 from idempotent_webhook.reconciliations where endpoint = $1)
),
begin as (
    select
        coalesce((select begins_at from known), (select received_at from first), now()) as recorded_since,
        -- Lists have times in whole seconds, and may show an event late.
        (
            select reconciled_until - greatest($5, interval '1 minute')
            from known
            where not $8
        ) as next_since
)
select
    extract(epoch from recorded_since)::float8 as recorded_since,
    extract(epoch from coalesce(to_timestamp($7), recorded_since))::float8 as begins_at,
    extract(epoch from greatest(
        coalesce(to_timestamp($7), recorded_since), next_since, now() - $4
    ))::float8 as since,
    extract(epoch from now() - $5)::float8 as until,
    -- What came between the round before and this one is not looked at.
    coalesce(next_since < now() - $4, false) as has_gap
from begin
