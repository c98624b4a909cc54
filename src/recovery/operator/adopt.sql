-- Pauses each endpoint that has deliveries which are due or dead, and records the adoption. $1 the operator, $2 a
-- text with the new environment and the one before.
--
-- Each look-up reads one row of an index, no matter how many deliveries are kept: with `order by` and `limit`, the
-- planner has no other choice.
with recursive known as (
    (
        select endpoint
        from idempotent_webhook.kept_deliveries
        order by endpoint
        limit 1
    )
    union all
    select (
        select next.endpoint
        from idempotent_webhook.kept_deliveries as next
        where next.endpoint > known.endpoint
        order by next.endpoint
        limit 1
    )
    from known
    where known.endpoint is not null
),
paused as (
    insert into idempotent_webhook.kept_endpoints as state (endpoint, paused_at)
    select known.endpoint, now()
    from known
    where coalesce(
        (
            select true
            from idempotent_webhook.kept_deliveries as kept
            where kept.endpoint = known.endpoint and kept.state = 'due'
            order by kept.next_attempt_at
            limit 1
        ),
        (
            select true
            from idempotent_webhook.kept_deliveries as kept
            where kept.endpoint = known.endpoint and kept.state = 'dead'
            order by kept.died_at
            limit 1
        )
    )
    on conflict (endpoint) do update
    set paused_at = coalesce(state.paused_at, excluded.paused_at)
    returning endpoint
)
insert into idempotent_webhook.operator_actions (operator, action, endpoints, selection, changed, ended_at)
select $1, 'adopt', coalesce(array_agg(endpoint order by endpoint), '{}'), $2, count(*), now()
from paused
returning id as action, endpoints as paused
