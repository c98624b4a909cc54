-- Notes that the provider has sent a kept delivery again, before it hears that this is accepted. It waits for no
-- attempt. For an operation on many deliveries of the same endpoint it waits only while that commits (`operation.rs`),
-- by a lock that all notes of the endpoint share.
--
-- Without this: an attempt runs, an operator begins to discard many, the provider sends the delivery again and hears that it
-- is accepted, the attempt fails, and the delivery is discarded.
--
-- $1 endpoint, $2 tenant, $3 id.
insert into idempotent_webhook.sent_again (endpoint, tenant, delivery_id)
values (
    case when pg_advisory_xact_lock_shared(hashtextextended($1, 4)) is not null then $1 end, $2, $3
)
on conflict (delivery_id, endpoint, tenant) do update
set received_at = statement_timestamp()
