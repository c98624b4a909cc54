//! Fills a day on the pages with what happened before the example was started: an outage, a deploy, and a secret that
//! was changed on only one side.

use sqlx::PgPool;

use super::shop::{VERSION, VERSION_BEFORE};

/// The counts of the day. There is more traffic by day than by night, and the deploy was four hours ago.
const ACTIVITY: &str = "
    insert into idempotent_webhook.activity
        (endpoint, hour, source, outcome, version, count, last_at)
    select
        usual.endpoint,
        date_trunc('hour', now(), 'UTC') - ago * interval '1 hour',
        usual.source,
        usual.outcome,
        case when ago > 4 then $1 else $2 end,
        (
            busy * share * (1.2 + sin(ago / 24.0 * 2 * pi()) + random() / 3)
            * coalesce(factor, 1)
        )::int8,
        now() - ago * interval '1 hour'
    from (
        select *
        from (
            values ('billing', 900), ('deployments', 120), ('commands', 400), ('orders', 300)
        ) as endpoints (endpoint, busy)
        cross join (
            values
                ('request', 'processed', 1.0), ('request', 'duplicate', 0.08),
                ('request', 'rejected', 0.01), ('request', 'kept', 0.02),
                ('recovery', 'processed', 0.02)
        ) as outcomes (source, outcome, share)
        cross join generate_series(1, 23) as hours (ago)
    ) as usual
    left join (
        values
            -- The outage. Recovery has processed the kept deliveries since then.
            ('commands', 10, 11, 'request', 'processed', 0.2),
            ('commands', 10, 11, 'request', 'kept', 20),
            ('commands', 9, 9, 'recovery', 'processed', 40),
            -- The deploy.
            ('billing', 1, 4, 'request', 'kept', 9),
            -- The secret that was changed on only one side.
            ('deployments', 1, 3, 'request', 'processed', 0.4),
            ('deployments', 1, 3, 'request', 'rejected', 60)
    ) as unusual (endpoint, until, since, source, outcome, factor)
        on (usual.endpoint, usual.source, usual.outcome)
            = (unusual.endpoint, unusual.source, unusual.outcome)
        and ago between until and since
";

/// Handler times for the deliveries counted above. The new version of one handler is slower.
const TIMES: &str = "
    insert into idempotent_webhook.activity
        (endpoint, hour, source, outcome, version, count, last_at)
    select
        endpoint, hour, 'handler', bucket, version,
        (handled * case when is_slow then slow else usual end)::int8, last_at
    from (
        select
            endpoint, hour, version, sum(count) as handled, max(last_at) as last_at,
            endpoint = 'billing' and version = $1 as is_slow
        from idempotent_webhook.activity
        where outcome in ('processed', 'kept')
        group by endpoint, hour, version
    ) as handlers
    cross join (
        values
            ('5', 0.35, 0.05), ('10', 0.45, 0.15), ('20', 0.13, 0.35), ('50', 0.05, 0.25),
            ('200', 0.02, 0.12), ('1000', 0.00, 0.08)
    ) as buckets (bucket, usual, slow)
";

/// The reasons for the rejected requests counted above.
const REJECTIONS: &str = "
    insert into idempotent_webhook.rejections (endpoint, hour, cause, count, last_at, reason)
    select endpoint, hour, cause, count, last_at, reason
    from idempotent_webhook.activity
    join (
        values
            (true, 'no_match', 'signature matches none of the secrets: another secret, or a body \
             that was changed on the way'),
            (false, 'too_old', 'signed 600 s ago, 300 s are allowed (`tolerance`): is this clock right?')
    ) as causes (is_rotated, cause, reason)
        on is_rotated = (endpoint = 'deployments' and hour > now() - interval '4 hours')
    where outcome = 'rejected' and count > 0
";

/// Some processed deliveries.
const PROCESSED: &str = "
    insert into idempotent_webhook.deliveries (delivery_id, endpoint, event_type, received_at)
    select
        format(id, 200000 + number * 7), endpoint, event_type,
        now() - number * interval '5 minutes'
    from (
        values
            ('billing', 'evt_%s', 'invoice.paid'), ('deployments', '%s-push', 'push'),
            ('commands', 'Ev%s', 'app_mention'), ('orders', 'order-%s', 'orders/create')
    ) as endpoints (endpoint, id, event_type)
    cross join generate_series(1, 250) as numbers (number)
";

/// Failures that are not fixed yet: some have a reason that came with the deploy, some belong to an endpoint that no
/// process serves any more, and some to an endpoint that an operator has paused.
const LEFT_BEHIND: &str = "
    with kept as (
        insert into idempotent_webhook.kept_deliveries (
            endpoint, delivery_id, event_type, state, attempts, first_received_at,
            first_failed_at, last_failed_at, next_attempt_at, status, reason, reason_group,
            body_bytes, history
        )
        select
            endpoint, 'evt_' || first_id + number, 'invoice.paid', state, attempts,
            failed_at, failed_at, failed_at + interval '40 minutes',
            case when state = 'due' then now() - interval '3 hours' end,
            status, reason, idempotent_webhook.reason_group(reason), 38,
            jsonb_build_array(jsonb_build_object(
                'at', extract(epoch from failed_at + interval '40 minutes'),
                'by', 'recovery', 'status', status, 'reason', reason
            ))
        from (
            values
                ('billing', 31000, 26, 'dead', 4, 500, 'no tax rate for the customer'),
                ('invoices', 32000, 7, 'due', 2, 503, 'the ledger is away'),
                ('payouts', 33000, 7, 'due', 2, 503, 'the ledger is away')
        ) as endpoints (endpoint, first_id, deliveries, state, attempts, status, reason)
        cross join lateral (
            select
                number,
                now() - interval '4 hours' + number * interval '5 minutes' as failed_at
            from generate_series(1, deliveries) as numbers (number)
        ) as failures
        returning endpoint, delivery_id
    )
    insert into idempotent_webhook.kept_requests
        (endpoint, delivery_id, format, method, uri, headers, body)
    select
        endpoint, delivery_id, 1, 'POST',
        case endpoint when 'billing' then '/stripe' else '/' || endpoint end,
        'content-type: application/json',
        convert_to(format('{\"id\":\"%s\",\"type\":\"invoice.paid\"}', delivery_id), 'UTF8')
    from kept
";

const PAUSED: &str = "
    insert into idempotent_webhook.kept_endpoints (endpoint, paused_at)
    values ('payouts', now() - interval '1 hour')
";

pub async fn happened(pool: &PgPool) -> sqlx::Result<()> {
    let activity = sqlx::query(ACTIVITY).bind(VERSION_BEFORE).bind(VERSION);
    activity.execute(pool).await?;
    sqlx::query(TIMES).bind(VERSION).execute(pool).await?;
    for statement in [REJECTIONS, PROCESSED, LEFT_BEHIND, PAUSED] {
        sqlx::query(statement).execute(pool).await?;
    }
    Ok(())
}
