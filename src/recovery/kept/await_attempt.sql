-- Waits for the running attempt at a delivery, and holds the next one back until the end of the transaction.
-- Shared, so that two operations do not take each other for an attempt: they queue for the row. Without this: A
-- claims, reconciliation keeps it, an operator discards that, and A commits.
--
-- $1 endpoints, $2 tenants, $3 ids.
select pg_advisory_xact_lock_shared(hashtextextended(id, hashtextextended(tenant, hashtextextended(endpoint, 0))))
from (select * from unnest($1::text[], $2::text[], $3::text[]) order by 2, 3) as key (endpoint, tenant, id)
