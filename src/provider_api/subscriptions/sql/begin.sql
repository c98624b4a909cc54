-- Starts a comparison, and returns what the last one found.
--
-- $1 endpoint, $2 address, $3 name of the list, $4 version of the application that compares.
insert into idempotent_webhook.subscriptions as subscription (endpoint, address, source, version)
values ($1, $2, $3, $4)
on conflict (endpoint, address, source) do update
set version = $4,
    former_versions = case
        when subscription.version = $4 then subscription.former_versions
        else (subscription.version || subscription.former_versions)[:20]
    end
returning differences
