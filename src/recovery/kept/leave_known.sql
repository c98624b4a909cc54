-- Takes back what a list of the provider has made due in this transaction, if it has become known since: `accept.sql` may
-- have waited for another delivery of the list after it had looked. Without this: A is not known, the list waits for B, A is
-- processed and forgotten, and it runs once more.
--
-- $1 endpoint, $2 tenants, $3 ids.
with known as materialized (
    select tenant, delivery_id
    from idempotent_webhook.deliveries
    where endpoint = $1
        and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
)
delete from idempotent_webhook.kept_deliveries as kept
where endpoint = $1
    and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
    and (
        exists (
            select 1
            from known
            where known.tenant = kept.tenant and known.delivery_id = kept.delivery_id
        )
        or exists (
            select 1
            from idempotent_webhook.discarded
            where discarded.endpoint = $1
                and discarded.tenant = kept.tenant
                and discarded.delivery_id = kept.delivery_id
        )
    )
returning tenant, delivery_id
