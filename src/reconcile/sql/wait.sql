-- In how many seconds a round may begin, or go on. It is not later than the interval of this process, which may be
-- shorter than that of the process that had the last round.
--
-- $1 endpoint, $2 path, $3 source, $4 the interval.
with shortened as (
    update idempotent_webhook.reconciliations
    set next_round_at = now() + $4
    where endpoint = $1 and path = $2 and source = $3 and next_round_at > now() + $4
    returning next_round_at
)
select
    extract(epoch from greatest(
        coalesce((select next_round_at from shortened), next_round_at), turn_ends_at
    ) - now())::float8 as seconds
from idempotent_webhook.reconciliations
where endpoint = $1 and path = $2 and source = $3
