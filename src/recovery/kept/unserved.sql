-- For each endpoint that no process recovered at the last look for problems: how many due deliveries it has, at most
-- $1.
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
