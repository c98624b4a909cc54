-- An operator has deliveries of the endpoints $1 with the tenants $2 and the ids $3 run again now, with a new schedule.
-- Their rows are locked, and no attempt at them runs.
--
-- Without `takes + 1`: 1 takes it and is silent, it is retried, and the failure of 1 is written to the row that is due
-- again.
update idempotent_webhook.kept_deliveries as kept
set state = 'due', retries = 0, next_attempt_at = now(), taken_by = null, takes = takes + 1,
    unfinished = 0, unreached_at = null, unreached_status = null
from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
where kept.endpoint = any (array[key.endpoint])
    and kept.tenant = key.tenant
    and kept.delivery_id = key.delivery_id
