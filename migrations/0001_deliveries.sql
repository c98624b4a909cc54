-- One row for each processed delivery, inserted in the transaction with its effects.
create table idempotent_webhook.deliveries (
    -- The key is compared byte by byte, independent of the database's collation.
    endpoint text collate "C" not null,
    -- Empty unless the tenant is part of the key.
    tenant text collate "C" not null default '',
    delivery_id text collate "C" not null,
    event_type text,
    received_at timestamptz not null default now(),
    -- The SHA-256 of event type and body, if the endpoint compares bodies.
    digest bytea,
    -- The id first: it differs between most keys, so most comparisons end with it.
    primary key (delivery_id, endpoint, tenant)
);

-- All rows are in it. Without the condition, Postgres could look a key up in it, only by its endpoint: while the table
-- is empty, that costs no more. Only a statement with the same condition is planned with it. The same is true for the
-- other indexes on a time below.
create index deliveries_received
    on idempotent_webhook.deliveries (endpoint, received_at)
    where received_at > '-infinity';

-- The bodies of processed deliveries, for the replay guard: the SHA-256 as above, and the delivery
-- that was the first with it. They are deleted with their deliveries.
create table idempotent_webhook.bodies (
    endpoint text collate "C" not null,
    tenant text collate "C" not null default '',
    digest bytea not null,
    delivery_id text collate "C" not null,
    received_at timestamptz not null default now(),
    primary key (digest, endpoint, tenant)
);

-- How long each endpoint's provider may redeliver. Retention keeps deliveries for the longest window.
-- There are several rows for an endpoint while its configuration changes. Each process registers its
-- own hourly while it claims deliveries, and deletes those that no process has registered for a day.
create table idempotent_webhook.redelivery_windows (
    endpoint text collate "C" not null,
    redelivery_window interval not null,
    registered_at timestamptz not null default now(),
    primary key (endpoint, redelivery_window)
);

-- The highest version that an endpoint has seen of each subject. A subject of over 255 bytes is stored as its digest.
create table idempotent_webhook.subjects (
    endpoint text collate "C" not null,
    tenant text collate "C" not null default '',
    subject text collate "C" not null,
    version bigint not null,
    advanced_at timestamptz not null default now(),
    primary key (endpoint, tenant, subject)
);

create index subjects_advanced
    on idempotent_webhook.subjects (endpoint, advanced_at)
    where advanced_at > '-infinity';
