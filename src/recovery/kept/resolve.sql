-- Deletes or archives the row of a kept delivery that was processed by another attempt. Without this statement, such a
-- row would be taken, found to be a duplicate, and taken again, forever. The `exists` checks that the delivery is
-- processed. Without this check, a delivery that is accepted and sent again could lose its row before it is processed.
--
-- On Citus, the claims are on other nodes. A statement across nodes may not add a column to a `timestamptz`, because
-- the sum depends on the time zone of the session. It may add a column to a timestamp without a time zone.
--
-- $1 endpoint, $2 tenant, $3 id.
with processed as (
    select received_at
    from idempotent_webhook.deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
),
ended as (
    delete from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
        and state <> 'processed'
        and (archived_for is null or state = 'recorded')
        and exists (select from processed)
)
update idempotent_webhook.kept_deliveries as kept
set state = 'processed', taken_by = null, next_attempt_at = null,
    unfinished = 0, unreached_at = null, unreached_status = null,
    processed_at = processed.received_at,
    archived_until = (now() at time zone 'utc' + archived_for) at time zone 'utc'
from processed
where endpoint = $1 and tenant = $2 and delivery_id = $3
    -- A delivery that is only recorded has no request to archive.
    and state not in ('processed', 'recorded')
    and archived_for is not null
