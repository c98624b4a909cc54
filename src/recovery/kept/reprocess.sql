-- Makes processed deliveries due again, for an operator who reprocesses them: endpoints $1, tenants $2, ids $3. The
-- transaction has already locked their rows and deleted their claims.
--
-- `takes + 1` gives the row a new take number, so that earlier attempts can no longer change it. Suppose that process 1
-- has taken the delivery, a provider request processes it, and an operator reprocesses it. If the number stayed the
-- same, process 1 could still give back the reprocessed delivery.
update idempotent_webhook.kept_deliveries as kept
set state = 'due', retries = 0, next_attempt_at = now(), taken_by = null, takes = takes + 1,
    unfinished = 0, unreached_at = null, unreached_status = null, reprocessed = true, processed_at = null,
    processed_version = null, archived_until = null
from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
where kept.endpoint = any (array[key.endpoint])
    and kept.tenant = key.tenant
    and kept.delivery_id = key.delivery_id
