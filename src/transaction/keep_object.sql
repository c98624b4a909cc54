-- Holds the lock of the object, which is one of the session, to the end of this transaction instead.
--
-- $1 endpoint, $2 tenant, $3 object, $4 the longest time of the transaction without a statement.
select
    set_config('idle_in_transaction_session_timeout', $4, true),
    pg_advisory_xact_lock(hashtextextended($3, hashtextextended($2, hashtextextended($1, 2)))),
    pg_advisory_unlock(hashtextextended($3, hashtextextended($2, hashtextextended($1, 2))))
