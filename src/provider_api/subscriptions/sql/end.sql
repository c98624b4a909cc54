-- Ends a comparison. $1 the endpoint, $2 the address, $3 the name of the list, $4 what was found, $5 why the provider could not
-- be asked. One of the two is `null`. If the provider could not be asked, the earlier findings stay.
--
-- After a correction of the address, or with a new name of the list, the old row stays, and no process compares it when
-- it is due. Each process looks once a minute. An hour is longer than Postgres or the processes of another address are
-- likely to be away.
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
