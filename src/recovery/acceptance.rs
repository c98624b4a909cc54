//! Deliveries that are kept before their first attempt.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::Row;
use sqlx::postgres::PgRow;

use super::group_commit::GroupWrite;
use super::keep::{Keep, interval, unix_time};
use super::request::KeptRequest;
use super::served;
use crate::delivery::Delivery;
use crate::transaction::{DatabaseError, ShortTx, Store};

/// Keeps new deliveries of an endpoint.
///
/// What is known of a delivery is looked up first: an `on conflict` would lock its row, and so
/// write and wait for the disk, for each duplicate. The planner must not see how many there are,
/// or it would plan anew each time, which takes longer than all else: hence the `select` in
/// `unnest`.
const ACCEPT: &str = "
    with delivery as materialized (
        select
            new.*,
            (
                select true
                from idempotent_webhook.deliveries as processed
                where processed.endpoint = $1
                    and processed.tenant = new.tenant
                    and processed.delivery_id = new.delivery_id
            ) as processed,
            (
                select case
                    when known.state <> 'due' then 'ended'
                    when known.next_attempt_at > now()
                        and (known.running_until is null or known.running_until <= now())
                        then 'waiting'
                    else 'due'
                end
                from idempotent_webhook.kept_deliveries as known
                where known.endpoint = $1
                    and known.tenant = new.tenant
                    and known.delivery_id = new.delivery_id
            ) as known
        from unnest(
            (select $3::text[]), $4::text[], $5::text[], $6::text[], $7::float8[], $8::bool[],
            $9::text[], $10::text[], $11::bytea[], $12::bytea[], $13::float8[]
        ) with ordinality as new (
            tenant, delivery_id, tenant_name, event_type, received_at, begins,
            method, uri, headers, body, signed_at, number
        )
    ),
    paused as materialized (
        select
        from idempotent_webhook.kept_endpoints
        where endpoint = $1 and paused_at is not null
    ),
    accepted as (
        insert into idempotent_webhook.kept_deliveries as known (
            endpoint, tenant, delivery_id, tenant_name, event_type, state, attempts,
            first_received_at, next_attempt_at, running_until, body_bytes
        )
        select
            $1, tenant, delivery_id, tenant_name, event_type, 'due',
            case when begins and not exists (select from paused) then 1 else 0 end,
            to_timestamp(received_at), now(),
            case when begins and not exists (select from paused) then now() + $2 end,
            octet_length(body)
        from delivery
        where processed is null and (known is null or known = 'ended')
        on conflict (endpoint, tenant, delivery_id) do update
        set state = 'due',
            attempts = known.attempts + excluded.attempts,
            retries = 0,
            next_attempt_at = now(),
            running_until = excluded.running_until,
            body_bytes = coalesce(known.body_bytes, excluded.body_bytes)
        where known.state <> 'due'
        returning tenant, delivery_id
    ),
    request as (
        insert into idempotent_webhook.kept_requests
            (endpoint, tenant, delivery_id, format, method, uri, headers, body, signed_at)
        select
            $1, delivery.tenant, delivery.delivery_id, 1, method, uri, headers, body,
            to_timestamp(signed_at)
        from delivery
        join accepted using (tenant, delivery_id)
        on conflict do nothing
    )
    select
        accepted.delivery_id is not null as accepted,
        delivery.processed is not null as processed,
        coalesce(delivery.known = 'waiting', false) as waiting,
        exists (select from paused) as paused
    from delivery
    left join accepted using (tenant, delivery_id)
    order by delivery.number
";

/// Makes deliveries due at once that wait for their next attempt.
const BRING_FORWARD: &str = "
    update idempotent_webhook.kept_deliveries
    set next_attempt_at = now()
    where endpoint = $1 and tenant = $2 and delivery_id = any((select $3)::text[])
        and state = 'due'
        and next_attempt_at > now()
        and (running_until is null or running_until <= now())
";

/// An authentic delivery that is to be kept before its first attempt.
#[derive(Debug)]
pub(crate) struct Acceptance {
    pub(crate) delivery: Delivery,
    pub(crate) request: KeptRequest,
    /// Whether its first attempt begins now, in this process. Otherwise it is left to recovery.
    pub(crate) begins: bool,
    /// How long an attempt takes at most.
    pub(crate) lease: Duration,
}

/// The result of keeping a delivery before its first attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// It is kept now, and its attempt has begun if that was wanted and is not paused.
    New { begun: bool },
    /// It was kept before.
    Known,
    /// It was processed before.
    Processed,
}

impl Keep {
    /// Keeps a delivery before its first attempt.
    pub(crate) async fn accept(
        &self,
        store: &Store,
        acceptance: Acceptance,
    ) -> Result<Accepted, DatabaseError> {
        let accepted = self.acceptances.write(store, acceptance).await?;
        match accepted {
            Accepted::New { begun: true } | Accepted::Processed => {}
            // For recovery to run it.
            Accepted::New { begun: false } | Accepted::Known => served::notify(),
        }
        Ok(accepted)
    }
}

impl Acceptance {
    fn key(&self) -> (&str, &str) {
        (self.delivery.key_tenant(), self.delivery.id().as_str())
    }
}

impl GroupWrite for Acceptance {
    type Result = Accepted;

    fn size(&self) -> usize {
        self.request.body.len()
    }

    async fn write(tx: &mut ShortTx, group: &[&Self]) -> sqlx::Result<Vec<Accepted>> {
        // Each delivery once, the first request of it: one statement cannot insert a row twice. In
        // the order of their keys, so that two processes do not wait for each other.
        let deliveries: BTreeMap<_, &Self> =
            group.iter().rev().map(|one| (one.key(), *one)).collect();
        let Some(first) = deliveries.values().next() else {
            return Ok(Vec::new());
        };
        let all = Columns(&deliveries);
        let statement = sqlx::query(ACCEPT)
            .bind(first.delivery.endpoint())
            .bind(interval(first.lease))
            .bind(all.of(|one| one.delivery.key_tenant()))
            .bind(all.of(|one| one.delivery.id().as_str()))
            .bind(all.of(|one| one.delivery.tenant()))
            .bind(all.of(|one| one.delivery.event_type()))
            .bind(all.of(|one| unix_time(one.delivery.first_received_at())))
            .bind(all.of(|one| one.begins))
            .bind(all.of(|one| one.request.method.as_str()))
            .bind(all.of(|one| &*one.request.uri))
            .bind(all.of(|one| &*one.request.headers))
            .bind(all.of(|one| &*one.request.body))
            .bind(all.of(|one| one.delivery.signed_at().map(unix_time)));
        let rows = tx.run(statement).await?;
        let (mut results, mut waiting) = (BTreeMap::new(), Vec::new());
        for ((key, one), row) in deliveries.iter().zip(&rows) {
            results.insert(*key, one.read(row)?);
            if row.try_get("waiting")? {
                waiting.push(*key);
            }
        }
        for same_tenant in waiting.chunk_by(|(a, _), (b, _)| a == b) {
            let ids: Vec<&str> = same_tenant.iter().map(|(_, id)| *id).collect();
            let statement = sqlx::query(BRING_FORWARD)
                .bind(first.delivery.endpoint())
                .bind(same_tenant.first().map(|(tenant, _)| *tenant))
                .bind(ids);
            tx.run(statement).await?;
        }
        let mut of_each = Vec::with_capacity(group.len());
        for one in group {
            let result = results
                .get_mut(&one.key())
                .ok_or(sqlx::Error::RowNotFound)?;
            of_each.push(*result);
            if let Accepted::New { .. } = result {
                // Only for its first request.
                *result = Accepted::Known;
            }
        }
        Ok(of_each)
    }
}

impl Acceptance {
    fn read(&self, row: &PgRow) -> sqlx::Result<Accepted> {
        let paused: bool = row.try_get("paused")?;
        Ok(if row.try_get("accepted")? {
            let begun = self.begins && !paused;
            Accepted::New { begun }
        } else if row.try_get("processed")? {
            Accepted::Processed
        } else {
            Accepted::Known
        })
    }
}

/// Deliveries, column by column.
struct Columns<'a>(&'a BTreeMap<(&'a str, &'a str), &'a Acceptance>);

impl<'a> Columns<'a> {
    fn of<T>(&self, value: impl Fn(&'a Acceptance) -> T) -> Vec<T> {
        self.0.values().map(|one| value(one)).collect()
    }
}
