-- What was found last, and for how long it is nobody's turn. $1 the endpoint, $2 the address, $3 the name of the list.
select
    coalesce(cardinality(differences), 0)::bigint as differences,
    extract(epoch from greatest(next_at - now(), interval '0'))::float8 as wait
from idempotent_webhook.subscriptions
where endpoint = $1 and address = $2 and source = $3
