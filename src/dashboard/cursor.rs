//! Keyset pages: where a page of a list ends, and how far it is searched.

use std::time::{Duration, Instant};

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{Postgres, Row};

use super::html::Timestamp;
use super::params::{Link, Params};
use super::rows::Key;

/// How many deliveries a page of a list has.
pub(super) const PAGE: usize = 50;

/// How many rows a page searches at first if no index has the filters.
const SEARCHED: usize = 10_000;

/// How long a page goes on searching.
const SEARCH: Duration = Duration::from_millis(100);

/// A search for a page, round by round: it first asks where the round ends, so no round reads more than it should.
pub(super) struct Search {
    began: Instant,
    /// How many are searched in each part of the list.
    pub(super) each: i64,
}

impl Search {
    /// A search in so many parts of the list, such as endpoints. The latest end of all parts counts. So most of the
    /// search in one part may be wasted if another part has many more rows.
    pub(super) fn new(parts: usize) -> Self {
        let each = SEARCHED / parts.max(1);
        Self {
            began: Instant::now(),
            each: i64::try_from(each).unwrap_or(1).max(1),
        }
    }

    /// Whether there is another round, which goes further.
    pub(super) fn goes_on(&mut self) -> bool {
        self.each = self.each.saturating_mul(2);
        self.began.elapsed() < SEARCH
    }
}

/// A place in a list, by time and key.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) struct Cursor {
    /// Unix seconds.
    pub(super) at: f64,
    pub(super) id: String,
    pub(super) tenant: String,
    pub(super) endpoint: String,
}

impl Cursor {
    pub(super) fn new(at: f64, key: &Key) -> Self {
        Self {
            at,
            id: key.id.clone(),
            tenant: key.tenant.clone(),
            endpoint: key.endpoint.clone(),
        }
    }

    pub(super) fn of(params: &Params) -> Option<Self> {
        Some(Self {
            at: params.seconds("after")?,
            id: params.get("after_id")?.to_owned(),
            tenant: params.get("after_tenant").unwrap_or_default().to_owned(),
            endpoint: params.get("after_endpoint")?.to_owned(),
        })
    }

    /// From the columns `at`, `delivery_id`, `tenant` and `endpoint`.
    pub(super) fn read(row: &PgRow) -> sqlx::Result<Self> {
        Ok(Self::new(row.try_get("at")?, &Key::read(row)?))
    }

    pub(super) fn add_to(&self, link: Link) -> Link {
        let tenant = Some(&self.tenant).filter(|tenant| !tenant.is_empty());
        link.with("after", self.at)
            .with("after_endpoint", &self.endpoint)
            .with_some("after_tenant", tenant)
            .with("after_id", &self.id)
    }
}

/// The next four values of a statement: time, id, tenant and endpoint.
pub(super) fn bind<'q>(
    cursor: Option<&'q Cursor>,
    query: Query<'q, Postgres, PgArguments>,
) -> Query<'q, Postgres, PgArguments> {
    query
        .bind(cursor.map(|cursor| cursor.at))
        .bind(cursor.map(|cursor| &cursor.id))
        .bind(cursor.map(|cursor| &cursor.tenant))
        .bind(cursor.map(|cursor| &cursor.endpoint))
}

/// A page of a list, and where the next one goes on.
pub(super) struct Listed<T> {
    pub(super) rows: Vec<T>,
    pub(super) next: Option<Cursor>,
    /// If the page ends because enough was searched.
    pub(super) searched_to: Option<Timestamp>,
}

impl<T> Listed<T> {
    /// From one row more than a page has, if there are so many, and the end of the search.
    pub(super) fn new(
        mut rows: Vec<T>,
        searched_to: Option<Cursor>,
        cursor: impl Fn(&T) -> Option<Cursor>,
    ) -> Self {
        let is_full = rows.len() > PAGE;
        rows.truncate(PAGE);
        let searched_to = searched_to.filter(|_| !is_full);
        Self {
            searched_to: searched_to.as_ref().map(|cursor| Timestamp(cursor.at)),
            next: match is_full {
                true => rows.last().and_then(cursor),
                false => searched_to,
            },
            rows,
        }
    }
}
