-- A hook has heard whether the problem $2 of the endpoint $1, about $5, is there: $3. That was the call $4. Without
-- `tellings`: a process is frozen after its hook has heard of the begin, another one reports the end, the problem comes
-- again, and counts as reported.
with ended as (
    delete from idempotent_webhook.problems
    where endpoint = $1 and problem = $2 and subject = $5 and tellings = $4 and not is_there and not $3
)
update idempotent_webhook.problems
set is_told = $3, telling_until = null
where endpoint = $1 and problem = $2 and subject = $5 and tellings = $4 and (is_there or $3)
