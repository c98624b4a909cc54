-- Locks out other looks for problems until this transaction ends, and returns a row if it is time for one: no process has
-- looked within 25 seconds, or $1 says so. Not with `<`: after a jump of the clock, no process would look for a long time.
insert into idempotent_webhook.problems_look as look (looked_at)
values (now())
on conflict (is_the_only_one) do update
set looked_at = excluded.looked_at
where $1 or look.looked_at not between now() - interval '25 seconds' and now() + interval '25 seconds'
returning true
