-- Locks those that have not changed since, so that no operator forgets them or has them processed again. Without this: A is
-- selected, an operator has it processed again, and its row is deleted before it runs.
--
-- $1 endpoint, $2 tenants, $3 ids.
select tenant, delivery_id
from idempotent_webhook.kept_deliveries
where endpoint = $1
    and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
    and state <> 'processed'
    and last_failed_at is not null
    and taken_by is null
for update skip locked
