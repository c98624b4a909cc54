-- How long it is until a process may take the turn, and what the last comparisons of all lists of the endpoint have found.
-- $1 the endpoint, $2 the address, $3 the name of the list.
select
    (
        select coalesce(sum(cardinality(differences)), 0)
        from idempotent_webhook.subscriptions
        where endpoint = $1 and next_at > now() - interval '1 day'
    )::bigint as differences,
    extract(epoch from greatest(next_at - now(), interval '0'))::float8 as wait
from idempotent_webhook.subscriptions
where endpoint = $1 and address = $2 and source = $3
