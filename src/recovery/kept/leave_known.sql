-- Deletes deliveries that this transaction has kept from a provider list, if they have been processed or set aside
-- (`set_aside.sql`) since `accept.sql` checked them. That can happen because, after its check, `accept.sql` may wait
-- for another delivery of the list.
--
-- If this statement were missing, a delivery could run twice. Suppose that `accept.sql` finds that delivery A is not
-- known, and then waits for delivery B. Meanwhile, A arrives as a request, is processed and is forgotten.
--
-- $1 endpoints, $2 tenants, $3 ids.
with key as materialized (
    select endpoint, tenant, delivery_id
    from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
),
processed as materialized (
    select key.endpoint, key.tenant, key.delivery_id
    from key
    join idempotent_webhook.deliveries as claim
        on claim.delivery_id = any (array[key.delivery_id])
            and claim.endpoint = key.endpoint
            and claim.tenant = key.tenant
),
set_aside as materialized (
    select key.endpoint, key.tenant, key.delivery_id
    from key
    join idempotent_webhook.discarded as discarded
        on discarded.delivery_id = any (array[key.delivery_id])
            and discarded.endpoint = key.endpoint
            and discarded.tenant = key.tenant
),
known as materialized (
    select endpoint, tenant, delivery_id from processed
    union
    select endpoint, tenant, delivery_id from set_aside
)
delete from idempotent_webhook.kept_deliveries as kept
using known
where kept.endpoint = any (array[known.endpoint])
    and kept.tenant = known.tenant
    and kept.delivery_id = known.delivery_id
returning kept.tenant, kept.delivery_id
