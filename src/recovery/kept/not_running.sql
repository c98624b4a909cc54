-- Of deliveries, those that no attempt works on: the same locks as in `await_attempt.sql`, without a wait. Without this:
-- an operator discards many, is told that it is done, and an attempt at one of them commits.
--
-- $1 endpoint, $2 tenants, $3 ids.
select tenant, id
from unnest($2::text[], $3::text[]) as key (tenant, id)
where pg_try_advisory_xact_lock_shared(hashtextextended(id, hashtextextended(tenant, hashtextextended($1, 0))))
