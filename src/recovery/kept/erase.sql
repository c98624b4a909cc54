-- Erases the content of deliveries of the endpoints $1 with the tenants $2 and the ids $3: their requests, and the
-- reasons of failures, which may quote the requests. The transaction has already locked the rows of these deliveries.
--
-- A processed delivery leaves the archive. Any other delivery is only recorded from now on, and an attempt that has
-- taken it can no longer change its row.
with key as materialized (
    select endpoint, tenant, delivery_id
    from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
),
requests as (
    delete from idempotent_webhook.kept_requests as request
    using key
    where request.delivery_id = any (array[key.delivery_id])
        and request.endpoint = key.endpoint
        and request.tenant = key.tenant
),
archived as (
    delete from idempotent_webhook.kept_deliveries as kept
    using key
    where kept.endpoint = any (array[key.endpoint])
        and kept.tenant = key.tenant
        and kept.delivery_id = key.delivery_id
        and kept.state not in ('recorded', 'due', 'dead')
)
update idempotent_webhook.kept_deliveries as kept
set state = 'recorded',
    taken_by = null,
    takes = takes + 1,
    unfinished = 0,
    unreached_at = null,
    unreached_status = null,
    next_attempt_at = null,
    erased = true,
    reason = 'its content was erased',
    reason_group = idempotent_webhook.reason_group('its content was erased'),
    body_bytes = null,
    history = (
        select coalesce(jsonb_agg(attempt - 'reason' order by place), '[]')
        from jsonb_array_elements(history) with ordinality as attempts (attempt, place)
    )
from key
where kept.endpoint = any (array[key.endpoint])
    and kept.tenant = key.tenant
    and kept.delivery_id = key.delivery_id
    and kept.state <> 'processed'
