-- Of the changes of the problems $1, takes the one that has waited longest to be reported to a hook. If it is not
-- reported within the time $2, another process may take it.
--
-- Without `telling_until is not null`: a process reports the start of a problem and is killed, the problem is over,
-- and no process reports the end, because there is no record that the start was reported.
--
-- Without an upper bound on `telling_until`: after a jump of the clock, no process would take the change for a long
-- time.
--
-- $3 the environment of the process: nothing is reported in a database that belongs to another environment.
update idempotent_webhook.problems as noted
set telling_until = now() + $2, tellings = tellings + 1
from (
    select endpoint, problem, subject
    from idempotent_webhook.problems
    where (is_there <> is_told or telling_until is not null)
        and problem = any($1)
        and coalesce(telling_until not between now() and now() + 2 * $2, true)
        and $3::text is not distinct from (select name from idempotent_webhook.environment)
    order by since, endpoint, problem, subject
    limit 1
    for update skip locked
) as chosen
where noted.endpoint = chosen.endpoint and noted.problem = chosen.problem and noted.subject = chosen.subject
returning
    noted.endpoint, noted.problem, noted.subject, extract(epoch from noted.since)::float8 as since,
    not noted.is_there as is_over, noted.tellings
