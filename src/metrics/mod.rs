//! Counters, gauges and histograms on the facade of the crate `metrics`. Without the feature
//! `metrics` they do nothing.
//!
//! The labels are bounded: endpoints and providers as the application has configured them, names that this crate
//! defines, and at most a hundred tenants, all of which the application's lookup knows. Apart from the tenant, no label
//! contains anything that a sender chooses. The front page of the documentation lists the metrics and their labels.

pub(crate) mod outcome;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outcome::Outcome;

/// The maximum number of tenants of a layer that are counted by name.
const MAX_TENANTS: usize = 100;

/// The label of all other tenants.
const OTHER_TENANTS: &str = "*";

/// The labels for the positions of secrets.
const PLACES: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// The label for the position of a secret: 0 is the first secret, and all positions after 9 share `*`.
pub(crate) fn name_of_place(place: usize) -> &'static str {
    PLACES.get(place).copied().unwrap_or("*")
}

/// A stage whose duration is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stage {
    /// Before the claim, if the handler claims the delivery itself.
    BeforeClaim,
    Claim,
    Handler,
    Commit,
}

/// Measures how long a sender waits: from the time at which the sender signed the request until this value is dropped.
/// That happens when the answer is sent, or when the sender hangs up.
#[must_use = "it measures until it is dropped"]
pub(crate) struct SenderWait<'a> {
    pub(crate) metrics: &'a Metrics,
    pub(crate) signed_at: SystemTime,
}

impl Drop for SenderWait<'_> {
    fn drop(&mut self) {
        // The sender's clock may be ahead.
        let waited = SystemTime::now().duration_since(self.signed_at);
        self.metrics.sender_wait(waited.unwrap_or_default());
    }
}

/// The metrics of one layer.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "metrics"),
    expect(dead_code, reason = "they are the labels of metrics")
)]
pub(crate) struct Metrics {
    endpoint: Arc<str>,
    provider: Arc<str>,
    /// The time of the last authentic request, in Unix seconds.
    last_authentic: Arc<AtomicU64>,
    /// The tenants that have had a rejected request. From then on, their requests are counted.
    rejected_tenants: Arc<Mutex<BTreeSet<Arc<str>>>>,
}

impl Metrics {
    pub(crate) fn new(endpoint: Arc<str>, provider: Arc<str>) -> Self {
        describe();
        let metrics = Self {
            endpoint,
            provider,
            last_authentic: Arc::default(),
            rejected_tenants: Arc::default(),
        };
        metrics.start_at_zero();
        metrics
    }

    /// Records that a request was authentic just now.
    pub(crate) fn authentic_now(&self) {
        self.authentic(unix_now());
    }

    /// Records that a request was authentic at this time, in Unix seconds, perhaps in another process.
    pub(crate) fn authentic(&self, at: u64) {
        if self.last_authentic.fetch_max(at, Ordering::Relaxed) < at {
            self.last_authentic(at);
        }
    }

    /// Counts a request of a tenant that was not authentic.
    pub(crate) fn tenant_rejected(&self, tenant: &Arc<str>) {
        let mut known = self.rejected_tenants();
        let has_name = known.len() < MAX_TENANTS || known.contains(tenant);
        if has_name {
            known.insert(tenant.clone());
        }
        drop(known);
        let name = if has_name { tenant } else { OTHER_TENANTS };
        self.tenant_request(name, "rejected");
    }

    /// Counts an authentic request of a tenant that has had a rejected one, to show the share of rejected requests.
    pub(crate) fn tenant_authentic(&self, tenant: &str) {
        let is_known = self.rejected_tenants().contains(tenant);
        if is_known {
            self.tenant_request(tenant, "authentic");
        }
    }

    /// Sets the number of secrets. If there are several, verifications are counted per secret.
    pub(crate) fn has_secrets(&self, number: usize) {
        if number > 1 {
            for place in 0..number {
                self.verified_by(place, 0);
            }
        }
    }

    /// Counts a delivery that was verified by the secret at this position.
    pub(crate) fn verified_by_secret(&self, place: usize) {
        self.verified_by(place, 1);
    }

    fn rejected_tenants(&self) -> MutexGuard<'_, BTreeSet<Arc<str>>> {
        // Nothing panics while it holds the lock.
        self.rejected_tenants
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The current time in Unix seconds.
pub(crate) fn unix_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

#[cfg(feature = "metrics")]
mod facade {
    use metrics::{
        Counter, Label, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
        histogram,
    };

    use super::{Arc, Duration, Metrics, Outcome, Stage, name_of_place};

    const DELIVERIES: &str = "idempotent_webhook_deliveries_total";
    const REJECTIONS: &str = "idempotent_webhook_rejections_total";
    const TENANT_REQUESTS: &str = "idempotent_webhook_tenant_requests_total";
    const SENDER_WAIT: &str = "idempotent_webhook_sender_wait_seconds";
    const RESPONSE_DEADLINE: &str = "idempotent_webhook_response_deadline_seconds";
    const VERIFIED_BY: &str = "idempotent_webhook_verified_by_secret_total";
    const OTHER_VERSION: &str = "idempotent_webhook_other_version_total";
    const WAITERS: &str = "idempotent_webhook_in_flight_waiters";
    const RECOVERY: &str = "idempotent_webhook_recovery_attempts_total";
    const DEAD: &str = "idempotent_webhook_dead_total";
    const MISSED: &str = "idempotent_webhook_missed_total";
    const RECONCILIATION_FAILURES: &str = "idempotent_webhook_reconciliation_failures_total";
    const SUBSCRIPTION_DIFFERENCES: &str = "idempotent_webhook_subscription_differences";
    const OLDEST_DUE: &str = "idempotent_webhook_oldest_due_seconds";
    const FAILING: &str = "idempotent_webhook_failing_deliveries";
    const UNSERVED: &str = "idempotent_webhook_unserved_deliveries";
    const LAST_AUTHENTIC: &str = "idempotent_webhook_last_authentic_timestamp_seconds";
    const EXPECTED_EVERY: &str = "idempotent_webhook_expected_every_seconds";
    const EVENT_TYPES: &str = "idempotent_webhook_event_types";
    const OTHER_ENVIRONMENT: &str = "idempotent_webhook_other_environment";
    const PRUNED_ROWS: &str = "idempotent_webhook_pruned_rows_total";

    /// The outcome of an attempt that has reached no layer.
    const UNREACHED: &str = "unhandled";

    const REASONS: [&str; 22] = [
        "method_not_allowed",
        "missing_header",
        "malformed_header",
        "malformed_body",
        "no_public_url",
        "no_match",
        "other_algorithm",
        "feature_off",
        "key_not_fetched",
        "unknown_key",
        "certificate",
        "not_for_us",
        "too_old",
        "too_new",
        "no_tenant",
        "unknown_tenant",
        "unusable_secret",
        "no_timestamp",
        "no_usable_id",
        "body_too_large",
        "body_too_slow",
        "body_broken",
    ];

    impl Stage {
        fn metric(self) -> &'static str {
            match self {
                Self::BeforeClaim => "idempotent_webhook_before_claim_seconds",
                Self::Claim => "idempotent_webhook_claim_seconds",
                Self::Handler => "idempotent_webhook_handler_seconds",
                Self::Commit => "idempotent_webhook_commit_seconds",
            }
        }
    }

    /// Gives the recorder the descriptions of the metrics.
    pub(super) fn describe() {
        describe_counter!(DELIVERIES, Unit::Count, "Webhook requests by outcome");
        describe_counter!(
            REJECTIONS,
            Unit::Count,
            "Rejected webhook requests by reason"
        );
        describe_counter!(
            TENANT_REQUESTS,
            Unit::Count,
            "Requests of tenants that had a rejected request in this process, by result"
        );
        describe_counter!(
            VERIFIED_BY,
            Unit::Count,
            "Deliveries by the place of the secret that verified them, if there are several"
        );
        describe_counter!(
            OTHER_VERSION,
            Unit::Count,
            "Deliveries whose payload has another version than the expected one"
        );
        describe_counter!(
            RECOVERY,
            Unit::Count,
            "Attempts at kept deliveries by outcome"
        );
        describe_gauge!(
            OLDEST_DUE,
            Unit::Seconds,
            "How long the next kept delivery to run has been due"
        );
        describe_gauge!(
            FAILING,
            Unit::Count,
            "Deliveries that have failed and wait, by state"
        );
        describe_gauge!(
            UNSERVED,
            Unit::Count,
            "Due deliveries that no process recovers, counted up to 10,000"
        );
        describe_counter!(
            DEAD,
            Unit::Count,
            "Deliveries that have died, and wait for an operator"
        );
        describe_counter!(
            MISSED,
            Unit::Count,
            "Deliveries that never arrived, found in the provider's list of events"
        );
        describe_counter!(
            RECONCILIATION_FAILURES,
            Unit::Count,
            "Rounds of reconciliation that have failed, have left something out, or follow a gap"
        );
        describe_gauge!(
            SUBSCRIPTION_DIFFERENCES,
            Unit::Count,
            "Differences between the provider's subscription and the layer"
        );
        describe_gauge!(
            OTHER_ENVIRONMENT,
            Unit::Count,
            "Whether the database belongs to another environment than this process, which then runs nothing from it"
        );
        describe_counter!(PRUNED_ROWS, Unit::Count, "Rows that retention has deleted");
        describe_gauge!(
            LAST_AUTHENTIC,
            Unit::Seconds,
            "Unix time of the last authentic request of the provider"
        );
        describe_gauge!(
            EXPECTED_EVERY,
            Unit::Seconds,
            "Longest expected time between two authentic requests, as the application has set it"
        );
        describe_gauge!(
            EVENT_TYPES,
            Unit::Count,
            "Event types that are new or have stopped, by state"
        );
        describe_gauge!(
            WAITERS,
            Unit::Count,
            "Duplicates that wait for a delivery in flight in this process"
        );
        describe_histogram!(
            SENDER_WAIT,
            Unit::Seconds,
            "Time from the signing of a request to its answer, by the clocks of both sides; the sender's has whole \
             seconds"
        );
        describe_gauge!(
            RESPONSE_DEADLINE,
            Unit::Seconds,
            "How long the provider waits for an answer, if it is known"
        );
        for (stage, description) in [
            (
                Stage::BeforeClaim,
                "Time from the call of a handler to its late claim",
            ),
            (
                Stage::Claim,
                "Time to claim a delivery, with the wait for one in flight",
            ),
            (Stage::Handler, "Time that the handler took"),
            (Stage::Commit, "Time to commit a delivery"),
        ] {
            describe_histogram!(stage.metric(), Unit::Seconds, description);
        }
    }

    impl Metrics {
        fn labels<const N: usize>(&self, further: [Label; N]) -> Vec<Label> {
            let mut labels = vec![
                Label::new("endpoint", self.endpoint.clone()),
                Label::new("provider", self.provider.clone()),
            ];
            labels.extend(further);
            labels
        }

        /// Makes the counters known before the first event, because a query for the increase of a counter does not see
        /// the event that creates the counter.
        pub(super) fn start_at_zero(&self) {
            for outcome in Outcome::ALL {
                self.outcomes(DELIVERIES, outcome.as_str()).increment(0);
            }
            for reason in REASONS {
                self.counter(REJECTIONS, [Label::new("reason", reason)])
                    .increment(0);
            }
            for outcome in Outcome::ALL.into_iter().filter(|one| one.is_of_attempts()) {
                self.outcomes(RECOVERY, outcome.as_str()).increment(0);
            }
            self.outcomes(RECOVERY, UNREACHED).increment(0);
            for name in [DEAD, MISSED, RECONCILIATION_FAILURES] {
                self.counter(name, []).increment(0);
            }
        }

        /// A counter, which is created if it does not exist yet.
        fn counter<const N: usize>(&self, name: &'static str, further: [Label; N]) -> Counter {
            counter!(name, self.labels(further))
        }

        fn outcomes(&self, name: &'static str, outcome: &'static str) -> Counter {
            self.counter(name, [Label::new("outcome", outcome)])
        }

        pub(crate) fn outcome(&self, outcome: Outcome) {
            debug_assert!(Outcome::ALL.contains(&outcome), "{outcome} is not listed");
            self.outcomes(DELIVERIES, outcome.as_str()).increment(1);
        }

        pub(super) fn last_authentic(&self, at: u64) {
            gauge!(LAST_AUTHENTIC, self.labels([])).set(at as f64);
        }

        pub(crate) fn expected_every(&self, time: Duration) {
            gauge!(EXPECTED_EVERY, self.labels([])).set(time.as_secs_f64());
        }

        /// Sets how many event types are in a state: `new` or `stopped`.
        pub(crate) fn event_types(&self, state: &'static str, count: i64) {
            let labels = self.labels([Label::new("state", state)]);
            gauge!(EVENT_TYPES, labels).set(count as f64);
        }

        /// Counts a rejected request by its reason.
        pub(crate) fn rejection(&self, reason: &'static str) {
            debug_assert!(REASONS.contains(&reason), "{reason} is not listed");
            let counter = self.counter(REJECTIONS, [Label::new("reason", reason)]);
            counter.increment(1);
        }

        pub(super) fn tenant_request(&self, tenant: &str, result: &'static str) {
            let tenant = Label::new("tenant", tenant.to_owned());
            let counter = self.counter(TENANT_REQUESTS, [tenant, Label::new("result", result)]);
            counter.increment(1);
        }

        pub(super) fn verified_by(&self, place: usize, count: u64) {
            let place = Label::new("secret", name_of_place(place));
            self.counter(VERIFIED_BY, [place]).increment(count);
        }

        pub(crate) fn duration(&self, stage: Stage, time: Duration) {
            histogram!(stage.metric(), self.labels([])).record(time);
        }

        pub(crate) fn other_version(&self, count: u64) {
            self.counter(OTHER_VERSION, []).increment(count);
        }

        pub(crate) fn sender_wait(&self, time: Duration) {
            histogram!(SENDER_WAIT, self.labels([])).record(time);
        }

        pub(crate) fn response_deadline(&self, deadline: Duration) {
            gauge!(RESPONSE_DEADLINE, self.labels([])).set(deadline.as_secs_f64());
        }

        /// Counts an attempt at a kept delivery by its outcome.
        pub(crate) fn attempt(&self, outcome: Outcome) {
            debug_assert!(outcome.is_of_attempts(), "{outcome} is not listed");
            self.outcomes(RECOVERY, outcome.as_str()).increment(1);
        }

        /// Counts an attempt that has reached no layer.
        pub(crate) fn unreached(&self) {
            self.outcomes(RECOVERY, UNREACHED).increment(1);
        }

        pub(crate) fn dead(&self) {
            self.counter(DEAD, []).increment(1);
        }

        pub(crate) fn missed(&self) {
            self.counter(MISSED, []).increment(1);
        }

        pub(crate) fn reconciliation_failed(&self) {
            self.counter(RECONCILIATION_FAILURES, []).increment(1);
        }

        /// Sets how many differences the last comparison found. Any process may have made that comparison.
        pub(crate) fn subscription_differences(&self, count: i64) {
            gauge!(SUBSCRIPTION_DIFFERENCES, self.labels([])).set(count as f64);
        }

        /// Counts a waiting duplicate until the returned value is dropped.
        pub(crate) fn waiting(&self) -> Waiting {
            let waiters = gauge!(WAITERS, self.labels([]));
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

    /// Sets for how long the oldest due delivery has been due, or zero if none is due.
    pub(crate) fn oldest_due(endpoint: &Arc<str>, overdue: Duration) {
        gauge!(OLDEST_DUE, "endpoint" => endpoint.clone()).set(overdue.as_secs_f64());
    }

    /// Sets the number of an endpoint's deliveries that have failed and wait in one state.
    pub(crate) fn failing(endpoint: String, state: String, count: i64) {
        gauge!(FAILING, "endpoint" => endpoint, "state" => state).set(count as f64);
    }

    /// Sets the number of an endpoint's due deliveries that no process recovers.
    pub(crate) fn unserved(endpoint: &str, due: i64) {
        gauge!(UNSERVED, "endpoint" => endpoint.to_owned()).set(due as f64);
    }

    /// Sets whether the database belongs to another environment than this process.
    pub(crate) fn other_environment(database: &str, is_other: bool) {
        gauge!(OTHER_ENVIRONMENT, "database" => database.to_owned())
            .set(f64::from(u8::from(is_other)));
    }

    pub(crate) fn pruned(table: &'static str, rows: u64) {
        counter!(PRUNED_ROWS, "table" => table).increment(rows);
    }
}

#[cfg(not(feature = "metrics"))]
mod facade {
    use super::{Arc, Duration, Metrics, Outcome, Stage};

    pub(super) fn describe() {}

    impl Metrics {
        pub(super) fn start_at_zero(&self) {}

        pub(crate) fn outcome(&self, _: Outcome) {}

        pub(super) fn last_authentic(&self, _: u64) {}

        pub(crate) fn expected_every(&self, _: Duration) {}

        pub(crate) fn event_types(&self, _: &'static str, _: i64) {}

        pub(crate) fn rejection(&self, _: &'static str) {}

        pub(super) fn tenant_request(&self, _: &str, _: &'static str) {}

        pub(super) fn verified_by(&self, _: usize, _: u64) {}

        pub(crate) fn duration(&self, _: Stage, _: Duration) {}

        pub(crate) fn other_version(&self, _: u64) {}

        pub(crate) fn sender_wait(&self, _: Duration) {}

        pub(crate) fn response_deadline(&self, _: Duration) {}

        pub(crate) fn attempt(&self, _: Outcome) {}

        pub(crate) fn unreached(&self) {}

        pub(crate) fn dead(&self) {}

        pub(crate) fn missed(&self) {}

        pub(crate) fn reconciliation_failed(&self) {}

        pub(crate) fn subscription_differences(&self, _: i64) {}

        pub(crate) fn waiting(&self) -> Waiting {
            Waiting
        }
    }

    pub(crate) struct Waiting;

    pub(crate) fn oldest_due(_: &Arc<str>, _: Duration) {}

    pub(crate) fn failing(_: String, _: String, _: i64) {}

    pub(crate) fn unserved(_: &str, _: i64) {}

    pub(crate) fn other_environment(_: &str, _: bool) {}

    pub(crate) fn pruned(_: &'static str, _: u64) {}
}

use facade::describe;
pub(crate) use facade::{failing, oldest_due, other_environment, pruned, unserved};

#[cfg(test)]
mod tests {
    use super::BTreeSet;

    /// The names of metrics that follow this mark in a text.
    fn names(text: &str, mark: char) -> BTreeSet<&str> {
        let prefix = format!("{mark}idempotent_webhook_");
        let names = text.match_indices(&prefix).filter_map(|(at, _)| {
            let name = text.get(at..)?.strip_prefix(mark)?;
            name.split(['"', '`']).next()
        });
        names.collect()
    }

    #[test]
    fn the_front_page_lists_each_metric() {
        let (code, _) = include_str!("mod.rs")
            .split_once("mod tests")
            .unwrap_or_default();
        let (_, front_page) = include_str!("../lib.rs")
            .split_once("//! # Metrics")
            .unwrap_or_default();
        let made = names(code, '"');
        assert!(made.len() > 10, "{made:?}");
        assert_eq!(made, names(front_page, '`'));
    }
}
