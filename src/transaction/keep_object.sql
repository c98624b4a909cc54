-- Replaces the session's lock on the object with a lock of this transaction.
--
-- $1 endpoint, $2 tenant, $3 object.
select
    pg_advisory_xact_lock(hashtextextended($3, hashtextextended($2, hashtextextended($1, 2)))),
    pg_advisory_unlock(hashtextextended($3, hashtextextended($2, hashtextextended($1, 2))))
