-- Remembers a delivery whose body was processed under another id, if the endpoint is reconciled: it would be missing
-- for ever.
--
-- $1 endpoint, $2 tenant, $3 id.
insert into idempotent_webhook.discarded (endpoint, tenant, delivery_id)
select $1, $2, $3
where exists (select from idempotent_webhook.reconciliations where endpoint = $1)
on conflict do nothing
