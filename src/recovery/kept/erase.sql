-- Erases the content of deliveries of the endpoint $1 with the tenants $2 and the ids $3: their requests, and the
-- reasons of failures, which may quote them. Their rows are locked.
--
-- What was processed leaves the archive. What was not is only recorded from now on, and an attempt that has taken it
-- has no effect on the row.
with requests as (
    delete from idempotent_webhook.kept_requests
    where endpoint = $1 and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
),
archived as (
    delete from idempotent_webhook.kept_deliveries
    where endpoint = $1
        and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
        and state = 'processed'
)
update idempotent_webhook.kept_deliveries
set state = 'recorded',
    taken_by = null,
    takes = takes + 1,
    next_attempt_at = null,
    first_failed_at = coalesce(first_failed_at, now()),
    last_failed_at = coalesce(last_failed_at, now()),
    erased = true,
    reason = 'its content was erased',
    reason_group = idempotent_webhook.reason_group('its content was erased'),
    body_bytes = null,
    history = (
        select coalesce(jsonb_agg(attempt - 'reason' order by place), '[]')
        from jsonb_array_elements(history) with ordinality as attempts (attempt, place)
    )
where endpoint = $1
    and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
    and state <> 'processed'
