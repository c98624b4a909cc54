-- Records the time from which on the deliveries of the endpoint $1 are complete: deliveries that are older than $2 may
-- be deleted. This runs in the transaction of the delete. Without this: A commits, its claim is deleted, and
-- reconciliation takes A for missing and runs it again: two effects.
insert into idempotent_webhook.pruned as known (endpoint, before)
values ($1, now() - $2)
on conflict (endpoint) do update
set before = greatest(known.before, excluded.before)
