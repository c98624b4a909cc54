-- Reserves a change (the start or the end of a problem) for this process, which then reports it to its hook. The change
-- that has waited longest comes first. If the report is not recorded within the time $2, another process may report the
-- change. $1 the names of the problems that this version of the crate knows.
--
-- If `telling_until` is set, the change may have been reported although no report is recorded. For example, a process
-- reports the start of a problem and is killed before it records that, and then the problem ends. Without the condition
-- `telling_until is not null`, no process would report the end.
--
-- A `telling_until` that is too far in the future is ignored. Otherwise, after a jump of the clock, no process would
-- report the change for a long time.
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
