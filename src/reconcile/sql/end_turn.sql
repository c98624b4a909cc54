-- The process $4 gives up its turn in a round. Another one may resume the round at once.
--
-- $1 endpoint, $2 path, $3 source.
update idempotent_webhook.reconciliations
set process = null, turn_ends_at = null, next_round_at = now()
where endpoint = $1 and path = $2 and source = $3 and process = $4
