-- Gives back a taken delivery whose attempt did not start. The take has counted this attempt, so the attempt is
-- subtracted again. The next attempt is due after $5.
--
-- $4 is the take number of the attempt: the counter `takes` of the row, which each take increases. $6 is how many
-- attempts of the schedule the take has used, $7 whether the attempt has reached no layer, $8 the status of the
-- router's answer in that case.
--
-- If attempts at a delivery reach no layer, its wait doubles each time, up to an hour. So a backlog of deliveries whose
-- route is gone costs little, and does not hold up other deliveries.
--
-- The condition `takes = $4` keeps a process from freeing a delivery that another process runs. Suppose that process 1
-- falls silent and process 2 takes the delivery. The claim of process 1 is then refused, and process 1 tries to give
-- the delivery back.
update idempotent_webhook.kept_deliveries
set attempts = attempts - 1,
    retries = greatest(retries - $6, 0),
    taken_by = null,
    unreached_at = case when $7 then now() else unreached_at end,
    unreached_status = case when $7 then $8 else unreached_status end,
    next_attempt_at = now() + case
        when $7 then greatest($5, least(coalesce(2 * (now() - unreached_at), $5), interval '1 hour'))
        else $5
    end
where endpoint = $1 and tenant = $2 and delivery_id = $3
    and takes = $4
    -- A taken delivery is always due. Without this condition, two attempts would be subtracted if the answer to this
    -- statement is lost and the statement is repeated.
    and taken_by is not null
returning true
