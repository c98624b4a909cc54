//! The layers that have joined a [`Recovery`](super::Recovery), which are waited for when it stops.

use std::sync::{Arc, Mutex, PoisonError};

use crate::activity::Activity;
use crate::in_flight::InFlight;

/// A layer, as far as it is waited for.
#[derive(Clone)]
pub(crate) struct JoinedLayer {
    pub(crate) endpoint: Arc<str>,
    pub(crate) in_flight: InFlight,
    pub(crate) activity: Option<Activity>,
}

impl JoinedLayer {
    /// Waits until nothing is in flight, and writes what was counted.
    pub(crate) async fn drained(&self) {
        self.in_flight.drained().await;
        if let Some(activity) = &self.activity
            && let Err(error) = activity.write().await
        {
            tracing::warn!(
                endpoint = &*self.endpoint,
                %error,
                "could not write the activity of a webhook endpoint"
            );
        }
    }
}

/// All of a recovery.
#[derive(Default)]
pub(super) struct JoinedLayers(Mutex<Vec<JoinedLayer>>);

impl JoinedLayers {
    pub(super) fn add(&self, layer: JoinedLayer) {
        self.lock().push(layer);
    }

    pub(super) fn all(&self) -> Vec<JoinedLayer> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<JoinedLayer>> {
        // Nothing panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
