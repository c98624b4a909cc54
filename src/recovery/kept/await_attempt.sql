-- Waits for the running attempt at each of these deliveries, and holds back the next attempt until the end of the
-- transaction. The lock is shared, so two operations do not mistake each other for an attempt. They wait for each other
-- at the row.
--
-- Without this wait, an attempt could commit a discarded delivery. Suppose that the attempt claims the delivery,
-- reconciliation keeps it, and an operator discards it. The attempt could still commit after the discard.
--
-- $1 endpoints, $2 tenants, $3 ids.
select pg_advisory_xact_lock_shared(hashtextextended(id, hashtextextended(tenant, hashtextextended(endpoint, 0))))
from (select * from unnest($1::text[], $2::text[], $3::text[]) order by 2, 3) as key (endpoint, tenant, id)
