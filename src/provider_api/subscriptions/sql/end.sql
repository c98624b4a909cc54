-- Ends a comparison. If the provider could not be asked, the earlier findings stay.
--
-- $1 endpoint, $2 address, $3 name of the list, $4 the differences that were found, $5 why the provider could not be
-- asked. One of $4 and $5 is `null`.
--
-- This also deletes rows that were left behind. If the address is corrected, or the list gets a new name, the old row
-- stays, and no process compares it when it is due. A row counts as left behind once it has been due for an hour: each
-- process checks once a minute, and neither Postgres nor the processes of another address are likely to be unavailable
-- for an hour.
with left_behind as (
    delete from idempotent_webhook.turns
    where task = 'subscription'
        and endpoint = $1
        and (address, source) <> ($2, $3)
        and next_at < now() - interval '1 hour'
    returning address, source
),
forgotten as (
    delete from idempotent_webhook.subscriptions as other
    using left_behind
    where other.endpoint = $1
        and other.address = left_behind.address
        and other.source = left_behind.source
)
update idempotent_webhook.subscriptions
set compared_at = case when $4::text[] is null then compared_at else now() end,
    differences = coalesce($4, differences),
    failure = $5::text,
    failed_at = case when $5 is not null then coalesce(failed_at, now()) end
where endpoint = $1 and address = $2 and source = $3
