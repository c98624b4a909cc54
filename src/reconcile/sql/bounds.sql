-- The times of the events that a round looks at, in Unix seconds. It is the round that was broken off, if there
-- is one, or a new one.
--
-- $1 endpoint, $2 path, $3 source, $4 look-back, $5 grace time, $6 whether deliveries belong to tenants, $7 since
-- when events count as the application says, `null` if it does not, $8 whether it is a round on request, which
-- looks at those again that are reconciled, $9 for how long the list has an event, `null` if that is not known.
with known as (
    select
        path = $2 as is_here, begins_at,
        -- A list goes on from where it was at another path.
        max(reconciled_until) over () as reconciled_until,
        round_since, round_until
    from idempotent_webhook.reconciliations as known
    where endpoint = $1 and source = $3 and (path = $2 or not $6)
    order by path = $2 desc, known.reconciled_until desc nulls last
    limit 1
),
-- What another list or another tenant has had recorded says nothing of this one.
first as (
    select min(received_at) as received_at
    from idempotent_webhook.deliveries
    where endpoint = $1
        and not $6
        and not exists (select 1 from idempotent_webhook.reconciliations where endpoint = $1)
),
begin as (
    select
        coalesce(begins_at, received_at, now()) as recorded_since,
        coalesce(to_timestamp($7), begins_at, received_at, now()) as begins_at,
        reconciled_until, round_since, round_until,
        coalesce(is_here and round_since is not null and not $8, false) as resumes
    from first
    left join known on true
),
-- Since when events are not reconciled. `null` if all that are not older than the look-back count.
next as (
    select
        begin.*,
        case
            when $8 then null
            when resumes then round_since
            -- Lists have times in whole seconds, and may show an event late.
            else coalesce(reconciled_until - greatest($5, interval '1 minute'), round_since)
        end as next_since,
        -- Since when a round must look at all. Before the first one, nothing was promised but what is younger.
        case
            when $8 then null
            when reconciled_until is null then round_until
            when resumes then round_since
            else reconciled_until - greatest($5, interval '1 minute')
        end as promised_since
    from begin
),
span as (
    select
        next.*,
        greatest(
            begins_at,
            next_since,
            case when not resumes then now() - $4 end,
            now() - $9,
            -- What is older may be unknown because it was deleted.
            (select before + $5 from idempotent_webhook.pruned where endpoint = $1)
        ) as since,
        case when resumes then round_until else now() - $5 end as until
    from next
)
select
    extract(epoch from recorded_since)::float8 as recorded_since,
    extract(epoch from reconciled_until)::float8 as reconciled_until,
    resumes,
    extract(epoch from since)::float8 as since,
    extract(epoch from until)::float8 as until,
    case
        when promised_since < since and begins_at < since
            then extract(epoch from greatest(begins_at, promised_since))::float8
    end as gap_since
from span
