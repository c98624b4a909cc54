-- Makes each commit of this transaction fail: it must read a cursor that is held beyond it, and that fails. A rollback
-- does not read it. The savepoint tells the transaction from another one after a statement has failed.
declare idempotent_webhook_rehearsal no scroll cursor with hold for
select ('a rehearsal cannot commit, in process ' || pg_backend_pid())::integer;
savepoint idempotent_webhook_rehearsal;
-- For `as_read.sql`, which gives the handler its own setting back.
set local enable_seqscan = off
