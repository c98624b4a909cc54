-- Ends what is kept of a delivery, before the handler runs, in the transaction of its claim, with which it is
-- committed or rolled back. Returns whether an operator has it processed again, or `null` if there is nothing to
-- end.
--
-- Without `takes = $4`: A is taken by 1, which is silent, 2 takes it, and 1 claims and ends what 2 has taken. Without
-- the end in the transaction of the claim: retention selects the claim, it is reprocessed and commits in doubt, the claim
-- is deleted as old, and what is still due runs again: two effects.
--
-- A transaction may hold the row: `claim.sql` has limited the wait, and this restores `lock_timeout` after it.
--
-- $1 endpoint, $2 tenant, $3 id, $4 the attempt of recovery that has taken it, `null` for one of the provider,
-- $5 the version of the application, or an empty text, $6 `lock_timeout` for the handler.
with ended as (
    delete from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
        and (archived_for is null or state = 'recorded')
        and ($4::bigint is null or state = 'due' and takes = $4)
    returning reprocessed
),
archived as (
    update idempotent_webhook.kept_deliveries
    set state = 'processed', taken_by = null, next_attempt_at = null, processed_at = now(),
        processed_version = nullif($5, ''), archived_until = now() + archived_for, unreached_at = null, unreached_status = null
    where endpoint = $1 and tenant = $2 and delivery_id = $3
        and archived_for is not null
        -- There is no request that could stay.
        and state <> 'recorded'
        and ($4::bigint is null or state = 'due' and takes = $4)
    returning reprocessed
)
select bool_or(reprocessed), set_config('lock_timeout', $6, true)
from (select * from ended union all select * from archived) as all_ended (reprocessed)
