-- Waits for the attempt at a delivery that is under way, to the end of the transaction, for at most $4
-- milliseconds. Without this: A claims, reconciliation keeps it, an operator discards that, and A commits.
--
-- $1 endpoint, $2 tenant, $3 id. 0 is no limit.
select case when set_config('lock_timeout', $4, true) is not null then
    pg_advisory_xact_lock(hashtextextended($3, hashtextextended($2, hashtextextended($1, 0))))
end
