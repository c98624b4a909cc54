-- Ends a kept delivery in the transaction of its claim, whose id is $5, and returns the id of the current
-- transaction with the nonce $6. In any other transaction it changes nothing.
--
-- $1 endpoint, $2 tenant, $3 id, $4 for how long the request stays, `null` if it does not.
with ended as (
    delete from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
        and $4::interval is null
        and pg_current_xact_id_if_assigned()::text = $5
),
archived as (
    update idempotent_webhook.kept_deliveries
    set state = 'processed', taken_at = null, next_attempt_at = null, processed_at = now(),
        archived_until = now() + $4
    where endpoint = $1 and tenant = $2 and delivery_id = $3
        and $4::interval is not null
        and pg_current_xact_id_if_assigned()::text = $5
)
select pg_current_xact_id_if_assigned()::text || $6::text
