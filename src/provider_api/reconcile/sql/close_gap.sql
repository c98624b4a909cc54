-- A round has looked at the events from $4 to $5: a gap within them is closed.
--
-- $1 endpoint, $2 path, $3 source.
update idempotent_webhook.reconciliations
set gap_since = null, gap_until = null
where endpoint = $1 and path = $2 and source = $3
    and to_timestamp($4) <= gap_since
    and gap_until <= to_timestamp($5)
