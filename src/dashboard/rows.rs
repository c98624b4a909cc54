//! What several pages read of the database.

use std::fmt;

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

/// What is counted at most.
const LARGE: i64 = 10_000;

/// How many endpoints the pages know of at most.
const MAX_ENDPOINTS: i64 = 500;

/// How many rows there are, as far as they were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count(pub(super) i64);

impl Count {
    pub(super) fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count) = self;
        if *count > LARGE {
            return f.write_str(&(grouped(LARGE) + "+"));
        }
        f.write_str(&grouped(*count))
    }
}

/// With a comma for each thousand.
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

/// How many rows of `kept_deliveries` there are that meet a condition, up to 10,001.
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
                limit 10001
            ) as counted"
        )
    };
}
pub(super) use count_kept;

/// The names of endpoints, from wherever they are known. Of the large tables each name is looked up
/// in the index, one after the other, however many rows it has.
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
    )
    select endpoint
    from known
    where endpoint is not null
    order by endpoint
    limit $1
";

/// The endpoints that are known, by name.
pub(super) async fn endpoints(connection: &mut PgConnection) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar(ENDPOINTS)
        .bind(MAX_ENDPOINTS)
        .fetch_all(connection)
        .await
}

/// The time of the database, in Unix seconds.
pub(super) async fn now(connection: &mut PgConnection) -> sqlx::Result<f64> {
    let row = sqlx::query("select extract(epoch from now())::float8")
        .fetch_one(connection)
        .await?;
    row.try_get(0)
}

/// The key of a delivery.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) endpoint: String,
    /// Empty unless the tenant is part of the key.
    pub(super) tenant: String,
    pub(super) id: String,
}

impl Key {
    pub(super) fn of(params: &super::params::Params) -> Option<Self> {
        Some(Self {
            endpoint: params.get("endpoint")?.to_owned(),
            tenant: params.get("tenant").unwrap_or_default().to_owned(),
            id: params.get("id")?.to_owned(),
        })
    }

    /// From the columns of the same names.
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

    /// The page of the delivery, or another one about it.
    pub(super) fn link(&self, page: &'static str) -> super::params::Link {
        super::params::Link::to(page)
            .with("endpoint", &self.endpoint)
            .with_some("tenant", self.tenant())
            .with("id", &self.id)
    }

    /// As the fields of a form.
    pub(super) fn fields(&self) -> [(&'static str, Option<&str>); 3] {
        [
            ("endpoint", Some(&self.endpoint)),
            ("tenant", self.tenant()),
            ("id", Some(&self.id)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_and_cut_off() {
        for (count, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (10_000, "10,000"),
            (10_001, "10,000+"),
        ] {
            assert_eq!(Count(count).to_string(), expected);
        }
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(-1_234), "-1,234");
    }
}
