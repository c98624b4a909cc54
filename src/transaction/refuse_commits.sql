-- Makes each commit of this transaction fail. A commit has to read a `with hold` cursor, and reading this one fails. A
-- rollback does not read it. After a statement has failed, the savepoint shows whether the session is still in this
-- transaction.
declare idempotent_webhook_rehearsal no scroll cursor with hold for
select ('a rehearsal cannot commit, in process ' || pg_backend_pid())::integer;
savepoint idempotent_webhook_rehearsal;
-- For `as_read.sql`, which restores the handler's own setting.
set local enable_seqscan = off
