-- The highest version that an endpoint has seen of each subject.
create table idempotent_webhook.subjects (
    endpoint text collate "C" not null,
    tenant text collate "C" not null default '',
    subject text collate "C" not null,
    version bigint not null,
    advanced_at timestamptz not null default now(),
    primary key (endpoint, tenant, subject)
);
