-- The times of the events that a round looks at, and since when events count at all, in Unix seconds.
--
-- Rows of deliveries are deleted only if they are older than `pruned.before` and than the redelivery window:
-- what came since the earlier of both is known for certain. The clocks may differ, hence the grace time.
--
-- $1 endpoint, $2 path, $3 source, $4 look-back, $5 grace time, $6 redelivery window, $7 since when events count
-- as the application says, `null` if it does not, $8 whether to look at those again that are reconciled.
with known as (
    select begins_at, reconciled_until
    from idempotent_webhook.reconciliations
    where endpoint = $1 and path = $2 and source = $3
),
first as (
    select min(received_at) as received_at
    from idempotent_webhook.deliveries
    where endpoint = $1
),
begin as (
    select
        coalesce(
            to_timestamp($7),
            (select begins_at from known),
            (select received_at from first),
            now()
        ) as begins_at,
        -- Lists have times in whole seconds, and may show an event late.
        (
            select reconciled_until - greatest($5, interval '1 minute')
            from known
            where not $8
        ) as next_since,
        (select least(before, now() - $6) + $5 from idempotent_webhook.pruned) as remembered_since
)
select
    extract(epoch from begins_at)::float8 as begins_at,
    extract(epoch from greatest(begins_at, next_since, remembered_since, now() - $4))::float8 as since,
    extract(epoch from now() - $5)::float8 as until,
    -- What came between the round before and this one is not looked at.
    coalesce(next_since < now() - $4, false) as has_gap
from begin
