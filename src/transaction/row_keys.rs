//! Statements that look for rows by their keys, among them the only statement that deletes claims. A claim is deleted
//! when it is old enough, or when an operator reprocesses or forgets the delivery. Without its claim, the delivery can
//! be processed again.
//!
//! # How a statement looks for rows by their keys
//!
//! Postgres keeps the plan of a prepared statement, even if the plan was made while a table was empty. For an empty
//! table, reading all rows of the table or of an endpoint costs no more than looking up each key. If such a plan were
//! kept, each run would read all these rows even after the table has grown. So a statement that looks for rows by their
//! keys is written so that the planner can use only the primary key:
//!
//! - It runs in a transaction that [`begin_own!`](super::short_tx::begin_own) begins.
//! - It compares all columns of the key with the columns of its list of keys, never with a value.
//! - It compares the first column with `= any (array[key.endpoint])` instead of `=`. With `=`, Postgres may also read
//!   the whole index in its order and compare it with the list.
//! - It has no condition that implies the condition of a partial index. For example, instead of `state = 'processed'`,
//!   it says `state not in ('recorded', 'due', 'dead')`.
//!
//! A test plans each statement on empty tables and runs it on full ones (`tests/it/database/plans.rs`).
//!
//! Each statement uses at most one distributed table and changes at most one table, so that it runs on Citus.

use std::time::Duration;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres, Row};

use super::pg_time::interval;
use crate::provider::delivery::Delivery;

/// Deletes the fingerprints of deliveries. With the replay guard, a delivery's row contains the digest under which its
/// fingerprint is stored.
const DELETE_BODIES: &str = "
    with guarded as materialized (
        select key.endpoint, key.tenant, key.delivery_id, claim.digest
        from unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
        join idempotent_webhook.deliveries as claim
            on claim.delivery_id = any (array[key.delivery_id])
                and claim.endpoint = key.endpoint
                and claim.tenant = key.tenant
        where claim.digest is not null
    )
    delete from idempotent_webhook.bodies as body
    using guarded
    where body.digest = any (array[guarded.digest])
        and body.endpoint = guarded.endpoint
        and body.tenant = guarded.tenant
        and body.delivery_id = guarded.delivery_id
        -- The delivery may have been claimed again since it was selected.
        and ($4::interval is null or body.received_at < now() - $4)
";

const DELETE_CLAIMS: &str = "
    delete from idempotent_webhook.deliveries as claim
    using unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, delivery_id)
    where claim.delivery_id = any (array[key.delivery_id])
        and claim.endpoint = key.endpoint
        and claim.tenant = key.tenant
        and ($4::interval is null or claim.received_at < now() - $4)
    returning claim.tenant, claim.delivery_id
";

/// Makes a query and binds a delivery's key (endpoint, tenant, id) as its first values.
pub(crate) fn keyed<'q>(
    sql: &'static str,
    delivery: &'q Delivery,
) -> Query<'q, Postgres, PgArguments> {
    sqlx::query(sql)
        .bind(delivery.endpoint())
        .bind(delivery.key_tenant())
        .bind(delivery.id())
}

/// Keys of rows of one endpoint. Each key is a tenant with a delivery id or a subject.
#[derive(Clone, Default)]
pub(crate) struct RowKeys(Vec<(String, String)>);

impl RowKeys {
    pub(crate) fn one(tenant: &str, id: &str) -> Self {
        Self(vec![(tenant.to_owned(), id.to_owned())])
    }

    /// Reads the keys from the first two columns of each row.
    pub(crate) fn read(rows: &[PgRow]) -> sqlx::Result<Self> {
        let keys = rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        Ok(Self(keys.collect::<sqlx::Result<_>>()?))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, key: &(String, String)) -> bool {
        self.0.contains(key)
    }

    pub(crate) fn remove(&mut self, keys: &Self) {
        self.0.retain(|key| !keys.0.contains(key));
    }

    /// Binds three lists as the next values of a statement: the endpoint (repeated for each key), the tenants, and the
    /// ids or subjects.
    pub(crate) fn bind<'q>(
        &'q self,
        statement: Query<'q, Postgres, PgArguments>,
        endpoint: &'q str,
    ) -> Query<'q, Postgres, PgArguments> {
        self.bind_after(statement.bind(vec![endpoint; self.len()]))
    }

    /// Binds two lists as the next values of a statement: the tenants, and the ids or subjects.
    pub(crate) fn bind_after<'q>(
        &'q self,
        statement: Query<'q, Postgres, PgArguments>,
    ) -> Query<'q, Postgres, PgArguments> {
        let tenants: Vec<&str> = self.0.iter().map(|(tenant, _)| &**tenant).collect();
        let keys: Vec<&str> = self.0.iter().map(|(_, key)| &**key).collect();
        statement.bind(tenants).bind(keys)
    }

    /// Deletes the claims of these deliveries, with their fingerprints. If an age is given, only claims older than that
    /// are deleted. Returns the keys of the deleted claims.
    pub(crate) async fn delete_claims(
        &self,
        endpoint: &str,
        older_than: Option<Duration>,
        connection: &mut PgConnection,
    ) -> sqlx::Result<Self> {
        let delete = |sql| {
            self.bind(sqlx::query(sql), endpoint)
                .bind(older_than.map(interval))
        };
        delete(DELETE_BODIES).execute(&mut *connection).await?;
        let deleted = delete(DELETE_CLAIMS).fetch_all(connection).await?;
        Self::read(&deleted)
    }
}

impl FromIterator<(String, String)> for RowKeys {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(keys: I) -> Self {
        Self(keys.into_iter().collect())
    }
}
