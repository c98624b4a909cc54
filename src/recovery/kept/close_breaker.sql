-- Closes the breaker of the endpoint $1. An attempt has succeeded, so the failures before it are no longer counted as
-- failures in a row.
update idempotent_webhook.kept_endpoints
set failed_ids = '{}', probe_at = null
where endpoint = $1 and (cardinality(failed_ids) > 0 or probe_at is not null)
