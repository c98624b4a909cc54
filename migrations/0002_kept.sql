-- Kept deliveries: those that failed, that were kept before their handler ran, or that were processed and stay for a
-- time. `src/recovery/kept/mod.rs` has their life cycle.
create table idempotent_webhook.kept_deliveries (
    endpoint text collate "C" not null,
    -- Empty unless the tenant is part of the key.
    tenant text collate "C" not null default '',
    delivery_id text collate "C" not null,
    -- The tenant, even if it is not part of the key.
    tenant_name text,
    event_type text,
    -- `recorded`: it cannot be run again, because its request is not kept: it failed, or its content was erased.
    -- `due`: it is run again at `next_attempt_at`.
    -- `dead`: it is not run again, unless an operator says so.
    -- `processed`: it stays until `archived_until`, so an operator can run it again.
    state text collate "C" not null,
    -- All attempts, including the provider's.
    attempts integer not null,
    -- Attempts of the schedule. Each is counted before it runs.
    retries integer not null default 0,
    -- Counts how often it was taken for an attempt, from the microsecond of its first row on: an attempt has no effect
    -- on the row once it was taken again, nor on a later row of the same delivery. Without this: A takes it as number
    -- 1, the row is discarded and kept again, B takes the new row as number 1, and A gives back what B runs.
    takes bigint not null default (extract(epoch from now()) * 1000000)::bigint,
    -- The process that has taken it: a number in `processes`. `null` if no attempt is under way. If the number is gone,
    -- the attempt did not end, and any process may take the delivery.
    taken_by bigint,
    -- Whether it was taken together with others, if it is taken. If the process dies then, any of them may have killed
    -- it, and most have not begun: that take does not count, and the next one takes only this delivery.
    taken_with_others boolean not null default false,
    -- How many attempts in a row did not end. Only takes of a single delivery count.
    unfinished integer not null default 0,
    -- When an attempt of recovery has reached no layer of the endpoint, and the status of the answer, if there was one.
    -- `null` once an attempt has reached one.
    unreached_at timestamptz,
    unreached_status smallint,
    -- Whether an operator has it run again although it was processed.
    reprocessed boolean not null default false,
    -- Whether it is known from the provider's list of events, and not from a request.
    reconciled boolean not null default false,
    first_received_at timestamptz not null default now(),
    -- When its last request came, by the clock of the database, since the application's may differ: a change of many
    -- deliveries leaves out those that have come since it began. Not `now()`: a transaction may have begun before
    -- the request came.
    last_received_at timestamptz not null default statement_timestamp(),
    -- `null` if none of its attempts has failed.
    first_failed_at timestamptz,
    last_failed_at timestamptz,
    next_attempt_at timestamptz,
    -- When it died last. The process that has made it dead reports it.
    died_at timestamptz,
    -- Set while it is dead and not reported to the hook of its layer. From this time on, any process with the hook may
    -- report it.
    untold_at timestamptz,
    -- For how long its request stays once it is processed. `null` if it does not.
    archived_for interval,
    processed_at timestamptz,
    -- The version of the application that processed it, if it is known.
    processed_version text,
    archived_until timestamptz,
    -- The last failure: the answer of the handler, or for it.
    status smallint,
    reason text,
    -- As `reason_group` has it: equal for reasons that differ only in words with digits. Not generated: each insert
    -- would parse the expression, even without a reason.
    reason_group uuid,
    body_bytes integer,
    -- Whether its content was erased, and no request for it came since. The reason says so, too, but a handler could
    -- use the same words.
    erased boolean not null default false,
    -- The last failed attempts, oldest first: `at` in Unix seconds, `by` (`provider` or `recovery`),
    -- `status`, `reason`.
    history jsonb not null default '[]',
    primary key (endpoint, tenant, delivery_id),
    -- In one check: each insert parses each of them.
    check (
        state in ('recorded', 'dead')
        or state = 'due' and next_attempt_at is not null
        or state = 'processed' and archived_until is not null
    )
) with (
    autovacuum_vacuum_scale_factor = 0.05,
    -- With room for updates in place: counting an attempt changes no index.
    fillfactor = 80
);

create index kept_deliveries_due
    on idempotent_webhook.kept_deliveries (endpoint, next_attempt_at)
    where state = 'due';

-- Deliveries that reach no layer: a problem of their endpoint.
create index kept_deliveries_unreached
    on idempotent_webhook.kept_deliveries (endpoint, unreached_at)
    where state = 'due' and unreached_at is not null;

create index kept_deliveries_untold
    on idempotent_webhook.kept_deliveries (untold_at)
    where state = 'dead' and untold_at is not null;

-- Failing deliveries, newest first: all, by reason, and by event type. Deliveries that succeed at their first attempt
-- are not in these indexes.
create index kept_deliveries_failed
    on idempotent_webhook.kept_deliveries (endpoint, state, last_failed_at, delivery_id, tenant)
    where last_failed_at is not null;

create index kept_deliveries_reasons
    on idempotent_webhook.kept_deliveries (endpoint, state, reason_group, last_failed_at)
    where last_failed_at is not null;

-- For how long deliveries have failed for a reason.
create index kept_deliveries_reasons_since
    on idempotent_webhook.kept_deliveries (endpoint, state, reason_group, first_failed_at)
    where last_failed_at is not null;

create index kept_deliveries_event_types
    on idempotent_webhook.kept_deliveries (endpoint, state, event_type, last_failed_at)
    where last_failed_at is not null;

-- Deliveries that have been dead for some time, to erase their content.
create index kept_deliveries_dead
    on idempotent_webhook.kept_deliveries (endpoint, died_at)
    where state = 'dead';

-- Deliveries that were erased before they had failed, to delete them.
create index kept_deliveries_erased
    on idempotent_webhook.kept_deliveries (endpoint, last_received_at)
    where state = 'recorded' and last_failed_at is null;

create index kept_deliveries_processed
    on idempotent_webhook.kept_deliveries (endpoint, processed_at)
    where state = 'processed';

create index kept_deliveries_archived
    on idempotent_webhook.kept_deliveries (endpoint, archived_until)
    where state = 'processed';

-- For the look-up of ids: deliveries with a request are found by that request. And for lists, by the filter of an
-- operator. No other statement has its second condition, which all rows meet.
create index kept_deliveries_recorded
    on idempotent_webhook.kept_deliveries (delivery_id)
    where state = 'recorded' and delivery_id > '';

-- The requests of kept deliveries, in a table of their own: so counting an attempt does not rewrite a body.
create table idempotent_webhook.kept_requests (
    endpoint text collate "C" not null,
    tenant text collate "C" not null default '',
    delivery_id text collate "C" not null,
    -- The format of the columns below. A process gives back a delivery whose format it does not know.
    format smallint not null,
    method text not null,
    uri text not null,
    -- Lines of `name: value`.
    headers bytea not null,
    body bytea not null,
    signed_at timestamptz,
    -- The id first, for the look-up of ids.
    primary key (delivery_id, endpoint, tenant),
    foreign key (endpoint, tenant, delivery_id)
        references idempotent_webhook.kept_deliveries on delete cascade
) with (
    -- Bodies are not compressed, and up to 8 kB are stored in the row: most are deleted within a second, and
    -- compressing one takes at least as long as writing it.
    toast_tuple_target = 8160
);

alter table idempotent_webhook.kept_requests
    alter column body set storage external;

-- `analyze` takes no samples of the content of requests: samples of an erased one would stay in `pg_stats` until the
-- table is analyzed again, and longer if it is empty then. No statement is planned by them.
alter table idempotent_webhook.kept_deliveries
    alter column reason set statistics 0,
    alter column history set statistics 0;
alter table idempotent_webhook.kept_requests
    alter column uri set statistics 0,
    alter column headers set statistics 0,
    alter column body set statistics 0;

-- The processes that take kept deliveries. Each has a heartbeat every two seconds. One whose heartbeat another process has
-- not seen to change for six seconds is dead, and that process deletes its numbers. It has several numbers: what it
-- takes within ten seconds has one number, which it deletes itself once none of these attempts is under way.
create table idempotent_webhook.processes (
    number bigint not null primary key,
    -- The number of its process's last heartbeat. Not a time: the clock of the database may jump.
    heartbeat bigint not null
) with (
    -- With room for updates in place.
    fillfactor = 50
);

-- Deliveries that a handler or an operator has discarded, and those that an operator has forgotten: reconciliation
-- leaves them alone. A request of the provider is still processed.
create table idempotent_webhook.discarded (
    endpoint text collate "C" not null,
    tenant text collate "C" not null default '',
    delivery_id text collate "C" not null,
    discarded_at timestamptz not null default now(),
    -- The id first, for the look-up of ids.
    primary key (delivery_id, endpoint, tenant)
);

create index discarded_at
    on idempotent_webhook.discarded (endpoint, discarded_at)
    where discarded_at > '-infinity';

-- Kept deliveries that the provider has sent again, and when, for a day at least. While an attempt runs, the row of its
-- delivery is locked, so the time cannot be written there: an operation on many deliveries looks here as well.
create table idempotent_webhook.sent_again (
    endpoint text collate "C" not null,
    tenant text collate "C" not null default '',
    delivery_id text collate "C" not null,
    received_at timestamptz not null default statement_timestamp(),
    primary key (delivery_id, endpoint, tenant)
);

create index sent_again_received_at
    on idempotent_webhook.sent_again (received_at)
    where received_at > '-infinity';

-- What holds recovery back from an endpoint, and whether a process recovers it.
create table idempotent_webhook.kept_endpoints (
    endpoint text collate "C" not null primary key,
    -- An operator has paused it.
    paused_at timestamptz,
    -- The deliveries whose attempts have failed since the last success, or at least some of them.
    failed_ids text[] collate "C" not null default '{}',
    -- The breaker is open: no attempt begins before this time, and then a single one. `null` if it is
    -- closed.
    probe_at timestamptz,
    -- The heartbeat of the processes with a `Recovery` for it.
    served_at timestamptz,
    -- The loops that have stopped in a process that lives, and when it said so last.
    stalled text[] collate "C",
    stalled_at timestamptz
);

-- The problems of endpoints, and what the hooks know of each. A row is to be reported if `is_there` and `is_told`
-- differ, or if a process may have reported it and has not noted that. A row with both false is deleted.
create table idempotent_webhook.problems (
    endpoint text collate "C" not null,
    -- As `endpoint_problems` names it.
    problem text collate "C" not null,
    -- Its subject, such as an event type. Empty if it is about the endpoint.
    subject text collate "C" not null default '',
    since timestamptz not null default now(),
    -- Whether the last look has found it.
    is_there boolean not null,
    -- Whether the last report to a hook said that it is there.
    is_told boolean not null default false,
    -- A process calls its hook, or has not noted that it did. From this time on, another one may.
    telling_until timestamptz,
    -- Counts the calls, from the microsecond of its first look on: what a process writes after its time has no effect,
    -- nor on a later row of the same problem.
    tellings bigint not null default (extract(epoch from now()) * 1000000)::bigint,
    primary key (endpoint, problem, subject)
);

-- The group of a reason: words with digits, such as ids and times, do not count. With a random key of the database:
-- readers of the dashboard who may not see a reason see its group, and could guess the reason by trying. The key is in
-- the function's text, so each insert has the function inlined, and reads no table.
do $$
begin
    execute format(
        'create function idempotent_webhook.reason_group(reason text) returns uuid
            language sql immutable parallel safe
            return md5(%L || regexp_replace(reason, %L, %L, %L))::uuid',
        gen_random_uuid(), '[A-Za-z_-]*[0-9][0-9A-Za-z_-]*', '#', 'g'
    );
end
$$;

-- A history with one more failed attempt, of at most twenty.
create function idempotent_webhook.with_attempt(
    history jsonb, by text, status smallint, reason text
) returns jsonb
    language sql stable parallel safe
    return case when jsonb_array_length(history) < 20 then history else history - 0 end
        || jsonb_build_object(
            'at', extract(epoch from now()), 'by', by, 'status', status, 'reason', left(reason, 200)
        );

-- The deliveries that are failing, since when, and how often.
create view idempotent_webhook.failing_deliveries as
select
    endpoint,
    tenant,
    delivery_id,
    event_type,
    state,
    attempts,
    first_failed_at,
    last_failed_at,
    next_attempt_at,
    status,
    reason
from idempotent_webhook.kept_deliveries as kept
where last_failed_at is not null and state <> 'processed';
