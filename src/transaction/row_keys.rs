//! Rows by their keys, and the deletion of claims by them.
//!
//! Only one table of a statement may be distributed, and no statement changes two tables, so that they run
//! on Citus.

use std::time::Duration;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres, Row};

use crate::delivery::Delivery;
use crate::pg_time::interval;

/// Guarded bodies have their digest in the delivery as well.
const DELETE_BODIES: &str = "
    delete from idempotent_webhook.bodies
    where endpoint = $1
        and digest in (
            select digest
            from idempotent_webhook.deliveries
            where endpoint = $1
                and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
        )
        and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
        -- The delivery may have been claimed anew since it was selected.
        and ($4::interval is null or received_at < now() - $4)
";

const DELETE_CLAIMS: &str = "
    delete from idempotent_webhook.deliveries
    where endpoint = $1
        and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
        and ($4::interval is null or received_at < now() - $4)
    returning tenant, delivery_id
";

/// A statement whose first values are the key of a delivery.
pub(crate) fn keyed<'q>(
    sql: &'static str,
    delivery: &'q Delivery,
) -> Query<'q, Postgres, PgArguments> {
    sqlx::query(sql)
        .bind(delivery.endpoint())
        .bind(delivery.key_tenant())
        .bind(delivery.id())
}

/// Keys of rows of one endpoint: the tenant, and the delivery id or the subject.
#[derive(Clone, Default)]
pub(crate) struct RowKeys(Vec<(String, String)>);

impl RowKeys {
    pub(crate) fn one(tenant: &str, id: &str) -> Self {
        Self(vec![(tenant.to_owned(), id.to_owned())])
    }

    /// The first two columns of each row.
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

    pub(crate) fn last(&self) -> Option<&(String, String)> {
        self.0.last()
    }

    /// Takes the first ones away, at most so many.
    pub(crate) fn take_first(&mut self, number: usize) -> Self {
        Self(self.0.drain(..number.min(self.0.len())).collect())
    }

    pub(crate) fn contains(&self, key: &(String, String)) -> bool {
        self.0.contains(key)
    }

    pub(crate) fn remove(&mut self, keys: &Self) {
        self.0.retain(|key| !keys.0.contains(key));
    }

    /// The first three values of a statement: the endpoint, the tenants, and the ids or subjects.
    pub(crate) fn bind<'q>(
        &'q self,
        statement: Query<'q, Postgres, PgArguments>,
        endpoint: &'q str,
    ) -> Query<'q, Postgres, PgArguments> {
        self.bind_after(statement.bind(endpoint))
    }

    /// The next two values of a statement: the tenants, and the ids or subjects.
    pub(crate) fn bind_after<'q>(
        &'q self,
        statement: Query<'q, Postgres, PgArguments>,
    ) -> Query<'q, Postgres, PgArguments> {
        let tenants: Vec<&str> = self.0.iter().map(|(tenant, _)| &**tenant).collect();
        let keys: Vec<&str> = self.0.iter().map(|(_, key)| &**key).collect();
        statement.bind(tenants).bind(keys)
    }

    /// Deletes the claims of these deliveries, with their bodies. With an age, those that are older.
    /// Returns those that were there.
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
