-- Inserts the claim. Returns a row if the delivery was not claimed before. Another driver does the same by the function `claim`
-- (`migrations/0004_claim.sql`).
--
-- The `case` of the event type goes from top to bottom, before the row is inserted:
--
--     idle limit   := $9    Postgres ends the claim of a process that is frozen or lost, and not after two hours
--     lock_timeout := $7    for the insert
--     lock of the delivery, if it is free: that is all
--     lock_timeout := $6    for the queue
--     lock of the delivery, after a wait
--     has_waited   := true  the kept rows are read again: this statement does not see rows kept meanwhile
--     lock_timeout := $7    for the insert
--
-- The insert waits for a transaction that deletes or inserts the row by itself. The handler's statements get
-- `lock_timeout` $8: here, or by `end_with_claim.sql` if there is more to do.
--
-- All attempts at a delivery queue for the lock, which is held to the end of the transaction. Most find it free. Without
-- the queue, an attempt would wait for the transaction that has inserted the row, then for the next one that inserts it
-- after a failure, with a new `lock_timeout` each time. Each wait has a limit, or a session whose client has given up
-- would wait on with the lock. Separate statements for the lock and the settings would cost more. The outer `select`
-- is for Citus, where the `insert` runs on a worker, in another transaction.
--
-- Without `on conflict do nothing` on the key: A commits, B claims and commits: two effects. Without the lock: A claims,
-- an operator discards the row that was kept meanwhile, and A commits. Without the idle limit, a host that is lost
-- blocks it.
--
-- $1 endpoint, $2 tenant, $3 id, $4 event type, $5 digest, $6 `lock_timeout` for the queue, $7 for other waits, and $8
-- for the handler, $9 the longest time of the transaction without a statement, $10 the handler's `enable_seqscan`.
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
