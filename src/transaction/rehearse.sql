-- Takes the lock of a claim for a rehearsal, in a transaction that is always rolled back. Because it writes nothing, a
-- rehearsal can run even if the delivery was already processed, and no other session waits for a row that the rehearsal
-- has locked.
--
-- It is the same lock as in `claim.sql`. The `case` is evaluated from top to bottom:
--
--     idle limit   := $6
--     lock_timeout := $4    for the queue
--     lock of the delivery, after a wait
--     lock_timeout := $5    for the handler
--
-- $1 endpoint, $2 tenant, $3 id, $4 `lock_timeout` for the queue, $5 for the handler, $6 how long the transaction may
-- be without a statement.
select case
    when set_config('idle_in_transaction_session_timeout', $6, true) is null then null
    when set_config('lock_timeout', $4, true) is null then null
    when pg_advisory_xact_lock(
        hashtextextended($3, hashtextextended($2, hashtextextended($1, 0)))
    ) is null then null
    when set_config('lock_timeout', $5, true) is not null then pg_current_xact_id()::text
end
