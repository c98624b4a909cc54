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
    -- Whether no other delivery may have the same digest.
    guarded boolean not null default false,
    primary key (endpoint, tenant, delivery_id)
);

-- For the guard against replays.
create unique index deliveries_guarded on idempotent_webhook.deliveries
    (endpoint, tenant, digest) where guarded;

-- For how long each endpoint's provider may deliver again. Pruning keeps to the longest.
-- There may be several rows for an endpoint while its configuration changes.
create table idempotent_webhook.redelivery_windows (
    endpoint text collate "C" not null,
    redelivery_window interval not null,
    primary key (endpoint, redelivery_window)
);
