-- Deletes what came in at all endpoints, and their settings, if it is older than $1. An event type is known for a year at least:
-- one that comes once a year is not new.
--
-- On Citus, these are reference tables, and no statement deletes from them and from the tables of `records.sql`.
with activity as (
    delete from idempotent_webhook.activity
    where hour < now() - $1
),
rejections as (
    delete from idempotent_webhook.rejections
    where hour < now() - $1
),
settings as (
    delete from idempotent_webhook.endpoint_settings
    where told_at < now() - $1
)
delete from idempotent_webhook.event_types
where last_at < now() - greatest($1, interval '1 year')
