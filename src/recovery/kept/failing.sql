-- For each endpoint of $1 and each state: how many deliveries have failed and are not processed. Each count stops at
-- $2. The rows are read in the order of an index, because without an order the planner may read the whole table.
select served.endpoint, waiting.state, failing.count
from unnest($1::text[]) as served (endpoint)
cross join (values ('due'), ('dead'), ('recorded')) as waiting (state)
cross join lateral (
    select count(*)
    from (
        select
        from idempotent_webhook.kept_deliveries as kept
        where kept.endpoint = served.endpoint
            and kept.state = waiting.state
            and kept.last_failed_at is not null
        order by kept.last_failed_at
        limit $2
    ) as counted
) as failing
