//! Counts what happens in a layer, both in the metrics and in the activity in Postgres. The number of event type names
//! is limited in memory by `numbers.rs`, and in the tables by `statements.rs`.

use std::time::Duration;

use crate::activity::{Activity, Source};
use crate::metrics::outcome::Outcome;
use crate::metrics::{Metrics, Stage, name_of_place};
use crate::provider::delivery::VerifiedDelivery;

/// Where the counts of a layer go. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) metrics: Metrics,
    /// `None` if the activity is switched off.
    pub(crate) activity: Option<Activity>,
}

impl Counts {
    /// The outcome of a request of the provider.
    pub(crate) fn request(&self, outcome: Outcome) {
        if !outcome.is_of_the_provider() {
            return;
        }
        self.metrics.outcome(outcome);
        self.add(Source::Request, outcome.as_str());
    }

    /// The outcome of an attempt at a kept delivery, which is not a request.
    pub(crate) fn attempt(&self, outcome: Outcome) {
        self.metrics.attempt(outcome);
        self.add(Source::Recovery, outcome.as_str());
    }

    /// A delivery is dead: it runs again only if an operator retries it.
    pub(crate) fn dead(&self) {
        self.metrics.dead();
        self.add(Source::Recovery, "dead");
    }

    /// A delivery never arrived, as the provider's list of events shows.
    pub(crate) fn missed(&self) {
        self.metrics.missed();
        self.add(Source::Reconciliation, "missed");
    }

    /// A call of the handler.
    pub(crate) fn handler(&self, took: Duration, timeout: Duration) {
        self.metrics.duration(Stage::Handler, took);
        if let Some(activity) = &self.activity {
            // A handler that timed out counts with the timeout, and not with the time until the timeout was noticed.
            activity.count_handler(took.min(timeout));
        }
    }

    /// A request whose event type has a handler, by the handler's name in the table.
    pub(crate) fn handled_type(&self, name: &str) {
        if let Some(activity) = &self.activity {
            activity.see_handled(name);
        }
    }

    /// A request with an authentic delivery, whose event may be ignored.
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
