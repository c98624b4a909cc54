-- Finds the deliveries of the endpoint $1 that are neither processed nor kept nor discarded. Three arrays describe the
-- listed deliveries: the tenants $2, the ids $3, and the times $4 of the events in Unix seconds.
--
-- Returns the positions of the missing deliveries in these arrays. For each delivery, returns whether its record may
-- have been deleted, and whether the provider has been asked for it for longer than $6 without success. The provider's
-- clock may be ahead by $5.
--
-- The tables are queried separately, so that one of them may be distributed.
with listed as materialized (
    select $1 as endpoint, tenant, delivery_id, occurred_at, place
    from unnest((select $2::text[]), $3::text[], $4::float8[]) with ordinality
        as listed (tenant, delivery_id, occurred_at, place)
),
processed as materialized (
    select place
    from listed
    join idempotent_webhook.deliveries as claim
        on claim.delivery_id = any (array[listed.delivery_id])
            and claim.endpoint = listed.endpoint
            and claim.tenant = listed.tenant
),
kept as materialized (
    select place
    from listed
    join idempotent_webhook.kept_deliveries as kept
        on kept.endpoint = any (array[listed.endpoint])
            and kept.tenant = listed.tenant
            and kept.delivery_id = listed.delivery_id
),
set_aside as materialized (
    select place
    from listed
    join idempotent_webhook.discarded as discarded
        on discarded.delivery_id = any (array[listed.delivery_id])
            and discarded.endpoint = listed.endpoint
            and discarded.tenant = listed.tenant
)
select
    place,
    coalesce(
        to_timestamp(occurred_at)
            < (select before + $5 from idempotent_webhook.pruned where endpoint = $1),
        false
    ) as may_be_deleted,
    exists (
        select
        from idempotent_webhook.redelivery_requests as asked
        where asked.endpoint = listed.endpoint
            and asked.tenant = listed.tenant
            and asked.delivery_id = listed.delivery_id
            and asked.first_at < now() - $6
    ) as asked_in_vain
from listed
where place not in (
    select place from processed
    union all
    select place from kept
    union all
    select place from set_aside
)
