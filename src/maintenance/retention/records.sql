-- Deletes records of all endpoints that are older than $1. Some records are kept for a year at least, because their
-- loss would have an effect: for example, the provider would be asked again for a delivery that it was asked for
-- without success.
with redelivery_requests as (
    delete from idempotent_webhook.redelivery_requests
    where first_at < now() - greatest($1, interval '1 year')
),
-- The turns of lists that no process reconciles or compares any more. The row of such a list is deleted by the next
-- round, because this statement does not see what it deletes.
turns as (
    delete from idempotent_webhook.turns
    where next_at < now() - case task
        when 'reconciliation' then greatest($1, interval '1 year')
        else $1
    end
),
reconciliations as (
    delete from idempotent_webhook.reconciliations as list
    where not exists (
        select
        from idempotent_webhook.turns as turn
        where turn.task = 'reconciliation'
            and turn.endpoint = list.endpoint
            and turn.address = list.path
            and turn.source = list.source
    )
),
subscriptions as (
    delete from idempotent_webhook.subscriptions as compared
    where not exists (
        select
        from idempotent_webhook.turns as turn
        where turn.task = 'subscription'
            and turn.endpoint = compared.endpoint
            and turn.address = compared.address
            and turn.source = compared.source
    )
),
other_environments as (
    delete from idempotent_webhook.other_environments
    where seen_at not between now() - interval '1 day' and now()
),
-- Only some of them each time, because there are many. Their results are soon of no interest.
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
-- Actions whose deliveries were deleted by an earlier round.
delete from idempotent_webhook.operator_actions
where began_at < now() - greatest($1, interval '1 year')
    and not exists (
        select from idempotent_webhook.operator_action_deliveries as each where each.action = id
    )
