-- Records that a process recovers the endpoints $1, and which of its background tasks have stopped ($2). The rows are
-- written in the order of the key, so that two processes cannot deadlock. If all tasks of a process run, it writes only
-- rows that were last written more than 20 seconds ago. So of many healthy processes, only one writes.
insert into idempotent_webhook.kept_endpoints as known (endpoint, served_at, stalled, stalled_at)
select endpoint, now(), nullif($2::text[], '{}'), case when $2 <> '{}' then now() end
from unnest($1::text[]) as served (endpoint)
order by endpoint
on conflict (endpoint) do update
set served_at = excluded.served_at,
    stalled = coalesce(excluded.stalled, known.stalled),
    stalled_at = coalesce(excluded.stalled_at, known.stalled_at)
where known.served_at is null
    or known.served_at < now() - interval '20 seconds'
    or excluded.stalled is not null
