-- Records that the deliveries of the endpoint $1 that are older than $2 may have been deleted. This runs in the
-- transaction that deletes them. Without this record, reconciliation would not find the claim of a deleted delivery,
-- could take the delivery for missing, and run it again: two effects.
insert into idempotent_webhook.pruned as known (endpoint, before)
values ($1, now() - $2)
on conflict (endpoint) do update
set before = greatest(known.before, excluded.before)
