-- Locks out other looks for problems until this transaction ends, and returns a row if it is time for one: no process has
-- looked within 25 seconds, or $1 says so. Not with `<`: after a jump of the clock, no process would look for a long time.
update idempotent_webhook.problems_look
set looked_at = now()
where $1 or looked_at not between now() - interval '25 seconds' and now() + interval '25 seconds'
returning true
