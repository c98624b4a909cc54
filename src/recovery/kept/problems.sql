-- Records the problems of all endpoints. Processes take turns: at each look, one process does this for all processes
-- (`recovery/problems.rs`). Returns the problems that have started or ended since the last look, and writes only the
-- rows of these problems.
--
-- $1 whether this look may report that no process recovers an endpoint. The first look of a process may not report
-- that, because a deploy may still be in progress. $2 the problems that this version of the crate knows.
--
-- An endpoint that no process has recovered for ten minutes counts as removed: all its problems except `unserved`
-- are over.
with recursive due as (
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
        where next.state = 'due' and next.endpoint > due.endpoint
        order by next.endpoint
        limit 1
    )
    from due
    where due.endpoint is not null
),
known as materialized (
    select endpoint, coalesce(state.served_at > now() - interval '10 minutes', false) as is_served
    from due
    full join idempotent_webhook.kept_endpoints as state using (endpoint)
    where endpoint is not null
),
there as materialized (
    select endpoint, problem, subject, true as is_there
    from idempotent_webhook.endpoint_problems(array(select endpoint from known)) as found
    join known using (endpoint)
    where problem = any($2) and case problem when 'unserved' then $1 else is_served end
),
-- This is a full join because Postgres never runs a full join as a nested loop, however wrong the planner's estimates
-- are.
compared as materialized (
    select
        endpoint, problem, subject, there.is_there is not null as is_there,
        coalesce(noted.is_there, false) as was_there
    from there
    full join idempotent_webhook.problems as noted using (endpoint, problem, subject)
),
begun as (
    insert into idempotent_webhook.problems as noted (endpoint, problem, subject, is_there)
    select endpoint, problem, subject, true
    from compared
    where is_there and not was_there
    on conflict (endpoint, problem, subject) do update
    set is_there = true, since = now()
    returning endpoint, problem, subject, since
),
ended as (
    update idempotent_webhook.problems as noted
    set is_there = false
    from compared
    where compared.was_there
        and not compared.is_there
        and noted.endpoint = compared.endpoint
        and noted.problem = compared.problem
        and noted.subject = compared.subject
        and noted.problem = any($2)
        and ($1 or exists (
            select
            from idempotent_webhook.kept_endpoints as state
            where state.endpoint = noted.endpoint
                and state.served_at > now() - interval '10 minutes'
        ))
    returning noted.endpoint, noted.problem, noted.subject, noted.since
),
-- Deletes problems that started and ended before a hook was called for them.
forgotten as (
    delete from idempotent_webhook.problems as noted
    using compared
    where not compared.was_there
        and not compared.is_there
        and noted.endpoint = compared.endpoint
        and noted.problem = compared.problem
        and noted.subject = compared.subject
        and not noted.is_told
        and noted.telling_until is null
)
select endpoint, problem, subject, extract(epoch from since)::float8 as since, false as is_over from begun
union all
select endpoint, problem, subject, extract(epoch from since)::float8 as since, true as is_over from ended
order by since, endpoint, problem, subject
