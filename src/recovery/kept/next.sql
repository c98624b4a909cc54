-- For each endpoint of $1: in how many seconds the next delivery can be taken, if there is one and the endpoint is not
-- paused; how many seconds this delivery has been due; whether the breaker is open; and whether attempts have failed
-- since the last success. Returns no rows in a database that does not belong to the environment $2.
select
    served.endpoint,
    case when state.paused_at is null and due.next_attempt_at is not null then
        extract(epoch from greatest(due.next_attempt_at, state.probe_at) - now())::float8
    end as wait,
    extract(epoch from now() - due.next_attempt_at)::float8 as overdue,
    state.probe_at is not null as is_open,
    coalesce(cardinality(state.failed_ids), 0) > 0 as has_failures
from unnest($1::text[]) as served (endpoint)
left join idempotent_webhook.kept_endpoints as state using (endpoint)
left join lateral (
    select next_attempt_at
    from idempotent_webhook.kept_deliveries as kept
    where kept.endpoint = served.endpoint
        and kept.state = 'due'
        and (
            kept.taken_by is null
            or not exists (select from idempotent_webhook.processes where number = kept.taken_by)
        )
    order by kept.next_attempt_at
    limit 1
) as due on true
where $2::text is not distinct from (select name from idempotent_webhook.environment)
