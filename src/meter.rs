//! What is counted and measured: on the facade of the crate `metrics` with the feature of
//! that name, without it nothing.
//!
//! All labels are bounded. Endpoints and providers are those that the application has
//! configured, and the rest are names of this crate: never an id, never a text of a
//! sender. The front page of the documentation lists them.

use std::sync::Arc;
use std::time::Duration;

/// What is measured of a delivery.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stage {
    Claim,
    Handler,
    Commit,
}

/// Measures one layer.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "metrics"),
    expect(dead_code, reason = "they only label metrics")
)]
pub(crate) struct Meter {
    endpoint: Arc<str>,
    provider: Arc<str>,
}

impl Meter {
    pub(crate) fn new(endpoint: Arc<str>, provider: Arc<str>) -> Self {
        Self { endpoint, provider }
    }
}

#[cfg(feature = "metrics")]
mod facade {
    use metrics::{Label, counter, gauge, histogram};

    use super::{Duration, Meter, Stage};

    impl Meter {
        fn labels<const N: usize>(&self, further: [Label; N]) -> Vec<Label> {
            let mut labels = vec![
                Label::new("endpoint", self.endpoint.clone()),
                Label::new("provider", self.provider.clone()),
            ];
            labels.extend(further);
            labels
        }

        /// What became of a request.
        pub(crate) fn outcome(&self, outcome: &'static str) {
            let labels = self.labels([Label::new("outcome", outcome)]);
            counter!("idempotent_webhook_deliveries_total", labels).increment(1);
        }

        /// Why a request was rejected.
        pub(crate) fn rejection(&self, reason: &'static str) {
            let labels = self.labels([Label::new("reason", reason)]);
            counter!("idempotent_webhook_rejections_total", labels).increment(1);
        }

        /// How long a stage took.
        pub(crate) fn duration(&self, stage: Stage, time: Duration) {
            let name = match stage {
                Stage::Claim => "idempotent_webhook_claim_seconds",
                Stage::Handler => "idempotent_webhook_handler_seconds",
                Stage::Commit => "idempotent_webhook_commit_seconds",
            };
            histogram!(name, self.labels([])).record(time);
        }

        /// One more waits for the same delivery, until the guard is dropped.
        pub(crate) fn waiting(&self) -> Waiting {
            let waiters = gauge!("idempotent_webhook_in_flight_waiters", self.labels([]));
            waiters.increment(1.0);
            Waiting(waiters)
        }
    }

    pub(crate) struct Waiting(metrics::Gauge);

    impl Drop for Waiting {
        fn drop(&mut self) {
            self.0.decrement(1.0);
        }
    }

    pub(crate) fn pruned(table: &'static str, rows: u64) {
        counter!("idempotent_webhook_pruned_rows_total", "table" => table).increment(rows);
    }
}

#[cfg(not(feature = "metrics"))]
mod facade {
    use super::{Duration, Meter, Stage};

    impl Meter {
        pub(crate) fn outcome(&self, _: &'static str) {}

        pub(crate) fn rejection(&self, _: &'static str) {}

        pub(crate) fn duration(&self, _: Stage, _: Duration) {}

        pub(crate) fn waiting(&self) -> Waiting {
            Waiting
        }
    }

    pub(crate) struct Waiting;

    pub(crate) fn pruned(_: &'static str, _: u64) {}
}

pub(crate) use facade::pruned;
