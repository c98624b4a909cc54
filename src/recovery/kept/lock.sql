-- Waits for the attempt at a delivery that is under way, to the end of the transaction.
select pg_advisory_xact_lock(hashtextextended($3, hashtextextended($2, hashtextextended($1, 0))))
