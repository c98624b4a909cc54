-- Gives back the deliveries $2 (tenants) and $3 (ids) of the endpoints $1 that were taken ahead, by the takes with the numbers
-- $4, and have not begun. They are due as before, in their old places. A locked one is left: the attempt of a request
-- is about to end it, or an operator changes it. If neither does, it is free once its number is given up.
--
-- Without `takes`: 1 takes it ahead and is silent, 2 takes it, and 1 frees what 2 runs.
with given_back as (
    select kept.endpoint, kept.tenant, kept.delivery_id
    from unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) as key (endpoint, tenant, delivery_id, takes)
    join idempotent_webhook.kept_deliveries as kept
        on kept.endpoint = any (array[key.endpoint])
            and kept.tenant = key.tenant
            and kept.delivery_id = key.delivery_id
    where kept.takes = key.takes
        -- It is due. Without this: the answer to the write is lost, it is written again, and two attempts are taken back.
        and kept.taken_by is not null
    for update of kept skip locked
)
update idempotent_webhook.kept_deliveries as kept
set attempts = kept.attempts - 1, retries = greatest(kept.retries - 1, 0), taken_by = null
from given_back
where kept.endpoint = any (array[given_back.endpoint])
    and kept.tenant = given_back.tenant
    and kept.delivery_id = given_back.delivery_id
