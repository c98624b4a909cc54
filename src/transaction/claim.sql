-- Inserts the claim. Returns a row if the delivery was not claimed before.
--
-- All attempts at a delivery queue for one advisory lock, which is held to the end of the transaction. Most
-- find it free. `lock_timeout` bounds the wait of the others in the queue as a whole. Without the queue, an
-- attempt would wait for the transaction that has inserted the row, then for the next one that inserts it after a
-- failure, with a new `lock_timeout` each time.
--
-- `lock_timeout` is set before the wait and restored after it, before the handler's statements. Who has waited looks
-- again at what is kept of the delivery: this statement does not see what was kept meanwhile. Separate statements
-- for the lock and the settings would cost more. The outer `select` is for Citus, where the `insert` runs on a
-- worker, in another transaction.
--
-- It also limits how long the transaction may be idle, so that Postgres ends the claim of a process that is
-- frozen or whose host is gone. Otherwise the claim would last for as long as Postgres believes in the
-- connection, which is two hours by default.
--
-- Without `on conflict do nothing` on the key: A commits, B claims and commits: two effects. Without the lock: A claims,
-- an operator discards what was kept meanwhile, and A commits. Without the limit, a host that is lost blocks it.
--
-- $1 endpoint, $2 tenant, $3 id, $4 event type, $5 digest, $6 `lock_timeout` for the wait and $7 otherwise, $8
-- the longest time of the transaction without a statement.
with claimed as (
    insert into idempotent_webhook.deliveries
        (endpoint, tenant, delivery_id, event_type, digest)
    values
        ($1, $2, $3,
        case
            when set_config('idle_in_transaction_session_timeout', $8, true) is null then null
            when pg_try_advisory_xact_lock(
                hashtextextended($3, hashtextextended($2, hashtextextended($1, 0)))
            ) then $4
            when set_config('lock_timeout', $6, true) is null then null
            when pg_advisory_xact_lock(
                hashtextextended($3, hashtextextended($2, hashtextextended($1, 0)))
            ) is not null then $4
        end,
        $5)
    on conflict do nothing
    returning delivery_id
)
select
    pg_current_xact_id()::text,
    exists (
        select 1
        from idempotent_webhook.kept_deliveries
        where endpoint = $1 and tenant = $2 and delivery_id = $3
    ) as is_kept,
    case current_setting('lock_timeout')
        when $7 then false
        else set_config('lock_timeout', $7, true) is not null
    end as has_waited
from claimed
