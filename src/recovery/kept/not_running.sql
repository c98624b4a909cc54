-- Returns the deliveries that no attempt is working on. The statement tries to take the same locks as
-- `await_attempt.sql`, without waiting.
--
-- Without this check, an operator could discard many deliveries and see that the operation has ended, and an attempt at
-- one of them could still commit after that.
--
-- $1 endpoints, $2 tenants, $3 ids.
select tenant, id
from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, id)
where pg_try_advisory_xact_lock_shared(hashtextextended(id, hashtextextended(tenant, hashtextextended(endpoint, 0))))
