-- Starts a probe of the endpoint $1, whose breaker is open, if the time for a probe has come: moves the time of the
-- next probe to $2 from now. Only the process that has moved the time takes a delivery. The time is moved before the
-- delivery is taken. So if this process dies or finds nothing to take, the other processes wait until the next probe.
update idempotent_webhook.kept_endpoints
set probe_at = now() + $2
where endpoint = $1 and probe_at <= now() and paused_at is null
returning 1
