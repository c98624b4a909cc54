-- Ends the kept row of a delivery before the handler runs: deletes the row or, if processed deliveries are archived,
-- marks it as processed. The function `end_kept` (`migrations/0004_claim.sql`) does this.
--
-- Another transaction may hold a lock on the row. `claim.sql` has limited the wait for this lock. Once it has the lock,
-- this statement sets the handler's `lock_timeout`.
--
-- $1 endpoint, $2 tenant, $3 id, $4 the take number under which the attempt has taken the kept delivery, or `null` for
-- a request from the provider, $5 the version of the application, or an empty text, $6 `lock_timeout` for the handler.
select ended.is_reprocessed, set_config('lock_timeout', $6, true)
from idempotent_webhook.end_kept($1, $2, $3, $4, $5) as ended (is_reprocessed)
