-- Deletes records that are older than $1, for all endpoints. Some records stay for at least a year, because deleting
-- them has consequences. For example, without the record of an unsuccessful redelivery request, the provider would be
-- asked for the same delivery again.
with redelivery_requests as (
    delete from idempotent_webhook.redelivery_requests
    where first_at < now() - greatest($1, interval '1 year')
),
-- Turns of lists that no process reconciles or compares any more. (A turn is the right of one process to work on a
-- list.) The list's own row is deleted in the next round of retention, because this statement still sees the turn that
-- it deletes.
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
-- The results of actions for single deliveries. They are deleted earlier than the actions, because nobody needs them
-- for long, and at most 10,000 at a time, because there are many.
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
-- Actions that have no such result left, because an earlier round has deleted the last one.
delete from idempotent_webhook.operator_actions
where began_at < now() - greatest($1, interval '1 year')
    and not exists (
        select from idempotent_webhook.operator_action_deliveries as each where each.action = id
    )
