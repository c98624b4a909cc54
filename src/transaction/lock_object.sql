-- Waits until no other delivery of the object is being processed. The lock is held to the end of the transaction.
-- Returns whether the transaction has to begin anew: it has waited, and would not see what it has waited for.
--
-- The limit of idle transactions is that of `claim.sql`, which comes after it: a process that is frozen in between
-- must not hold the object.
--
-- $1 endpoint, $2 tenant, $3 object, $4 `lock_timeout` for the wait and $5 after it, $6 the longest time of the
-- transaction without a statement.
select case
    when set_config('idle_in_transaction_session_timeout', $6, true) is null then null
    when pg_try_advisory_xact_lock(
        hashtextextended($3, hashtextextended($2, hashtextextended($1, 2)))
    ) then false
    when set_config('lock_timeout', $4, true) is null then null
    when pg_advisory_xact_lock(
        hashtextextended($3, hashtextextended($2, hashtextextended($1, 2)))
    ) is null then null
    when set_config('lock_timeout', $5, true) is null then null
    else current_setting('transaction_isolation') <> 'read committed'
end
