-- Inserts the claim. Returns a row if the delivery was not claimed before. The SQL function `claim`
-- (`migrations/0004_claim.sql`) does the same for handlers that use another driver.
--
-- The `case` for the event type is evaluated from top to bottom, before the row is inserted:
--
--     idle limit   := $9    Postgres ends the claim of a frozen or lost process soon, not only after two hours
--     lock_timeout := $7    for the insert
--     lock of the delivery, if it is free: nothing else follows
--     lock_timeout := $6    for the queue
--     lock of the delivery, after a wait
--     has_waited   := true  the kept rows are read again: this statement does not see rows kept during the wait
--     lock_timeout := $7    for the insert
--
-- The insert also waits for a transaction that deletes or inserts the row without taking the lock. The handler's
-- statements get `lock_timeout` $8. It is set here, or by `end_with_claim.sql` if there is more to do.
--
-- All attempts at a delivery queue for its lock, which is held until the end of the transaction. Most attempts find the
-- lock free. If there were no queue, an attempt would wait for the transaction that has inserted the row. If that
-- transaction failed, the attempt would wait for the next one that inserts the row, with a new `lock_timeout` each
-- time. Each wait has a limit: otherwise, a session whose client has given up could go on waiting while it holds the
-- lock.
--
-- Separate statements for the lock and the settings would cost more. The outer `select` is for Citus, where the
-- `insert` runs on a worker, in another transaction.
--
-- What would happen without each of these guards, for two attempts A and B:
--
-- - Without `on conflict do nothing` on the key, B could claim and commit after A has committed, and the delivery would
--   take effect twice.
-- - Without the lock, the delivery could be kept after A has claimed it. An operator could then discard the kept row,
--   and A would still commit.
-- - Without the idle limit, a lost host would block the delivery.
--
-- $1 endpoint, $2 tenant, $3 id, $4 event type, $5 digest, $6 `lock_timeout` for the queue, $7 for other waits, and $8
-- for the handler, $9 how long the transaction may be without a statement, $10 the handler's `enable_seqscan`.
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
    end as may_be_kept,
    set_config('enable_seqscan', $10, true)
from claimed
