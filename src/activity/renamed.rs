//! Warns if a new endpoint may be an existing endpoint under a new name: the database has another endpoint of the same
//! provider, and no layer of the process serves it.

use sqlx::Row;
use sqlx::postgres::PgRow;

use super::endpoint_name::served;
use super::statements::of_its_provider;
use crate::transaction::{DatabaseError, Store};

/// Whether the reported settings show that no process has served this endpoint before.
pub(super) fn is_new(told: &[PgRow], endpoint: &str) -> bool {
    told.iter().any(|row| {
        row.try_get("endpoint")
            .is_ok_and(|told: &str| told == endpoint)
            && row.try_get("is_new").unwrap_or(false)
    })
}

/// Warns if the new endpoint may be a renamed one. This is never certain, because another application may serve the
/// other endpoint.
pub(super) async fn warn_if_renamed(endpoint: &str, store: &Store) -> Result<(), DatabaseError> {
    let served = served(store.pool());
    // If the layer of this endpoint was dropped, the layer of the other endpoint may have been dropped as well.
    if !served.iter().any(|served| served == endpoint) {
        return Ok(());
    }
    let rows = store.run(|| of_its_provider(endpoint, &served)).await?;
    let not_served = rows.iter().map(|row| row.try_get::<String, _>("endpoint"));
    let not_served = not_served.collect::<Result<Vec<_>, _>>()?;
    if !not_served.is_empty() {
        tracing::warn!(
            endpoint,
            not_served = not_served.join(", "),
            "this webhook endpoint is new, and its provider has another one that no layer of this process serves: was \
             it renamed? A delivery that was processed under the other name is processed again if it is sent again \
             (the page on handling says how to rename an endpoint)"
        );
    }
    Ok(())
}
