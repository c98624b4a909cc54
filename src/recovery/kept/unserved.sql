-- How many deliveries are due of each endpoint of which none or not all are run by a process, as the last look has
-- found. At most $1 are counted, and those of another format than $2 are counted among the 100 that are due longest.
select noted.endpoint, case noted.problem when 'unserved' then (
    select count(*)
    from (
        select
        from idempotent_webhook.kept_deliveries as kept
        where kept.endpoint = noted.endpoint and kept.state = 'due'
        order by kept.next_attempt_at
        limit $1
    ) as counted
) else (
    select count(*)
    from (
        select (
            select request.format
            from idempotent_webhook.kept_requests as request
            where request.endpoint = kept.endpoint
                and request.tenant = kept.tenant
                and request.delivery_id = kept.delivery_id
        ) as format
        from idempotent_webhook.kept_deliveries as kept
        where kept.endpoint = noted.endpoint and kept.state = 'due'
        order by kept.next_attempt_at
        limit 100
    ) as counted
    where counted.format <> $2
) end as due
from idempotent_webhook.problems as noted
where noted.problem in ('unserved', 'other format') and noted.is_there
