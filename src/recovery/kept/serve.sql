-- Notes that a process recovers the endpoints of $1. In the order of the key, so that two
-- processes do not wait for each other in a circle. Of many processes, one writes.
insert into idempotent_webhook.kept_endpoints as known (endpoint, served_at)
select endpoint, now()
from unnest($1::text[]) as served (endpoint)
order by endpoint
on conflict (endpoint) do update
set served_at = excluded.served_at
where known.served_at is null or known.served_at < now() - interval '20 seconds'
