-- Gives back deliveries of the endpoints $1 that were taken ahead and have not started: tenants $2, ids $3, take
-- numbers $4. They are due as before, in their old places. A locked delivery is left alone: the attempt of a
-- request is about to end it, or an operator changes it. If neither happens, it is free once the number under which
-- it was taken is given up.
--
-- Without `takes`: process 1 takes a delivery ahead and falls silent, process 2 takes it, and process 1 frees what
-- process 2 runs.
with given_back as (
    select kept.endpoint, kept.tenant, kept.delivery_id
    from unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) as key (endpoint, tenant, delivery_id, takes)
    join idempotent_webhook.kept_deliveries as kept
        on kept.endpoint = any (array[key.endpoint])
            and kept.tenant = key.tenant
            and kept.delivery_id = key.delivery_id
    where kept.takes = key.takes
        -- The delivery is taken, so it is due. Without this: the answer to the write is lost, the write is
        -- repeated, and two attempts are taken back.
        and kept.taken_by is not null
    for update of kept skip locked
)
update idempotent_webhook.kept_deliveries as kept
set attempts = kept.attempts - 1, retries = greatest(kept.retries - 1, 0), taken_by = null
from given_back
where kept.endpoint = any (array[given_back.endpoint])
    and kept.tenant = given_back.tenant
    and kept.delivery_id = given_back.delivery_id
