-- Resumes the endpoint $1: attempts start again, even if the breaker was open.
update idempotent_webhook.kept_endpoints
set paused_at = null, failed_ids = '{}', probe_at = null
where endpoint = $1
