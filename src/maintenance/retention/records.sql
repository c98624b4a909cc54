-- Deletes the records of all endpoints that are older than $1. What would be missed is kept for a year at least: no delivery is
-- asked for again that was asked for without success.
with redelivery_requests as (
    delete from idempotent_webhook.redelivery_requests
    where first_at < now() - greatest($1, interval '1 year')
),
-- Of lists that no process reconciles any more.
reconciliations as (
    delete from idempotent_webhook.reconciliations
    where greatest(next_round_at, turn_ends_at) < now() - greatest($1, interval '1 year')
),
-- Of subscriptions that no process compares any more.
subscriptions as (
    delete from idempotent_webhook.subscriptions
    where next_at < now() - $1
),
-- A part of them each time, since they are many. Their results are soon of no interest.
action_deliveries as (
    delete from idempotent_webhook.operator_action_deliveries as of_action
    using (
        select each.action, each.endpoint, each.tenant, each.delivery_id
        from idempotent_webhook.operator_actions
        join idempotent_webhook.operator_action_deliveries as each on each.action = id
        where began_at < now() - greatest($1, interval '30 days')
        limit 10000
    ) as old
    where of_action.action = old.action
        and of_action.endpoint = old.endpoint
        and of_action.tenant = old.tenant
        and of_action.delivery_id = old.delivery_id
)
-- Those whose deliveries were deleted by an earlier round: a statement does not see what it deletes.
delete from idempotent_webhook.operator_actions
where began_at < now() - greatest($1, interval '1 year')
    and not exists (
        select from idempotent_webhook.operator_action_deliveries as each where each.action = id
    )
