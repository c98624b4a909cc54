-- Pauses the endpoint $1: no recovery attempt starts there.
insert into idempotent_webhook.kept_endpoints (endpoint, paused_at)
values ($1, now())
on conflict (endpoint) do update
set paused_at = coalesce(kept_endpoints.paused_at, now())
