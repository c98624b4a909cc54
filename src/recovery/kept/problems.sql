-- Notes the problems of the endpoints $1, for all processes. Returns those that have begun or ended since: whoever gets
-- a row is the one to tell.
with there as materialized (
    select served.endpoint, problem.name
    from unnest($1::text[]) as served (endpoint)
    cross join lateral (
        select 'failing' as name
        where exists (
            select
            from idempotent_webhook.kept_deliveries as kept
            where kept.endpoint = served.endpoint
                and kept.state in ('due', 'dead', 'recorded')
                and kept.last_failed_at is not null
        )
        union all
        select 'probing'
        where exists (
            select
            from idempotent_webhook.kept_endpoints as state
            where state.endpoint = served.endpoint and state.probe_at is not null
        )
        union all
        select 'unreached'
        where exists (
            select
            from idempotent_webhook.kept_deliveries as kept
            where kept.endpoint = served.endpoint
                and kept.state = 'due'
                and kept.unreached_at is not null
        )
        union all
        select 'not reconciled'
        where exists (
            select
            from idempotent_webhook.reconciliations as list
            where list.endpoint = served.endpoint
                and (
                    list.failure is not null
                    or greatest(list.next_round_at, list.turn_ends_at) < now() - interval '1 hour'
                )
        )
    ) as problem
),
begun as (
    insert into idempotent_webhook.problems (endpoint, problem)
    select endpoint, name
    from there
    order by endpoint, name
    on conflict do nothing
    returning endpoint, problem, since
),
ended as (
    delete from idempotent_webhook.problems as known
    where known.endpoint = any($1)
        -- Not those that a later version of this crate knows.
        and known.problem in ('failing', 'probing', 'unreached', 'not reconciled')
        and not exists (
            select from there where there.endpoint = known.endpoint and there.name = known.problem
        )
    returning endpoint, problem, since
)
select endpoint, problem, extract(epoch from since)::float8 as since, false as is_over from begun
union all
select endpoint, problem, extract(epoch from since)::float8 as since, true as is_over from ended
