-- Remembers from which time on all deliveries of the endpoint $1 are there: those older than $2 may be deleted. It is in the
-- transaction of the delete. Without this: A commits, its claim is deleted, and reconciliation finds it missing: two effects.
insert into idempotent_webhook.pruned as known (endpoint, before)
values ($1, now() - $2)
on conflict (endpoint) do update
set before = greatest(known.before, excluded.before)
