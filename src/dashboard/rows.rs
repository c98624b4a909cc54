//! Rows that several pages read: endpoints, keys, counts, and listed deliveries.

use std::fmt;

use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::Access;
use super::error::PageError;
use super::html::Timestamp;

/// How many rows are counted for a page. All numbers of the page share this limit equally.
const COUNTED: usize = 200_000;

/// The largest number of endpoints that the pages show.
pub(super) const MAX_ENDPOINTS: usize = 500;

/// A number of rows, which may be counted only up to a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Count {
    pub(super) number: i64,
    /// Whether counting stopped at this number.
    pub(super) or_more: bool,
}

impl Count {
    /// The limit for each number, if a page shows this many numbers.
    pub(super) fn limit(numbers: usize) -> i64 {
        let share = COUNTED / numbers.max(1);
        i64::try_from(share.clamp(100, 10_000)).unwrap_or(100)
    }

    /// Creates a count from the result of a query that counts up to one more than the limit.
    pub(super) fn up_to(limit: i64, counted: i64) -> Self {
        Self {
            number: counted.min(limit),
            or_more: counted > limit,
        }
    }

    pub(super) fn is_zero(self) -> bool {
        self.number == 0
    }
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.number += other.number;
        self.or_more |= other.or_more;
    }
}

/// Formats a count such as `10,000+`.
impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&grouped(self.number))?;
        f.write_str(if self.or_more { "+" } else { "" })
    }
}

/// Formats a number with commas as thousands separators.
pub(super) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut grouped = String::new();
    if number < 0 {
        grouped.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A query that counts the rows of `kept_deliveries` that meet a condition, up to one more than `$2`.
macro_rules! count_kept {
    ($condition:expr) => {
        concat!(
            "select count(*)
            from (
                select
                from idempotent_webhook.kept_deliveries as kept
                where ",
            $condition,
            "
                limit $2 + 1
            ) as counted"
        )
    };
}
pub(super) use count_kept;

/// The names of endpoints, from all tables that contain them. In the large tables, an index scan jumps from each name
/// to the next, so that the number of rows per name does not matter.
const ENDPOINTS: &str = "
    with recursive kept as (
        (
            select endpoint
            from idempotent_webhook.kept_deliveries
            order by endpoint
            limit 1
        )
        union all
        select (
            select next.endpoint
            from idempotent_webhook.kept_deliveries as next
            where next.endpoint > kept.endpoint
            order by next.endpoint
            limit 1
        )
        from kept
        where kept.endpoint is not null
    ),
    active as (
        (
            select endpoint
            from idempotent_webhook.activity
            order by endpoint
            limit 1
        )
        union all
        select (
            select next.endpoint
            from idempotent_webhook.activity as next
            where next.endpoint > active.endpoint
            order by next.endpoint
            limit 1
        )
        from active
        where active.endpoint is not null
    ),
    known as (
        (select endpoint from kept limit $1)
        union
        (select endpoint from active limit $1)
        union
        select endpoint
        from idempotent_webhook.kept_endpoints
        where paused_at is not null or served_at > now() - interval '1 day'
        union
        select endpoint from idempotent_webhook.redelivery_windows
        union
        select endpoint from idempotent_webhook.reconciliations
    )
    select endpoint
    from known
    where endpoint is not null
    order by endpoint
    limit $1
";

/// The endpoints that the viewer may see, ordered by name. If the application has limited the viewer to some endpoints,
/// all of these count as known.
pub(super) async fn endpoints(
    connection: &mut PgConnection,
    access: &Access,
) -> sqlx::Result<Vec<String>> {
    if let Some(endpoints) = access.endpoints() {
        return Ok(endpoints.to_vec());
    }
    sqlx::query_scalar(ENDPOINTS)
        .bind(MAX_ENDPOINTS as i64)
        .fetch_all(connection)
        .await
}

/// Whether an endpoint occurs in any of the tables that `ENDPOINTS` reads.
const IS_ENDPOINT: &str = "
    select exists (
        select from idempotent_webhook.kept_deliveries where endpoint = $1
        union all
        select from idempotent_webhook.activity where endpoint = $1
        union all
        select from idempotent_webhook.kept_endpoints where endpoint = $1
        union all
        select from idempotent_webhook.redelivery_windows where endpoint = $1
        union all
        select from idempotent_webhook.reconciliations where endpoint = $1
    )
";

/// Whether an endpoint exists in the database, so that an action could change something.
pub(super) async fn is_endpoint(connection: &mut PgConnection, name: &str) -> sqlx::Result<bool> {
    sqlx::query_scalar(IS_ENDPOINT)
        .bind(name)
        .fetch_one(connection)
        .await
}

/// The tenants of deliveries. For a kept delivery, this is the tenant's name, even if the tenant is not part of the
/// key.
const TENANTS: &str = "
    select coalesce(kept.tenant_name, wanted.tenant)
    from unnest($1::text[], $2::text[], $3::text[]) as wanted (endpoint, tenant, delivery_id)
    left join idempotent_webhook.kept_deliveries as kept using (endpoint, tenant, delivery_id)
";

/// Whether the operator may see all of these deliveries. An operator who may see only some tenants may not see
/// deliveries whose tenant is not known.
pub(super) async fn may_see(
    connection: &mut PgConnection,
    access: &Access,
    keys: &[Key],
) -> sqlx::Result<bool> {
    if !keys.iter().all(|key| access.sees_endpoint(&key.endpoint)) {
        return Ok(false);
    }
    if access.tenants().is_none() {
        return Ok(true);
    }
    let [endpoints, tenants, ids] = columns(keys);
    let tenants: Vec<String> = sqlx::query_scalar(TENANTS)
        .bind(endpoints)
        .bind(tenants)
        .bind(ids)
        .fetch_all(connection)
        .await?;
    Ok(tenants.iter().all(|tenant| access.sees_tenant(tenant)))
}

/// Splits keys into their endpoints, tenants and ids, so that each column can be bound as one value of a statement.
pub(super) fn columns<'a>(keys: impl IntoIterator<Item = &'a Key>) -> [Vec<&'a str>; 3] {
    let mut columns = [Vec::new(), Vec::new(), Vec::new()];
    let [endpoints, tenants, ids] = &mut columns;
    for key in keys {
        endpoints.push(&*key.endpoint);
        tenants.push(&*key.tenant);
        ids.push(&*key.id);
    }
    columns
}

/// Refuses access to readers who may see only some tenants, because numbers are not counted by tenant.
pub(super) fn not_by_tenant(access: &Access) -> Result<(), PageError> {
    const ALL_TENANTS: PageError =
        PageError::forbidden("This page is about all tenants, and you may see only some of them.");
    access.tenants().map_or(Ok(()), |_| Err(ALL_TENANTS))
}

/// The database's current time, in Unix seconds.
pub(super) async fn now(connection: &mut PgConnection) -> sqlx::Result<f64> {
    let row = sqlx::query("select extract(epoch from now())::float8")
        .fetch_one(connection)
        .await?;
    row.try_get(0)
}

/// The key of a delivery.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Key {
    pub(super) endpoint: String,
    /// Empty unless the tenant is part of the key.
    pub(super) tenant: String,
    pub(super) id: String,
}

impl Key {
    pub(super) fn from(params: &super::params::Params) -> Option<Self> {
        Some(Self {
            endpoint: params.get("endpoint")?.to_owned(),
            tenant: params.get("tenant").unwrap_or_default().to_owned(),
            id: params.get("id")?.to_owned(),
        })
    }

    /// Reads the key from the columns `endpoint`, `tenant` and `delivery_id`.
    pub(super) fn read(row: &PgRow) -> sqlx::Result<Self> {
        Ok(Self {
            endpoint: row.try_get("endpoint")?,
            tenant: row.try_get("tenant")?,
            id: row.try_get("delivery_id")?,
        })
    }

    pub(super) fn tenant(&self) -> Option<&str> {
        (!self.tenant.is_empty()).then_some(&*self.tenant)
    }

    /// A link to the delivery's page, or to another page about the delivery.
    pub(super) fn link(&self, page: &'static str) -> super::params::Link {
        super::params::Link::to(page)
            .with("endpoint", &self.endpoint)
            .with_some("tenant", self.tenant())
            .with("id", &self.id)
    }

    /// The key as form fields.
    pub(super) fn fields(&self) -> [(&'static str, Option<&str>); 3] {
        [
            ("endpoint", Some(&self.endpoint)),
            ("tenant", self.tenant()),
            ("id", Some(&self.id)),
        ]
    }
}

/// A delivery in a list.
#[derive(Debug, Serialize)]
pub(super) struct Delivery {
    #[serde(flatten)]
    pub(super) key: Key,
    /// The tenant's name, if it is known.
    #[serde(rename = "tenant_name")]
    pub(super) tenant: Option<String>,
    pub(super) event_type: Option<String>,
    pub(super) state: String,
    pub(super) attempts: Option<i32>,
    pub(super) status: Option<i16>,
    pub(super) reason: Option<String>,
    pub(super) last_failed: Option<Timestamp>,
    pub(super) next_attempt: Option<Timestamp>,
    pub(super) processed: Option<Timestamp>,
    /// For a processed delivery: whether its request is kept, so that the delivery can run again.
    pub(super) has_request: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_and_cut_off() {
        for (counted, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (10_000, "10,000"),
            (10_001, "10,000+"),
        ] {
            assert_eq!(Count::up_to(10_000, counted).to_string(), expected);
        }
        let mut sum = Count::up_to(100, 101);
        sum += Count::up_to(100, 17);
        assert_eq!(sum.to_string(), "117+");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(-1_234), "-1,234");
    }
}
