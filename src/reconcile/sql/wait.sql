-- In how many seconds a round may begin, or go on.
--
-- $1 endpoint, $2 path, $3 source.
select extract(epoch from greatest(next_round_at, turn_ends_at) - now())::float8 as seconds
from idempotent_webhook.reconciliations
where endpoint = $1 and path = $2 and source = $3
