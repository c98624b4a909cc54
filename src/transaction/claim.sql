-- Inserts the claim. Returns a row if the delivery was not claimed before.
--
-- All attempts at a delivery queue for one advisory lock, which is held to the end of the transaction.
-- `lock_timeout` bounds the wait in the queue as a whole. Without the queue, an attempt would wait for the
-- transaction that has inserted the row, then for the next one that inserts it after a failure, with a new
-- `lock_timeout` each time.
--
-- The statement sets `lock_timeout` along with the values, before the wait, and restores it along with the
-- returned row, before the handler's statements. Separate statements for that, or for the lock, would cost
-- more. The outer `select` is for Citus, where the `insert` runs on a worker, in another transaction.
--
-- It also limits how long the transaction may be idle, so that Postgres ends the claim of a process that is
-- frozen or whose host is gone. Otherwise the claim would last for as long as Postgres believes in the
-- connection, which is two hours by default.
--
-- $1 endpoint, $2 tenant, $3 id, $4 event type, $5 digest, $6 `lock_timeout` for the wait and $7 after it, $8
-- the longest time of the transaction without a statement.
with claimed as (
    insert into idempotent_webhook.deliveries
        (endpoint, tenant, delivery_id, event_type, digest)
    values
        ($1, $2, $3,
        case when
            set_config('lock_timeout', $6, true) is not null
            and set_config('idle_in_transaction_session_timeout', $8, true) is not null
        then
            case when pg_advisory_xact_lock(
                hashtextextended($3, hashtextextended($2, hashtextextended($1, 0)))
            ) is not null then $4 end
        end,
        $5)
    on conflict do nothing
    returning delivery_id
)
select
    pg_current_xact_id()::text,
    idempotent_webhook.is_kept($1, $2, $3),
    set_config('lock_timeout', $7, true)
from claimed
