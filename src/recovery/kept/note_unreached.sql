-- An attempt of the endpoint $1 has reached no layer. Noted once a minute while that is so.
insert into idempotent_webhook.kept_endpoints (endpoint, unreached_at)
values ($1, now())
on conflict (endpoint) do update
set unreached_at = excluded.unreached_at
