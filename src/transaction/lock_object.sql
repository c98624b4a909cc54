-- Locks an object (what deliveries are about, such as a subscription), so that its deliveries run one at a time.
-- Returns `false` if this transaction holds the lock, or `true` if the session holds it. In the second case, the caller
-- begins a new transaction.
--
-- The `case` is evaluated from top to bottom:
--
--     idle limit   := $5    a process that is frozen before `claim.sql` does not hold the object forever
--     lock of the transaction, if it is free: `false`, and nothing else follows
--     lock_timeout := $4
--     lock of the session, after a wait: `true`
--
-- This transaction itself takes the lock only if the object is free and the isolation level is `read committed`, where
-- the next statement sees everything that was committed before it. At other isolation levels, and after a wait, the
-- snapshot of this transaction may be older than the lock. In these cases, the session holds the lock until
-- `keep_object.sql` replaces it with a lock of the next transaction.
--
-- $1 endpoint, $2 tenant, $3 object, $4 `lock_timeout` for the wait, $5 how long the transaction may be without a
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
