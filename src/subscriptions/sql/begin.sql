-- Takes the turn, unless another process has it. $1 the endpoint, $2 the address, $3 the name of the list, $4 the process,
-- $5 for how long it has the turn without another word. Returns what was found before.
insert into idempotent_webhook.subscriptions as subscription (endpoint, address, source, process, next_at)
values ($1, $2, $3, $4, now() + $5)
on conflict (endpoint, address, source) do update
set process = $4, next_at = now() + $5
where subscription.next_at <= now()
returning differences
