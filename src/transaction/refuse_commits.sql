-- Makes each commit of this transaction fail: a commit reads every `with hold` cursor, and reading this one fails. A
-- rollback does not read the cursor. The savepoint shows, even after a statement has failed, whether the session is
-- still in this transaction.
declare idempotent_webhook_rehearsal no scroll cursor with hold for
select ('a rehearsal cannot commit, in process ' || pg_backend_pid())::integer;
savepoint idempotent_webhook_rehearsal;
-- Set for the statements up to `as_read.sql`, which restores the handler's own setting.
set local enable_seqscan = off
