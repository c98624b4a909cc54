-- Claims the fingerprint of a delivery's event type and body, if the replay guard is on. Returns a row if no other
-- delivery had claimed the fingerprint before.
--
-- The `case` for the id is evaluated from top to bottom, before the row is inserted:
--
--     lock_timeout := $5    for the queue
--     lock of the body, after a wait: all attempts with this body queue, like attempts at one delivery
--     lock_timeout := $6    for the insert
--
-- After the insert, `lock_timeout` is $7.
--
-- $1 endpoint, $2 tenant, $3 digest, $4 id, $5 `lock_timeout` for the queue, $6 for the insert, and $7 after the
-- insert.
with claimed as (
    insert into idempotent_webhook.bodies (endpoint, tenant, digest, delivery_id)
    values
        ($1, $2, $3,
        case
            when set_config('lock_timeout', $5, true) is null then null
            when pg_advisory_xact_lock(
                hashtextextended(
                    encode($3, 'hex'),
                    hashtextextended($2, hashtextextended($1, 1))
                )
            ) is null then null
            when set_config('lock_timeout', $6, true) is not null then $4
        end)
    on conflict do nothing
    returning delivery_id
)
select set_config('lock_timeout', $7, true)
from claimed
