-- Deletes activity and settings that are older than $1, for all endpoints. Event types stay for at least a year, so
-- that a type that arrives once a year does not count as new.
--
-- On Citus, these tables are reference tables. A statement that deletes from them cannot delete from the tables in
-- `records.sql` as well.
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
