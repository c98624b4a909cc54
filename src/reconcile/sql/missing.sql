-- Which deliveries of the endpoint $1 are neither processed nor kept nor discarded, by their places in the tenants
-- $2, the ids $3, and the times $4 of the events in Unix seconds, and whether they may have been deleted. The
-- provider's clock may go before by $5. And whether the provider has been asked for them in vain for longer than $6.
--
-- The tables are asked apart, so that one of them may be distributed.
with listed as materialized (
    select tenant, delivery_id, occurred_at, place
    from unnest((select $2::text[]), $3::text[], $4::float8[]) with ordinality
        as listed (tenant, delivery_id, occurred_at, place)
),
processed as materialized (
    select tenant, delivery_id
    from idempotent_webhook.deliveries
    where endpoint = $1
        and (tenant, delivery_id) in (select * from unnest((select $2::text[]), $3::text[]))
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
        where asked.endpoint = $1
            and asked.tenant = listed.tenant
            and asked.delivery_id = listed.delivery_id
            and asked.first_at < now() - $6
    ) as asked_in_vain
from listed
where not exists (
        select
        from processed
        where processed.tenant = listed.tenant and processed.delivery_id = listed.delivery_id
    )
    and not exists (
        select
        from idempotent_webhook.kept_deliveries as kept
        where kept.endpoint = $1
            and kept.tenant = listed.tenant
            and kept.delivery_id = listed.delivery_id
    )
    and not exists (
        select
        from idempotent_webhook.discarded
        where discarded.endpoint = $1
            and discarded.tenant = listed.tenant
            and discarded.delivery_id = listed.delivery_id
    )
