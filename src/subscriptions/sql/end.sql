-- Ends the turn of a process, which another one may have taken over meanwhile. $1 the endpoint, $2 the address, $3 the
-- name of the list, $4 the process, $5 when the next turn is, $6 what was found, $7 why the provider could not be asked.
-- One of both is `null`. A provider that could not be asked changes nothing of what was found before.
--
-- An address that was corrected, or a list that has another name now, leaves a row, which no process compares when it is
-- time to. Each process looks once a minute. An hour is longer than Postgres or the processes of another address are likely to
-- be away.
with ended as (
    update idempotent_webhook.subscriptions
    set process = null,
        next_at = now() + $5,
        compared_at = case when $6::text[] is null then compared_at else now() end,
        differences = coalesce($6, differences),
        failure = $7::text,
        failed_at = case when $7 is not null then coalesce(failed_at, now()) end
    where endpoint = $1 and address = $2 and source = $3 and process = $4
    returning endpoint, address, source
),
left_behind as (
    delete from idempotent_webhook.subscriptions as other
    using ended
    where other.endpoint = ended.endpoint
        and (other.address, other.source) <> (ended.address, ended.source)
        and other.next_at < now() - interval '1 hour'
)
select true from ended
