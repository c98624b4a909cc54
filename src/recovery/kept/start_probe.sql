-- Moves the time of the next probe of the endpoint $1, whose breaker is open, by $2, if it is time for a probe. Only
-- the process that has moved it takes a delivery. It moves the time first: if the process dies or finds nothing to
-- take, the others do not all look again at once.
update idempotent_webhook.kept_endpoints
set probe_at = now() + $2
where endpoint = $1 and probe_at <= now() and paused_at is null
returning 1
