-- Makes processed deliveries due again, for an operator who reprocesses them: endpoints $1, tenants $2, ids $3.
-- Their rows are locked, and their claims are deleted. Without `takes + 1`: process 1 has taken a delivery, a
-- request processes it, an operator reprocesses it, and process 1 gives it back.
update idempotent_webhook.kept_deliveries as kept
set state = 'due', retries = 0, next_attempt_at = now(), taken_by = null, takes = takes + 1,
    unfinished = 0, unreached_at = null, unreached_status = null, reprocessed = true, processed_at = null,
    processed_version = null, archived_until = null
from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
where kept.endpoint = any (array[key.endpoint])
    and kept.tenant = key.tenant
    and kept.delivery_id = key.delivery_id
