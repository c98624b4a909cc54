-- Begins a comparison by the version $4 of the application. $1 the endpoint, $2 the address, $3 the name of the list. Returns
-- the earlier findings.
insert into idempotent_webhook.subscriptions as subscription (endpoint, address, source, version)
values ($1, $2, $3, $4)
on conflict (endpoint, address, source) do update
set version = $4,
    former_versions = case
        when subscription.version = $4 then subscription.former_versions
        else (subscription.version || subscription.former_versions)[:20]
    end
returning differences
