-- An attempt at the endpoint $1 has succeeded: its failures are no longer in a row.
update idempotent_webhook.kept_endpoints
set failed_ids = '{}', probe_at = null
where endpoint = $1 and (cardinality(failed_ids) > 0 or probe_at is not null)
