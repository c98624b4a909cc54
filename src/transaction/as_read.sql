-- Whether a kept delivery is unchanged since a rehearsal read it. After reading it, the rehearsal has waited for the
-- delivery's lock. During this wait, the delivery may have been processed, discarded, erased or run again. This is a
-- separate statement, so it sees what was committed during the wait.
--
-- $1 endpoint, $2 tenant, $3 id, $4 state, $5 its take number, which changes whenever an attempt takes it, $6 the
-- handler's `enable_seqscan`.
select exists (
    select
    from idempotent_webhook.kept_deliveries as kept
    join idempotent_webhook.kept_requests as request using (endpoint, tenant, delivery_id)
    where kept.endpoint = $1 and kept.tenant = $2 and kept.delivery_id = $3
        and kept.state = $4 and kept.takes = $5
), set_config('enable_seqscan', $6, true)
