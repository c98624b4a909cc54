-- The deliveries that no attempt is working on. It tries the same locks as `await_attempt.sql`, without waiting.
-- Without this: an operator discards many deliveries, the answer says that it is done, and an attempt at one of
-- them commits.
--
-- $1 endpoints, $2 tenants, $3 ids.
select tenant, id
from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, id)
where pg_try_advisory_xact_lock_shared(hashtextextended(id, hashtextextended(tenant, hashtextextended(endpoint, 0))))
