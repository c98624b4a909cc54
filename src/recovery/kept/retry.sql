-- An operator has a delivery run again now, with a new schedule. One whose attempt runs is left alone.
-- Without `takes + 1`: 1 takes it and is silent, it is retried, and the failure of 1 is written to what is due anew.
with chosen as (
    select endpoint, tenant, delivery_id
    from idempotent_webhook.kept_deliveries as kept
    join idempotent_webhook.kept_requests as request using (endpoint, tenant, delivery_id)
    where kept.endpoint = $1 and kept.tenant = $2 and kept.delivery_id = $3
        and (
            kept.state = 'dead'
            or kept.state = 'due' and (kept.next_attempt_at > now() or kept.taken_by is not null)
        )
        and (
            kept.taken_by is null
            or not exists (select from idempotent_webhook.processes where number = kept.taken_by)
        )
    for update of kept skip locked
)
update idempotent_webhook.kept_deliveries as kept
set state = 'due', retries = 0, next_attempt_at = now(), taken_by = null, takes = takes + 1,
    unfinished = 0
from chosen
where kept.endpoint = chosen.endpoint
    and kept.tenant = chosen.tenant
    and kept.delivery_id = chosen.delivery_id
returning 1
