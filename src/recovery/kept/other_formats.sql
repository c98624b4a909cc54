-- How many deliveries of each endpoint of $1 are due whose requests are not in the format $3, which this process
-- reads. The $2 that are due longest are looked at.
select served.endpoint, count(*) as due
from unnest($1::text[]) as served (endpoint)
cross join lateral (
    select endpoint, tenant, delivery_id
    from idempotent_webhook.kept_deliveries as kept
    where kept.endpoint = served.endpoint and kept.state = 'due' and kept.next_attempt_at <= now()
    order by kept.next_attempt_at
    limit $2
) as due
join idempotent_webhook.kept_requests as request
    on request.endpoint = due.endpoint
    and request.tenant = due.tenant
    and request.delivery_id = due.delivery_id
where request.format <> $3
group by served.endpoint
