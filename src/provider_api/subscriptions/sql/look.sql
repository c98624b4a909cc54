-- How long it is until a process may take the turn, and what the last comparisons of all lists of the endpoint have found.
-- $1 the endpoint, $2 the address, $3 the name of the list, $4 the version of the application, $5 the longest time until a
-- turn.
--
-- Versions of the application may expect different subscriptions. If several run side by side, the newest compares: a
-- version that had the row before gets it again once nobody has compared for an hour.
select
    (
        select coalesce(sum(cardinality(differences)), 0)
        from idempotent_webhook.subscriptions
        join idempotent_webhook.turns as turn using (endpoint, address, source)
        where endpoint = $1 and turn.task = 'subscription' and turn.next_at > now() - interval '1 hour'
    )::bigint as differences,
    extract(epoch from case
        when turn.next_at > now() + $5 + interval '1 minute' then interval '0'
        when version <> $4 and $4 = any (former_versions)
            then greatest(turn.next_at + interval '1 hour' - now(), interval '0')
        else greatest(turn.next_at - now(), interval '0')
    end)::float8 as wait
from idempotent_webhook.subscriptions
join idempotent_webhook.turns as turn using (endpoint, address, source)
where endpoint = $1 and address = $2 and source = $3 and turn.task = 'subscription'
