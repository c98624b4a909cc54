//! What happened before the example was started, so that the plots have a day.

use sqlx::PgPool;

/// More by day than by night, and an outage of two hours for one of the endpoints.
const ACTIVITY: &str = "
    insert into idempotent_webhook.activity (endpoint, hour, source, outcome, count, last_at)
    select
        endpoint,
        date_trunc('hour', now(), 'UTC') - hour * interval '1 hour',
        case when outcome = 'recovered' then 'recovery' else 'request' end,
        case when outcome = 'recovered' then 'processed' else outcome end,
        (
            busy * (1.2 + sin(hour / 24.0 * 2 * pi()) + random() / 3)
            * case
                when endpoint = 'billing' and hour in (6, 7)
                    then case outcome when 'processed' then 0.2 when 'kept' then 20 else 1 end
                when endpoint = 'billing' and hour = 5 and outcome = 'recovered' then 40
                else 1
            end * share
        )::int8,
        now() - hour * interval '1 hour'
    from (
        values ('billing', 900), ('deployments', 120), ('commands', 400), ('orders', 300)
    ) as endpoints (endpoint, busy)
    cross join (
        values ('processed', 1.0), ('duplicate', 0.08), ('rejected', 0.01), ('kept', 0.02),
            ('recovered', 0.02)
    ) as outcomes (outcome, share)
    cross join generate_series(1, 23) as hours (hour)
";

/// One that no process serves any more, and one that an operator has paused.
const LEFT_BEHIND: &str = "
    with kept as (
        insert into idempotent_webhook.kept_deliveries (
            endpoint, delivery_id, event_type, state, attempts, first_received_at,
            first_failed_at, last_failed_at, next_attempt_at, status, reason, reason_group,
            body_bytes, history
        )
        select
            endpoint, endpoint || '-' || number, 'invoice.paid', 'due', 2,
            now() - interval '5 hours', now() - interval '5 hours', now() - interval '4 hours',
            now() - interval '3 hours', 503, 'the ledger is away', md5('the ledger is away')::uuid,
            18,
            jsonb_build_array(jsonb_build_object(
                'at', extract(epoch from now() - interval '4 hours'),
                'by', 'provider', 'status', 503, 'reason', 'the ledger is away'
            ))
        from unnest(array['invoices', 'payouts']) as endpoints (endpoint)
        cross join generate_series(1, 7) as numbers (number)
        returning endpoint, delivery_id
    )
    insert into idempotent_webhook.kept_requests
        (endpoint, delivery_id, format, method, uri, headers, body)
    select
        endpoint, delivery_id, 1, 'POST', '/' || endpoint, 'content-type: application/json',
        '{\"type\":\"invoice.paid\"}'
    from kept
";

const PAUSED: &str = "
    insert into idempotent_webhook.kept_endpoints (endpoint, paused_at)
    values ('payouts', now() - interval '1 hour')
";

pub async fn happened(pool: &PgPool) -> sqlx::Result<()> {
    for statement in [ACTIVITY, LEFT_BEHIND, PAUSED] {
        sqlx::query(statement).execute(pool).await?;
    }
    Ok(())
}
