//! The statements that keep a delivery before its first attempt.

/// Whether attempts of the endpoint `$1` may begin.
macro_rules! is_running {
    () => {
        "not exists (
            select
            from idempotent_webhook.kept_endpoints
            where endpoint = $1 and paused_at is not null
        )"
    };
}

/// The rows of a delivery of the endpoint `$1`.
macro_rules! of_delivery {
    ($tenant:literal, $delivery_id:literal) => {
        concat!(
            "where endpoint = $1 and tenant = ",
            $tenant,
            " and delivery_id = ",
            $delivery_id
        )
    };
}

/// Whether a delivery of the endpoint `$1` was processed: true, or null.
macro_rules! processed {
    ($tenant:literal, $delivery_id:literal) => {
        concat!(
            "(
                select true
                from idempotent_webhook.deliveries
                ",
            of_delivery!($tenant, $delivery_id),
            "
            )"
        )
    };
}

/// How a delivery of the endpoint `$1` is kept that was kept before.
///
/// It has `begun` if it was this request that kept it: its statement was committed, the answer was lost,
/// and it is written again. No other process will run it before its lease is over.
macro_rules! known {
    ($tenant:literal, $delivery_id:literal, $received_at:literal) => {
        concat!(
            "(
                select case
                    when state <> 'due' then 'ended'
                    when running_until > now() and first_received_at = to_timestamp(",
            $received_at,
            ")
                        then 'begun'
                    when next_attempt_at > now()
                        and (running_until is null or running_until <= now())
                        then 'waiting'
                    else 'due'
                end
                from idempotent_webhook.kept_deliveries
                ",
            of_delivery!($tenant, $delivery_id),
            "
            )"
        )
    };
}

/// Keeps one delivery, which costs much less in a form of its own.
macro_rules! accept_one {
    ($if:literal, $on_conflict:literal) => {
        concat!(
            "
    with new as materialized (
        select
            $8 and ",
            is_running!(),
            " as begins,
            ",
            processed!("$3", "$4"),
            " as processed,
            ",
            known!("$3", "$4", "$7"),
            " as known
    ),
    accepted as (
        insert into idempotent_webhook.kept_deliveries as known (
            endpoint, tenant, delivery_id, tenant_name, event_type, state, attempts,
            first_received_at, next_attempt_at, running_until, body_bytes
        )
        select
            $1, $3, $4, $5, $6, 'due', case when begins then 1 else 0 end,
            to_timestamp($7), now(), case when begins then now() + $2 end, $9
        from new
        where ",
            $if,
            "
        ",
            $on_conflict,
            "
        returning attempts, running_until
    ),
    request as (
        insert into idempotent_webhook.kept_requests
            (endpoint, tenant, delivery_id, format, method, uri, headers, body, signed_at)
        select $1, $3, $4, 1, $10, $11, $12, $13, to_timestamp($14)
        from accepted
        on conflict do nothing
    )
    select
        accepted.attempts is not null as accepted,
        accepted.running_until is not null as begun,
        new.processed,
        new.known
    from new
    left join accepted on true
"
        )
    };
}

/// Keeps a delivery that is neither processed nor known. For a duplicate, no row is locked: that would
/// be a write, and wait for the disk. And it does not wait for whoever changes the row, as the insert
/// would.
pub(super) const ACCEPT: &str = accept_one!(
    "processed is null and known is null",
    "on conflict do nothing"
);

/// Keeps a delivery again whose row is not due any more.
pub(super) const REOPEN: &str = accept_one!(
    "processed is null",
    "on conflict (endpoint, tenant, delivery_id) do update
        set state = 'due',
            attempts = known.attempts + excluded.attempts,
            retries = 0,
            next_attempt_at = now(),
            running_until = excluded.running_until,
            body_bytes = coalesce(known.body_bytes, excluded.body_bytes)
        where known.state <> 'due'"
);

/// `ACCEPT` for several deliveries.
///
/// The planner must not see how many there are, or it would plan anew each time, which takes longer
/// than all else: hence the `select` in `unnest`. The requests are apart, so that no bodies are copied
/// with the rest.
pub(super) const ACCEPT_ALL: &str = concat!(
    "
    with new as materialized (
        select
            tenant, delivery_id, tenant_name, event_type, received_at, body_bytes, number,
            begins and ",
    is_running!(),
    " as begins,
            ",
    processed!("new.tenant", "new.delivery_id"),
    " as processed,
            ",
    known!("new.tenant", "new.delivery_id", "new.received_at"),
    " as known
        from unnest(
            (select $3::text[]), $4::text[], $5::text[], $6::text[], $7::float8[], $8::bool[],
            $9::int[]
        ) with ordinality as new (
            tenant, delivery_id, tenant_name, event_type, received_at, begins, body_bytes, number
        )
    ),
    accepted as (
        insert into idempotent_webhook.kept_deliveries (
            endpoint, tenant, delivery_id, tenant_name, event_type, state, attempts,
            first_received_at, next_attempt_at, running_until, body_bytes
        )
        select
            $1, tenant, delivery_id, tenant_name, event_type, 'due',
            case when begins then 1 else 0 end,
            to_timestamp(received_at), now(), case when begins then now() + $2 end, body_bytes
        from new
        where processed is null and known is null
        on conflict do nothing
        returning tenant, delivery_id, attempts, running_until
    ),
    request as (
        insert into idempotent_webhook.kept_requests
            (endpoint, tenant, delivery_id, format, method, uri, headers, body, signed_at)
        select $1, tenant, delivery_id, 1, method, uri, headers, body, to_timestamp(signed_at)
        from unnest(
            (select $3::text[]), $4::text[], $10::text[], $11::text[], $12::bytea[], $13::bytea[],
            $14::float8[]
        ) as request (tenant, delivery_id, method, uri, headers, body, signed_at)
        join accepted using (tenant, delivery_id)
        on conflict do nothing
    )
    select
        accepted.attempts is not null as accepted,
        accepted.running_until is not null as begun,
        new.processed,
        new.known
    from new
    left join accepted using (tenant, delivery_id)
    order by new.number
"
);

/// Makes a delivery due at once that waits for its next attempt, unless somebody is changing its row.
pub(super) const BRING_FORWARD: &str = "
    with waiting as (
        select endpoint, tenant, delivery_id
        from idempotent_webhook.kept_deliveries
        where endpoint = $1 and tenant = $2 and delivery_id = $3
            and state = 'due'
            and next_attempt_at > now()
            and (running_until is null or running_until <= now())
        for no key update skip locked
    )
    update idempotent_webhook.kept_deliveries as kept
    set next_attempt_at = now()
    from waiting
    where kept.endpoint = waiting.endpoint
        and kept.tenant = waiting.tenant
        and kept.delivery_id = waiting.delivery_id
";
