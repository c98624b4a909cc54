//! The layers that have joined a [`Recovery`](super::Recovery). The *watch* of the recovery, a background task
//! (`process_watch.rs`), covers them, and the recovery waits for them when it stops.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::activity::{Activity, IsWatched};
use crate::transaction::in_flight::InFlight;

/// A layer that has joined a recovery: its in-flight deliveries, for which a stop waits, and its counts, which the
/// watch writes.
#[derive(Clone)]
pub(crate) struct JoinedLayer {
    pub(crate) endpoint: Arc<str>,
    pub(crate) in_flight: InFlight,
    pub(crate) activity: Activity,
}

impl JoinedLayer {
    /// Waits until nothing is in flight, and writes the counts.
    pub(crate) async fn drained(&self) {
        self.in_flight.drained().await;
        if let Err(error) = self.activity.write().await {
            tracing::warn!(
                endpoint = &*self.endpoint,
                %error,
                "could not write the activity of a webhook endpoint"
            );
        }
    }
}

/// All layers of a recovery.
#[derive(Default)]
pub(super) struct JoinedLayers {
    layers: Mutex<Vec<JoinedLayer>>,
    is_watched: IsWatched,
}

impl JoinedLayers {
    /// Adds a layer, unless the layer or a clone of it has joined before. If a layer were listed twice, the watch would
    /// lock it, and then wait for its own lock.
    pub(super) fn add(&self, layer: JoinedLayer) {
        layer.activity.join(self.is_watched.clone());
        let mut layers = self.lock();
        if !layers
            .iter()
            .any(|known| known.in_flight.is_same(&layer.in_flight))
        {
            layers.push(layer);
        }
    }

    pub(super) fn all(&self) -> Vec<JoinedLayer> {
        self.lock().clone()
    }

    pub(super) fn activities(&self) -> Vec<Activity> {
        let layers = self.lock();
        layers.iter().map(|layer| layer.activity.clone()).collect()
    }

    /// Forgets layers that are gone, once all their counts are written.
    pub(super) fn forget_gone(&self) {
        self.lock().retain(|layer| !layer.activity.is_over());
    }

    /// Makes the watch of the recovery cover all layers until the result is dropped. After that, each layer has a watch
    /// of its own again.
    pub(super) fn watch(&self) -> Watch<'_> {
        self.is_watched.set(true);
        Watch(self)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<JoinedLayer>> {
        // Nothing panics while it holds the lock.
        self.layers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// While this exists, the watch of the recovery covers all its layers.
pub(super) struct Watch<'a>(&'a JoinedLayers);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.is_watched.set(false);
        for activity in self.0.activities() {
            activity.ensure_watched();
        }
    }
}
