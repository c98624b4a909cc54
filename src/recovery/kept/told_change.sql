-- Records that a hook was called for the problem $2 of the endpoint $1, about the subject $5. $3 whether the call
-- reported that the problem is there, $4 the number of the call.
--
-- The number keeps a process that was frozen after its call from recording anything. Suppose that it has reported the
-- start of a problem, another process has reported the end, and the problem has started again. Without the comparison
-- of `tellings`, the frozen process would record this new start as reported.
with ended as (
    delete from idempotent_webhook.problems
    where endpoint = $1 and problem = $2 and subject = $5 and tellings = $4 and not is_there and not $3
)
update idempotent_webhook.problems
set is_told = $3, telling_until = null
where endpoint = $1 and problem = $2 and subject = $5 and tellings = $4 and (is_there or $3)
