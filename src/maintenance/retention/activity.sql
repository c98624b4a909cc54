-- Deletes the activity and the settings of all endpoints that are older than $1. An event type is known for at least a
-- year, so that a type that comes once a year does not count as new.
--
-- On Citus, these tables are reference tables, and one statement cannot delete from them and from the tables of
-- `records.sql`.
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
