-- Gives back deliveries that were taken ahead, before there were slots to run them, and have not started: endpoints $1,
-- tenants $2, ids $3, take numbers $4. A take number is the counter `takes` of the row, which each take increases. The
-- deliveries stay due at the same times as before.
--
-- A locked delivery is left alone: a provider request is about to delete or archive it, or an operator is changing it.
-- If its row is left unchanged, the delivery is free once this process gives up the number under which it was taken
-- (`liveness/mod.rs`).
--
-- The comparison of `takes` keeps a process from freeing a delivery that another process runs. Suppose that process 1
-- takes a delivery ahead and falls silent, and process 2 takes the delivery. Process 1 may then try to give it back.
with given_back as (
    select kept.endpoint, kept.tenant, kept.delivery_id
    from unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) as key (endpoint, tenant, delivery_id, takes)
    join idempotent_webhook.kept_deliveries as kept
        on kept.endpoint = any (array[key.endpoint])
            and kept.tenant = key.tenant
            and kept.delivery_id = key.delivery_id
    where kept.takes = key.takes
        -- A taken delivery is always due. Without this condition, two attempts would be subtracted if the answer to
        -- this statement is lost and the statement is repeated.
        and kept.taken_by is not null
    for update of kept skip locked
)
update idempotent_webhook.kept_deliveries as kept
set attempts = kept.attempts - 1, retries = greatest(kept.retries - 1, 0), taken_by = null
from given_back
where kept.endpoint = any (array[given_back.endpoint])
    and kept.tenant = given_back.tenant
    and kept.delivery_id = given_back.delivery_id
