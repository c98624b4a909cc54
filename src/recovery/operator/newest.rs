//! The newest deliveries whose requests are there.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::SystemTime;

use sqlx::PgPool;

use super::{Filter, Of, list};
use crate::recovery::KeptState;

const PAGE: u32 = 1000;

/// A kept delivery, by its key.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Chosen {
    /// First, so that the newest one is the least.
    received_at: Reverse<SystemTime>,
    pub(crate) tenant: String,
    pub(crate) delivery_id: String,
}

/// The newest deliveries of any of these filters, the newest first. No more than the limit are held at any time.
pub(crate) async fn newest(
    pool: &PgPool,
    of: Of<'_>,
    filters: &[Filter],
    limit: usize,
) -> sqlx::Result<BTreeSet<Chosen>> {
    let mut chosen = BTreeSet::new();
    for filter in filters {
        let mut page = list(pool, of, filter, None, PAGE).await?;
        while let Some(last) = page.last() {
            // The request of a recorded one is not there.
            let has_request = page.iter().filter(|kept| kept.state != KeptState::Recorded);
            for kept in has_request {
                chosen.insert(Chosen {
                    received_at: Reverse(kept.first_received_at),
                    tenant: kept.key_tenant().to_owned(),
                    delivery_id: kept.delivery_id.clone(),
                });
                if chosen.len() > limit {
                    chosen.pop_last();
                }
            }
            page = list(pool, of, filter, Some(last), PAGE).await?;
        }
    }
    Ok(chosen)
}
