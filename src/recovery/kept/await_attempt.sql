-- Waits for the running attempt at a delivery, and holds back the next attempt until the end of the transaction.
-- The lock is shared, so that two operations do not mistake each other for an attempt: they queue for the row
-- instead. Without this: attempt A claims a delivery, reconciliation keeps the delivery, an operator discards it,
-- and A commits.
--
-- $1 endpoints, $2 tenants, $3 ids.
select pg_advisory_xact_lock_shared(hashtextextended(id, hashtextextended(tenant, hashtextextended(endpoint, 0))))
from (select * from unnest($1::text[], $2::text[], $3::text[]) order by 2, 3) as key (endpoint, tenant, id)
