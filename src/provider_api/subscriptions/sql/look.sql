-- Returns how long it is until this process may take the turn (the right to compare), and how many differences the last
-- comparisons found, over all lists of the endpoint.
--
-- $1 endpoint, $2 address, $3 name of the list, $4 version of the application, $5 the longest time from one comparison
-- to the next.
--
-- Different versions of the application may expect different subscriptions. If several versions run side by side, the
-- newest one compares. An older version may compare again only once a comparison has been due for an hour.
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
