-- Ends the turn of a process, which another one may have taken over meanwhile. $1 the endpoint, $2 the address, $3 the
-- name of the list, $4 the process, $5 when the next turn is, $6 what was found, or `null` if the provider could not be
-- asked: that changes nothing.
update idempotent_webhook.subscriptions
set process = null,
    next_at = now() + $5,
    compared_at = case when $6::text[] is null then compared_at else now() end,
    differences = coalesce($6, differences)
where endpoint = $1 and address = $2 and source = $3 and process = $4
returning true
