-- Attempts begin again, also if the breaker is open.
update idempotent_webhook.kept_endpoints
set paused_at = null, failed_ids = '{}', probe_at = null
where endpoint = $1
