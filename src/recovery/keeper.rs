//! Keeps requests for a layer before their handlers run, and decides what happens to a kept row when its delivery is
//! sent again. Several layers may share a `Keep`, but each layer has its own keeper.

use std::sync::Arc;

use super::acceptance_writer::{self, Acceptances};
use super::keep_settings::{Keep, What};
use super::kept::{Acceptance, Accepted};
use super::quota::Quota;
use super::served_endpoints::Served;
use crate::transaction::{DatabaseError, Store};

/// The part of a layer that keeps deliveries. Clones of the layer share it.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) settings: Keep,
    /// The endpoint as recovery knows it.
    pub(crate) served: Arc<Served>,
    pub(crate) quota: Quota,
    acceptances: Acceptances,
}

impl Keeper {
    pub(crate) fn new(settings: Keep, served: Arc<Served>) -> Self {
        Self {
            quota: Quota::new(settings.quota),
            settings,
            served,
            acceptances: Acceptances::default(),
        }
    }

    /// Keeps a request before its handler runs. With [`Keep::accepted`], a delivery that was kept before becomes due
    /// now.
    pub(crate) async fn accept(
        &self,
        store: &Store,
        acceptance: Acceptance,
    ) -> Result<Accepted, DatabaseError> {
        if self.settings.what != What::Accepted {
            return acceptance_writer::write_now(store, acceptance).await;
        }
        let again = acceptance.clone();
        let accepted = self.acceptances.write(store, acceptance).await?;
        if !matches!(accepted, Accepted::Known) {
            return Ok(accepted);
        }
        let accepted = store.resend(&again).await?;
        if matches!(accepted, Accepted::Known) {
            // The delivery may have been processed, and its row deleted, before the resend. If so, the resend has
            // created the row again.
            store.resolve(&again.delivery).await?;
        }
        self.settings.recovery.notify();
        Ok(accepted)
    }

    /// Keeps requests that are made from a provider's list of events. A delivery that was kept before is left
    /// unchanged.
    pub(crate) async fn accept_listed(
        &self,
        store: &Store,
        group: &[Acceptance],
    ) -> Result<Vec<Accepted>, DatabaseError> {
        acceptance_writer::write_group(store, group).await
    }

    /// Notes that a request has been kept. `begins` says whether its attempt starts now. If not, recovery is notified.
    pub(crate) fn note_kept(&self, store: &Store, endpoint: &Arc<str>, begins: bool) {
        self.quota.note_kept(store, endpoint);
        self.settings.recovery.note_kept(endpoint);
        if !begins {
            self.settings.recovery.notify();
        }
    }
}
