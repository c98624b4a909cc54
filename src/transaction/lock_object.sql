-- Locks the object. At `read committed`, where each statement sees what was committed before it, a free object is locked
-- to the end of the transaction: `false`. Otherwise this waits for a lock of the session: `true`. The snapshot of this
-- transaction may be older than that lock, so the caller begins anew, and `keep_object.sql` makes the lock one of the
-- new transaction.
--
-- The limit of idle transactions is that of `claim.sql`, which comes after it: a process that is frozen in between
-- must not hold the object.
--
-- $1 endpoint, $2 tenant, $3 object, $4 `lock_timeout` for the wait, $5 the longest time of the transaction without a
-- statement.
select case
    when set_config('idle_in_transaction_session_timeout', $5, true) is null then null
    when current_setting('transaction_isolation') = 'read committed'
        and pg_try_advisory_xact_lock(
            hashtextextended($3, hashtextextended($2, hashtextextended($1, 2)))
        )
        then false
    when set_config('lock_timeout', $4, true) is null then null
    else pg_advisory_lock(
        hashtextextended($3, hashtextextended($2, hashtextextended($1, 2)))
    ) is not null
end
