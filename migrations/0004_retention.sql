-- What `Retention` knows of large tables, so that it need not read all of them in each round.
create table idempotent_webhook.retention_ranges (
    table_name text collate "C" not null,
    -- Counts ranges of 1024 pages.
    range bigint not null,
    -- The table's file. A table that is rewritten gets another one, with its rows elsewhere.
    relfilenode oid not null,
    -- For which age this was found out.
    older_than interval not null,
    -- Before this time no row in the range is old enough.
    next_due timestamptz not null,
    primary key (table_name, range)
);

-- Which process is in the midst of a round, if any.
create table idempotent_webhook.retention_turns (
    process bigint not null primary key,
    -- Unless the process extends it, others may begin a round then.
    ends_at timestamptz not null
);
