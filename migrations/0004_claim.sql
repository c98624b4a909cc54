-- Ends the kept row of a delivery, before its handler runs, in the transaction of its claim, and is committed or rolled
-- back with it: for the claim of the layer (`src/transaction/end_with_claim.sql`) and for the function below. Returns
-- whether an operator has it processed again, or `null` if there is no row to end.
--
-- `take` is the number of the take, or `null` for an attempt of the provider. `version` is the application's, or an
-- empty text.
--
-- Without `takes = take`: 1 takes A and is silent, 2 takes A, and 1 claims and ends the row that 2 has taken. Without
-- the end in the transaction of the claim: retention selects the claim, the delivery is reprocessed and its commit is
-- in doubt, the claim is deleted as old, and the row, still due, runs again: two effects.
create function idempotent_webhook.end_kept(
    endpoint text, tenant text, delivery_id text, take bigint, version text
)
    returns boolean
    language plpgsql
    -- Its plans may be from a time in which nothing was kept.
    set enable_seqscan = off
as $$
declare
    is_reprocessed boolean;
begin
    delete from idempotent_webhook.kept_deliveries as kept
    where kept.endpoint = end_kept.endpoint and kept.tenant = end_kept.tenant
        and kept.delivery_id = end_kept.delivery_id
        and (kept.archived_for is null or kept.state = 'recorded')
        and (end_kept.take is null or kept.state = 'due' and kept.takes = end_kept.take)
    returning kept.reprocessed into is_reprocessed;
    if found then
        return is_reprocessed;
    end if;
    -- A statement of its own, so it sees what was committed while the one before waited: a copy may have made the row
    -- due.
    update idempotent_webhook.kept_deliveries as kept
    set state = 'processed', taken_by = null, next_attempt_at = null, unfinished = 0, unreached_at = null,
        unreached_status = null, processed_at = now(), processed_version = nullif(end_kept.version, ''),
        archived_until = now() + kept.archived_for
    where kept.endpoint = end_kept.endpoint and kept.tenant = end_kept.tenant
        and kept.delivery_id = end_kept.delivery_id
        and kept.archived_for is not null
        -- No request is there that could stay.
        and kept.state <> 'recorded'
        and (end_kept.take is null or kept.state = 'due' and kept.takes = end_kept.take)
    returning kept.reprocessed into is_reprocessed;
    return is_reprocessed;
end
$$;

-- The claim, for handlers with another driver than sqlx, or in another language. Call it first in a transaction of your
-- own, whose writes are committed together with it. Returns whether to process the delivery now: `false` says that it
-- was processed before.
--
-- It takes the same lock and writes the same row as the layer's own claim (`src/transaction/claim.sql`), and ends the
-- kept row in the same way. While another attempt works on the delivery it waits, for as long as `lock_timeout` allows.
--
-- `take` is the number of the take, if the delivery was kept and taken. It fails if the delivery was discarded,
-- forgotten or taken by another attempt since, and at once if it is 0, the number of a rehearsal. `false` would be taken for a duplicate, although nothing was processed.
create function idempotent_webhook.claim(
    endpoint text, tenant text, delivery_id text, event_type text, take bigint default null
)
    returns boolean
    language plpgsql
    set enable_seqscan = off
as $$
declare
    has_ended boolean := false;
begin
    -- An empty id would make one delivery of many. `null` is refused as well.
    if (
        octet_length(claim.endpoint) between 1 and 255
        and octet_length(claim.delivery_id) between 1 and 255
        and octet_length(claim.tenant) between 0 and 255
    ) is not true then
        raise exception 'endpoint and delivery id need 1 to 255 bytes, and the tenant is a text that may be empty'
            using errcode = 'invalid_parameter_value';
    end if;
    if claim.take = 0 then
        raise exception 'this is a rehearsal, which claims nothing' using errcode = 'object_not_in_prerequisite_state';
    end if;
    perform pg_advisory_xact_lock(
        hashtextextended(claim.delivery_id, hashtextextended(claim.tenant, hashtextextended(claim.endpoint, 0)))
    );
    -- In `read committed`, each statement sees what was committed during the wait.
    insert into idempotent_webhook.deliveries (endpoint, tenant, delivery_id, event_type)
    values (claim.endpoint, claim.tenant, claim.delivery_id, claim.event_type)
    on conflict do nothing;
    if not found then
        return false;
    end if;
    -- Most deliveries are not kept.
    if exists (
        select
        from idempotent_webhook.kept_deliveries as kept
        where kept.endpoint = claim.endpoint and kept.tenant = claim.tenant
            and kept.delivery_id = claim.delivery_id
    ) then
        has_ended := idempotent_webhook.end_kept(
            claim.endpoint, claim.tenant, claim.delivery_id, claim.take, ''
        ) is not null;
    end if;
    if claim.take is not null and not has_ended then
        raise exception 'the delivery was discarded, forgotten or taken by another attempt'
            using errcode = 'object_not_in_prerequisite_state';
    end if;
    -- Retention keeps the deliveries of an endpoint that has no window. A layer with the endpoint registers its
    -- provider's window, and deletes this one, which differs from every preset's. If another transaction is writing it
    -- at this moment, this one does not wait.
    if not exists (
        select 1 from idempotent_webhook.redelivery_windows as known where known.endpoint = claim.endpoint
    ) and pg_try_advisory_xact_lock(hashtextextended(claim.endpoint, 3)) then
        insert into idempotent_webhook.redelivery_windows (endpoint, redelivery_window)
        values (claim.endpoint, interval '32 days')
        on conflict do nothing;
    end if;
    return true;
end
$$;

-- How a subject is stored: a long one, which an index cannot hold, as its digest. `src/transaction/recency.rs` does the
-- same.
create function idempotent_webhook.stored_subject(subject text) returns text
    language sql
    immutable
    strict
as $$
    select case
        when octet_length(subject) <= 255 then subject
        else 'sha256:' || encode(sha256(convert_to(subject, 'UTF8')), 'hex')
    end
$$;

-- Notes the version of what an event is about, as `DedupeTx::advance` does. Returns how it compares with the highest
-- version seen: 1 newer or the first, 0 the same, -1 older.
create function idempotent_webhook.advance(endpoint text, tenant text, subject text, version bigint)
    returns integer
    language plpgsql
    set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    stored constant text := idempotent_webhook.stored_subject(advance.subject);
begin
    insert into idempotent_webhook.subjects as seen (endpoint, tenant, subject, version)
    values (advance.endpoint, advance.tenant, stored, advance.version)
    on conflict (endpoint, tenant, subject) do update
    set version = excluded.version, advanced_at = excluded.advanced_at
    where seen.version < excluded.version;
    if found then
        return 1;
    end if;
    return (
        select case when advance.version < seen.version then -1 else 0 end
        from idempotent_webhook.subjects as seen
        where seen.endpoint = advance.endpoint and seen.tenant = advance.tenant and seen.subject = stored
    );
end
$$;
