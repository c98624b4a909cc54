-- Waits until no other delivery of the object is being processed. Returns whether it has waited. If it has not, the
-- lock is held to the end of the transaction. If it has, the lock is one of the session: the transaction may not see
-- what it has waited for, and begins anew. `keep_object.sql` comes next, and gives up the lock of the session.
--
-- The limit of idle transactions is that of `claim.sql`, which comes after it: a process that is frozen in between
-- must not hold the object.
--
-- $1 endpoint, $2 tenant, $3 object, $4 `lock_timeout` for the wait, $5 the longest time of the transaction without a
-- statement.
select case
    when set_config('idle_in_transaction_session_timeout', $5, true) is null then null
    when pg_try_advisory_xact_lock(
        hashtextextended($3, hashtextextended($2, hashtextextended($1, 2)))
    ) then false
    when set_config('lock_timeout', $4, true) is null then null
    else pg_advisory_lock(
        hashtextextended($3, hashtextextended($2, hashtextextended($1, 2)))
    ) is not null
end
