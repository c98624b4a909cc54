-- How many due deliveries each endpoint has that no process recovers, as the last look has found: at most $1.
select noted.endpoint, (
    select count(*)
    from (
        select
        from idempotent_webhook.kept_deliveries as kept
        where kept.endpoint = noted.endpoint and kept.state = 'due'
        order by kept.next_attempt_at
        limit $1
    ) as counted
) as due
from idempotent_webhook.problems as noted
where noted.problem = 'unserved' and noted.is_there
