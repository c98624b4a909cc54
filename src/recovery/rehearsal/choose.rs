//! The choice of deliveries to rehearse.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::SystemTime;

use sqlx::PgPool;

use super::settings::Rehearsal;
use crate::recovery::KeptState;
use crate::recovery::operator::{Of, list};

const PAGE: u32 = 1000;

/// A kept delivery, by its key.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Chosen {
    /// First, so that the newest one is the least.
    received_at: Reverse<SystemTime>,
    pub(super) tenant: String,
    pub(super) delivery_id: String,
}

/// The newest deliveries of an endpoint, the newest first. No more than the limit are held at any time.
pub(super) async fn newest(
    pool: &PgPool,
    endpoint: &str,
    rehearsal: &Rehearsal,
) -> sqlx::Result<BTreeSet<Chosen>> {
    let of = Of {
        endpoint,
        tenant: None,
    };
    let mut chosen = BTreeSet::new();
    for filter in rehearsal.filters() {
        let mut page = list(pool, of, &filter, None, PAGE).await?;
        while let Some(last) = page.last() {
            // The request of a recorded one is not there.
            let can_run = page.iter().filter(|kept| kept.state != KeptState::Recorded);
            for kept in can_run {
                chosen.insert(Chosen {
                    received_at: Reverse(kept.first_received_at),
                    tenant: kept.key_tenant().to_owned(),
                    delivery_id: kept.delivery_id.clone(),
                });
                if chosen.len() > rehearsal.limit {
                    chosen.pop_last();
                }
            }
            page = list(pool, of, &filter, Some(last), PAGE).await?;
        }
    }
    Ok(chosen)
}
