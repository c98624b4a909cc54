-- Takes back the attempt with the take number $4, which was counted and did not start. The next attempt is due
-- after $5. $6 is how many attempts of the schedule the take has used, $7 whether it has reached no layer, $8 the
-- status of the answer that came instead. If attempts reach no layer, the delivery waits twice as long each time,
-- up to an hour: a backlog whose route is gone costs little, and holds up nothing else.
--
-- Without `takes = $4`: process 1 falls silent, process 2 takes the delivery, and process 1, whose claim is
-- refused, frees what process 2 runs.
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
    -- The delivery is taken, so it is due. Without this: the answer to the write is lost, the write is repeated,
    -- and two attempts are taken back.
    and taken_by is not null
returning true
