-- Inserts the claim. Returns a row if the delivery was not claimed before.
--
-- All attempts at a delivery queue for one advisory lock, which is held to the end of the transaction. Most
-- find it free. `lock_timeout` bounds the wait of the others in the queue as a whole. Without the queue, an
-- attempt would wait for the transaction that has inserted the row, then for the next one that inserts it after a
-- failure, with a new `lock_timeout` each time.
--
-- `lock_timeout` bounds each wait, so that a session whose client has given up does not wait on with the lock: the
-- insert waits for a transaction that deletes or inserts the row by itself. It is restored before the handler's
-- statements: here, or by `end_with_claim.sql` if there is more to do. After a wait, the kept rows are read
-- again: this statement does not see what was kept meanwhile. Separate statements for the lock and the settings would
-- cost more. The outer `select` is for Citus, where the `insert` runs on a worker, in another transaction.
--
-- It also limits how long the transaction may be idle, so that Postgres ends the claim of a process that is
-- frozen or whose host is gone. Otherwise the claim would last for as long as Postgres believes in the
-- connection, which is two hours by default.
--
-- Without `on conflict do nothing` on the key: A commits, B claims and commits: two effects. Without the lock: A claims,
-- an operator discards what was kept meanwhile, and A commits. Without the limit, a host that is lost blocks it.
--
-- $1 endpoint, $2 tenant, $3 id, $4 event type, $5 digest, $6 `lock_timeout` for the queue, $7 for other waits, and $8
-- for the handler, $9 the longest time of the transaction without a statement.
with claimed as (
    insert into idempotent_webhook.deliveries
        (endpoint, tenant, delivery_id, event_type, digest)
    values
        ($1, $2, $3,
        case
            when set_config('idle_in_transaction_session_timeout', $9, true) is null then null
            when set_config('lock_timeout', $7, true) is null then null
            when pg_try_advisory_xact_lock(
                hashtextextended($3, hashtextextended($2, hashtextextended($1, 0)))
            ) then $4
            when set_config('lock_timeout', $6, true) is null then null
            when pg_advisory_xact_lock(
                hashtextextended($3, hashtextextended($2, hashtextextended($1, 0)))
            ) is null then null
            when set_config('idempotent_webhook.has_waited', 'true', true) is null then null
            when set_config('lock_timeout', $7, true) is not null then $4
        end,
        $5)
    on conflict do nothing
    returning delivery_id
)
select
    pg_current_xact_id()::text,
    case
        when exists (
            select 1
            from idempotent_webhook.kept_deliveries
            where endpoint = $1 and tenant = $2 and delivery_id = $3
        ) then true
        when current_setting('idempotent_webhook.has_waited', true) = 'true' then true
        else set_config('lock_timeout', $8, true) is null
    end as may_be_kept
from claimed
