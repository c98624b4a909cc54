-- Makes each commit of this transaction fail: a commit reads every `with hold` cursor, and reading this one fails. A
-- rollback does not read the cursor. The savepoint exists only in this transaction. So it shows whether the session is
-- still in this transaction, even after a statement has failed.
declare idempotent_webhook_rehearsal no scroll cursor with hold for
select ('a rehearsal cannot commit, in process ' || pg_backend_pid())::integer;
savepoint idempotent_webhook_rehearsal;
-- Set for the statements up to `as_read.sql`, which restores the handler's own setting.
set local enable_seqscan = off
