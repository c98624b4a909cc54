-- Takes the turn, unless another process has it. $1 the endpoint, $2 the address, $3 the name of the list, $4 the version of
-- the application, $5 the longest time until a turn, $6 the process, $7 for how long it has the turn without another word.
-- Returns what was found before.
--
-- After a jump of the clock, the next turn may be far away: hence the longest time.
--
-- What one version of the application expects is not what another one does. Where several run side by side, the newest
-- compares: a version that had the row before has it again once nobody has compared for an hour.
insert into idempotent_webhook.subscriptions as subscription (endpoint, address, source, version, process, next_at)
values ($1, $2, $3, $4, $6, now() + $7)
on conflict (endpoint, address, source) do update
set version = $4,
    former_versions = case
        when subscription.version = $4 then subscription.former_versions
        else (subscription.version || subscription.former_versions)[:20]
    end,
    process = $6,
    next_at = now() + $7
where subscription.next_at not between now() and now() + $5
    and (
        $4 <> all (subscription.former_versions)
        or subscription.version = $4
        or subscription.next_at < now() - interval '1 hour'
    )
returning differences
