-- When each range of a large table has to be read, so that a round need not read all of it.
create table idempotent_webhook.retention_ranges (
    table_name text collate "C" not null,
    -- Counts ranges of 1024 pages.
    range bigint not null,
    -- The table's file. A table that is rewritten gets another one, with its rows in other places.
    relfilenode oid not null,
    -- The age for which this was computed.
    older_than interval not null,
    -- No row in the range is old enough before this time.
    next_due timestamptz not null,
    primary key (table_name, range)
);

-- The process that is in a round, if any.
create table idempotent_webhook.retention_turns (
    process bigint not null primary key,
    -- Others may begin a round then, unless the process extends it.
    ends_at timestamptz not null
);
