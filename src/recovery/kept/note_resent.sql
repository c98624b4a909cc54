-- Notes that the provider has sent a kept delivery again, before the request is answered as accepted. The statement
-- waits for no attempt. All notes of an endpoint share a lock. An operation on many deliveries of the endpoint holds
-- this lock exclusively while it writes and commits (`operation.rs`), and a note waits for it only that long.
--
-- The note keeps an operation from discarding an accepted request. Suppose that an operator starts to discard many
-- deliveries while an attempt at one of them runs. The provider sends this delivery again, and its request is accepted.
-- Then the attempt fails. Without the note, the operation would now discard the delivery.
--
-- $1 endpoint, $2 tenant, $3 id.
insert into idempotent_webhook.sent_again (endpoint, tenant, delivery_id)
values (
    case when pg_advisory_xact_lock_shared(hashtextextended($1, 4)) is not null then $1 end, $2, $3
)
on conflict (delivery_id, endpoint, tenant) do update
set received_at = statement_timestamp()
