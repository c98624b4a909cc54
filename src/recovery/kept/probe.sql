-- Takes one delivery of the endpoint $1, whose breaker is open, if it is time for a probe. Any one, since
-- the oldest may be hopeless. The next probe is after $2.
--
-- $3 the format of requests that this process reads, $4 the number under which it is taken.
with time_to_probe as (
    select endpoint
    from idempotent_webhook.kept_endpoints
    where endpoint = $1 and probe_at <= now() and paused_at is null
    for no key update skip locked
),
chosen as (
    select endpoint, tenant, delivery_id, taken_by
    from idempotent_webhook.kept_deliveries as kept
    where endpoint = $1
        and state = 'due'
        and next_attempt_at <= now()
        and (
            taken_by is null
            or not exists (select from idempotent_webhook.processes where number = taken_by)
        )
        and (
            select format
            from idempotent_webhook.kept_requests as request
            where request.endpoint = kept.endpoint
                and request.tenant = kept.tenant
                and request.delivery_id = kept.delivery_id
        ) = $3
        and exists (select from time_to_probe)
    order by random()
    limit 1
    for update of kept skip locked
),
probed as (
    update idempotent_webhook.kept_endpoints
    set probe_at = now() + $2
    where endpoint = $1 and exists (select from chosen)
)
update idempotent_webhook.kept_deliveries as kept
set attempts = kept.attempts + 1,
    retries = kept.retries + 1,
    takes = kept.takes + 1,
    unfinished = kept.unfinished + (chosen.taken_by is not null)::int,
    taken_by = $4
from chosen
join idempotent_webhook.kept_requests as request using (endpoint, tenant, delivery_id)
where kept.endpoint = chosen.endpoint
    and kept.tenant = chosen.tenant
    and kept.delivery_id = chosen.delivery_id
returning
    kept.tenant, kept.tenant_name, kept.delivery_id, kept.event_type, kept.attempts, kept.retries,
    kept.takes, kept.unfinished, chosen.taken_by is not null as interrupted, kept.reprocessed, kept.reconciled,
    extract(epoch from kept.first_received_at)::float8 as first_received_at,
    extract(epoch from request.signed_at)::float8 as signed_at,
    request.method, request.uri, request.headers, request.body
