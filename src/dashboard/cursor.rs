//! Keyset pagination: where a page of a list ends, and how far it has searched. If no index covers the filters of a
//! list, a page reads the list in *rounds*: each round reads a limited number of rows, and keeps those that match.

use std::time::{Duration, Instant};

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{Postgres, Row};

use super::html::Timestamp;
use super::params::{Link, Params};
use super::rows::Key;

/// How many deliveries a page of a list shows.
pub(super) const PAGE: usize = 50;

/// How many rows the first round of a search reads, if no index covers the filters.
const SEARCHED: usize = 10_000;

/// How long a page continues to search.
const SEARCH: Duration = Duration::from_millis(100);

/// A search for the rows of a page, in rounds. Before a round reads its rows, a query finds the position at which the
/// round must end, so that the round does not read more rows than intended.
pub(super) struct Search {
    began: Instant,
    /// How many rows a round reads in each part of the list.
    pub(super) each: i64,
}

impl Search {
    /// Starts a search in this many parts of the list, such as endpoints. A list goes back in time, and each part
    /// reaches the limit of rows at a different time. The round ends at the most recent of these times, because all
    /// parts are complete only down to that time. If one part has many more rows than another, most of the search in
    /// the other part may therefore be wasted.
    pub(super) fn new(parts: usize) -> Self {
        let each = SEARCHED / parts.max(1);
        Self {
            began: Instant::now(),
            each: i64::try_from(each).unwrap_or(1).max(1),
        }
    }

    /// Whether there is time for another round. That round covers twice as many rows as the last round.
    pub(super) fn goes_on(&mut self) -> bool {
        self.each = self.each.saturating_mul(2);
        self.began.elapsed() < SEARCH
    }
}

/// A position in a list, by time and key.
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

    /// Reads a position from the columns `at`, `delivery_id`, `tenant` and `endpoint`.
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

/// Binds the next four values of a statement: time, id, tenant and endpoint.
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

/// A page of a list, and where the next page continues.
pub(super) struct Listed<T> {
    pub(super) rows: Vec<T>,
    pub(super) next: Option<Cursor>,
    /// How far the page has searched, if its time was up before it was full.
    pub(super) searched_to: Option<Timestamp>,
}

impl<T> Listed<T> {
    /// Creates a page from the rows and the position at which the search ended. If there is a next page, the rows
    /// include its first row.
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
