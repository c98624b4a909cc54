-- Inserts the claim of a body's fingerprint, with the replay guard on. Returns a row if no delivery had it.
--
-- $1 endpoint, $2 tenant, $3 digest, $4 id, $5 `lock_timeout` for the wait and $6 after it.
with claimed as (
    insert into idempotent_webhook.bodies (endpoint, tenant, digest, delivery_id)
    values
        ($1, $2, $3,
        case when set_config('lock_timeout', $5, true) is not null then
            case when pg_advisory_xact_lock(
                hashtextextended(
                    encode($3, 'hex'),
                    hashtextextended($2, hashtextextended($1, 1))
                )
            ) is not null then $4 end
        end)
    on conflict do nothing
    returning delivery_id
)
select set_config('lock_timeout', $6, true)
from claimed
