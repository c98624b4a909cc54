-- Keeps a delivery whose provider attempt has failed, or only records its failure without the request. Does nothing if
-- another attempt has committed the delivery meanwhile.
--
-- The table shows the state after this statement. A row is for the state before, and a column is for the handler's
-- decision about what comes next. A delivery that starts again gets a new schedule.
--
-- | kept as | nothing | dead | after $8 |
-- |---|---|---|---|
-- | not at all, recorded, processed | starts again, as $6 | starts again, as $6 | starts again, as $6 |
-- | due | stays due | dead | due after $8 |
-- | dead | stays dead | stays dead | stays dead |
--
-- $1 endpoint, $2 tenant, $3 id, $4 name of the tenant, $5 event type, $6 state, $7 time of receipt, $8 time until
-- the next attempt, $9 status, $10 reason, $11 method, $12 URI, $13 headers, $14 body, $15 time of signing, $16
-- whether the handler has decided what comes next, $17 how long the request stays once the delivery is processed,
-- $18 how long only this process may report the death of the delivery to a hook, or `null` if there is no hook.
--
-- `processed` is materialized because of Citus, which would otherwise run the `select` of the insert on the node of the
-- claim, with the `now()` of that node.
with processed as materialized (
    select delivery_id
    from idempotent_webhook.deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
),
kept as (
    insert into idempotent_webhook.kept_deliveries as known (
        endpoint, tenant, delivery_id, tenant_name, event_type, state, attempts,
        first_received_at, first_failed_at, last_failed_at, next_attempt_at, died_at, untold_at, archived_for,
        status, reason, reason_group, body_bytes, history
    )
    select
        $1, $2, $3, $4, $5, $6, 1,
        to_timestamp($7), now(), now(), now() + $8, case $6 when 'dead' then now() end,
        case $6 when 'dead' then now() + $18 end, $17, $9, $10,
        idempotent_webhook.reason_group($10), octet_length($14),
        idempotent_webhook.with_attempt('[]', 'provider', $9, $10)
    where not exists (select from processed)
    on conflict (endpoint, tenant, delivery_id) do update
    set attempts = known.attempts + 1,
        -- The default of the column: now, by the clock of the database.
        last_received_at = excluded.last_received_at,
        first_failed_at = coalesce(known.first_failed_at, now()),
        last_failed_at = now(),
        status = excluded.status,
        reason = excluded.reason,
        reason_group = excluded.reason_group,
        processed_at = null,
        processed_version = null,
        archived_until = null,
        archived_for = excluded.archived_for,
        body_bytes = coalesce(known.body_bytes, excluded.body_bytes),
        erased = false,
        history = idempotent_webhook.with_attempt(
            known.history, 'provider', excluded.status, excluded.reason
        ),
        (
            event_type, retries, unfinished, unreached_at, unreached_status,
            state, takes, taken_by, died_at, untold_at, next_attempt_at
        ) = (
            select
                -- The event type belongs to the stored request, which is not replaced. If the provider sends the type
                -- in a header, another request with the same body can have another type.
                case when begins_anew then excluded.event_type else known.event_type end,
                case when begins_anew then 0 else known.retries end,
                case when begins_anew then 0 else known.unfinished end,
                case when not changes then known.unreached_at end,
                case when not changes then known.unreached_status end,
                case when changes then excluded.state else known.state end,
                -- The row gets a new take number, so that an attempt that took it under an earlier number can no longer
                -- change it. There are two cases. In the first case, attempt A has taken the delivery, attempt B
                -- processes it, and B makes it due again because B does not know whether its commit succeeded. In the
                -- second case, this statement makes the delivery dead while an attempt runs.
                known.takes + changes::int,
                case when not changes then known.taken_by end,
                case when changes then excluded.died_at else known.died_at end,
                case when changes then excluded.untold_at else known.untold_at end,
                case
                    when changes then excluded.next_attempt_at
                    when $16 and known.state = 'due' then coalesce(excluded.next_attempt_at, known.next_attempt_at)
                    else known.next_attempt_at
                end
            from (
                select
                    known.state in ('recorded', 'processed') as begins_anew,
                    known.state in ('recorded', 'processed')
                        or known.state = 'due' and $16 and excluded.state = 'dead' as changes
            ) as what
        )
    returning state, died_at, takes
),
request as (
    insert into idempotent_webhook.kept_requests
        (endpoint, tenant, delivery_id, format, method, uri, headers, body, signed_at)
    select $1, $2, $3, 1, $11, $12, $13, $14, to_timestamp($15)
    where $14 is not null and exists (select from kept)
    on conflict do nothing
)
select state, state = 'dead' and died_at = now() as died, takes
from kept
