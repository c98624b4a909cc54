-- How many deliveries are due of each endpoint that no process has recovered for $1 seconds. At most $2 are
-- counted.
with recursive endpoints as (
    (
        select endpoint
        from idempotent_webhook.kept_deliveries
        where state = 'due'
        order by endpoint
        limit 1
    )
    union all
    select (
        select next.endpoint
        from idempotent_webhook.kept_deliveries as next
        where next.state = 'due' and next.endpoint > endpoints.endpoint
        order by next.endpoint
        limit 1
    )
    from endpoints
    where endpoints.endpoint is not null
)
select endpoint, (
    select count(*)
    from (
        select
        from idempotent_webhook.kept_deliveries as kept
        where kept.endpoint = endpoints.endpoint and kept.state = 'due'
        limit $2
    ) as counted
) as due
from endpoints
left join idempotent_webhook.kept_endpoints as state using (endpoint)
where endpoint is not null
    and (state.served_at is null or state.served_at < now() - make_interval(secs => $1))
