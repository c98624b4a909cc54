-- Ends the kept row of a delivery before the handler runs, with the function `end_kept` of `migrations/0004_claim.sql`.
--
-- Another transaction may hold a lock on the row: `claim.sql` has limited the wait for it, and this statement then
-- restores `lock_timeout`.
--
-- $1 endpoint, $2 tenant, $3 id, $4 the number of the take, or `null` for a request from the provider, $5 the version
-- of the application, or an empty text, $6 `lock_timeout` for the handler.
select ended.is_reprocessed, set_config('lock_timeout', $6, true)
from idempotent_webhook.end_kept($1, $2, $3, $4, $5) as ended (is_reprocessed)
