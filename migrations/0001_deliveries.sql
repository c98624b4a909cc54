-- One row for each delivery whose effects are committed: it is inserted in the very
-- transaction that holds those effects.
create table idempotent_webhook.deliveries (
    -- The key is compared byte by byte, whatever the database's collation.
    endpoint text collate "C" not null,
    -- Empty where tenants do not matter.
    tenant text collate "C" not null default '',
    delivery_id text collate "C" not null,
    event_type text,
    received_at timestamptz not null default now(),
    -- The SHA-256 of event type and body, where the endpoint wants it.
    digest bytea,
    -- The id first, since it is what sets keys apart: so most comparisons end with it.
    primary key (delivery_id, endpoint, tenant)
);

-- What those deliveries say that nobody may say again, for the guard against replays: the
-- SHA-256 as above, and the delivery that was the first to say it.
create table idempotent_webhook.bodies (
    endpoint text collate "C" not null,
    tenant text collate "C" not null default '',
    digest bytea not null,
    delivery_id text collate "C" not null,
    received_at timestamptz not null default now(),
    primary key (digest, endpoint, tenant)
);

-- For how long each endpoint's provider may deliver again. Pruning keeps to the longest.
-- There are several rows for an endpoint while its configuration changes. Each process
-- registers its own hourly while it claims deliveries, and takes out what nobody has
-- registered for a day.
create table idempotent_webhook.redelivery_windows (
    endpoint text collate "C" not null,
    redelivery_window interval not null,
    registered_at timestamptz not null default now(),
    primary key (endpoint, redelivery_window)
);
