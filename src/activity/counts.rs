//! Counts what happens in a layer, both in the metrics and in the activity in Postgres. `numbers.rs` limits the number
//! of event type names in memory, and `statements.rs` limits it in the tables.

use std::time::Duration;

use crate::activity::{Activity, Source};
use crate::metrics::outcome::Outcome;
use crate::metrics::{Metrics, Stage, name_of_place};
use crate::provider::delivery::VerifiedDelivery;

/// The destinations of a layer's counts. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) metrics: Metrics,
    /// `None` if the activity is switched off.
    pub(crate) activity: Option<Activity>,
}

impl Counts {
    /// Counts the outcome of a provider's request.
    pub(crate) fn request(&self, outcome: Outcome) {
        if !outcome.is_of_the_provider() {
            return;
        }
        self.metrics.outcome(outcome);
        self.add(Source::Request, outcome.as_str());
    }

    /// Counts the outcome of an attempt at a kept delivery. This attempt is not a request of the provider.
    pub(crate) fn attempt(&self, outcome: Outcome) {
        self.metrics.attempt(outcome);
        self.add(Source::Recovery, outcome.as_str());
    }

    /// Counts a dead delivery. It runs again only if an operator retries it.
    pub(crate) fn dead(&self) {
        self.metrics.dead();
        self.add(Source::Recovery, "dead");
    }

    /// Counts a delivery that never arrived, as the provider's list of events shows.
    pub(crate) fn missed(&self) {
        self.metrics.missed();
        self.add(Source::Reconciliation, "missed");
    }

    /// Counts a call of the handler.
    pub(crate) fn handler(&self, took: Duration, timeout: Duration) {
        self.metrics.duration(Stage::Handler, took);
        if let Some(activity) = &self.activity {
            // A handler that timed out counts with the timeout, and not with the time until the timeout was noticed.
            activity.count_handler(took.min(timeout));
        }
    }

    /// Records a request whose event type has a handler. `name` is the handler's name in the layer's table of event
    /// types.
    pub(crate) fn handled_type(&self, name: &str) {
        if let Some(activity) = &self.activity {
            activity.see_handled(name);
        }
    }

    /// Counts an authentic delivery, even if its event is ignored.
    pub(crate) fn authentic(&self, delivery: &VerifiedDelivery) {
        if let Some(place) = delivery.secret {
            self.add(Source::Secret, name_of_place(place));
        }
        if let (Some(version), Some(activity)) = (&delivery.other_version, &self.activity) {
            activity.count_version(version);
        }
    }

    fn add(&self, source: Source, outcome: &'static str) {
        if let Some(activity) = &self.activity {
            activity.count(source, outcome);
        }
    }
}
