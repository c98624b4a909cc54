-- Closes a gap that lies within the period from $4 to $5, which a round has covered.
--
-- $1 endpoint, $2 path, $3 source.
update idempotent_webhook.reconciliations
set gap_since = null, gap_until = null
where endpoint = $1 and path = $2 and source = $3
    and to_timestamp($4) <= gap_since
    and gap_until <= to_timestamp($5)
