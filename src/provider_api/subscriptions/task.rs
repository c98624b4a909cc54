//! The background task: one process compares on behalf of all, and logs what has changed.

use std::sync::Arc;
use std::time::Duration;

use super::check::Subscriptions;
use super::position::Position;
use super::source::SubscriptionSource;
use crate::recovery::{Begin, Place};
use crate::tasks_and_errors::background::Background;
use crate::tasks_and_errors::random::random_fraction;
use crate::tasks_and_errors::stop_signal::Stop;
use crate::transaction::{DatabaseError, Environment};

/// The shortest time between two checks whether this process has the turn: the right to compare.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// The longest time between two checks. A process that was killed during its turn must be replaced soon, and each check
/// updates this process's metric with what another process may have found.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How long a turn may take, which is longer than a comparison takes.
const LONGEST_TURN: Duration = Duration::from_secs(3 * 60);

/// The largest random addition to a time, as a fraction of that time.
const JITTER: f64 = 0.1;

/// The longest wait before the provider is asked again after a failure.
const RETRY: Duration = Duration::from_secs(60 * 60);

impl<S: SubscriptionSource> Subscriptions<S> {
    /// Starts the background task on the current tokio runtime. It runs until [`SubscriptionsTask::stop`] or the end of
    /// the runtime.
    ///
    /// Spawn the task in each process: only one process compares at a time. Each difference that is an error is logged
    /// at WARN when it is first found, and at INFO when it is gone. While there is such a difference, the endpoint has
    /// the problem [`SubscriptionDiffers`](crate::recovery::Problem::SubscriptionDiffers), provided that it has a
    /// [`Recovery`](crate::Recovery).
    ///
    /// If the provider cannot be asked, this is logged at WARN, and the provider is asked again after an hour at most.
    /// If it could not be asked for a day, the endpoint has the problem
    /// [`NotCompared`](crate::recovery::Problem::NotCompared).
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn spawn(self) -> SubscriptionsTask {
        let environment = self.settings.store.environment().clone();
        SubscriptionsTask(self.begin(&environment))
    }

    async fn run(self: Arc<Self>, mut stop: Stop) {
        let position = Position::new(
            &self.settings,
            self.expected.address(),
            self.name.clone(),
            self.every.mul_f64(1.0 + JITTER),
        );
        loop {
            stop.takes(LONGEST_TURN);
            let Some(turn) = stop.or(self.turn(&position)).await else {
                // The comparison is cancelled. Another process compares once this turn has expired.
                return;
            };
            let wait = turn.unwrap_or_else(|error| {
                tracing::warn!(
                    endpoint = position.list().endpoint,
                    source = position.list().source,
                    %error,
                    "the provider's subscription could not be compared, trying again"
                );
                LONGEST_WAIT
            });
            let wait = jittered(wait.clamp(SHORTEST_WAIT, LONGEST_WAIT));
            if stop.rest(wait).await.is_none() {
                return;
            }
        }
    }

    /// Compares if this process gets the turn. Returns how long to wait until the next check.
    async fn turn(&self, position: &Position) -> Result<Duration, DatabaseError> {
        // If the database belongs to another environment, no provider is asked.
        if !position.store.is_home_or_unnamed().await? {
            return Ok(LONGEST_WAIT);
        }
        let metrics = &self.settings.verification.metrics;
        let look = position.look().await?;
        metrics.subscription_differences(look.differences);
        if !look.wait.is_zero() {
            return Ok(look.wait);
        }
        let Some(before) = position.begin().await? else {
            return Ok(SHORTEST_WAIT);
        };
        let next = jittered(self.every);
        let (endpoint, source) = (&*position.list().endpoint, &*position.list().source);
        let report = match self.compare().await {
            Ok(report) => report,
            Err(error) => {
                tracing::warn!(
                    endpoint,
                    source,
                    %error,
                    "the subscription could not be compared; earlier findings stay"
                );
                // Try again soon: otherwise, a single failure would be reported for as long as `every`.
                let next = jittered(self.every.min(RETRY));
                position.end(next, Err(&error.to_string())).await?;
                return Ok(next);
            }
        };
        let found: Vec<String> = report.errors().map(ToString::to_string).collect();
        if !position.end(next, Ok(&found)).await? {
            return Ok(SHORTEST_WAIT);
        }
        metrics.subscription_differences(position.look().await?.differences);
        for difference in found.iter().filter(|one| !before.contains(one)) {
            tracing::warn!(endpoint, source, difference, "webhook subscription differs");
        }
        for difference in before.iter().filter(|one| !found.contains(one)) {
            tracing::info!(
                endpoint,
                source,
                difference,
                "webhook subscription no longer differs"
            );
        }
        Ok(next)
    }
}

impl<S: SubscriptionSource> Begin for Subscriptions<S> {
    #[expect(private_interfaces, reason = "nobody outside can call it")]
    fn begin(mut self, environment: &Environment) -> Background {
        self.settings.store.set_environment(environment);
        let subscriptions = Arc::new(self);
        Background::spawn("subscriptions", move |stop| subscriptions.clone().run(stop))
    }

    fn place(&self) -> Option<Place> {
        Some(Place {
            endpoint: self.settings.verification.endpoint.clone(),
            path: self.expected.path().to_owned(),
        })
    }
}

/// Adds up to a tenth, so that many processes do not ask at once.
fn jittered(time: Duration) -> Duration {
    time.mul_f64(1.0 + JITTER * random_fraction())
}

/// The handle of running [`Subscriptions`].
#[derive(Debug)]
pub struct SubscriptionsTask(Background);

impl SubscriptionsTask {
    /// Stops the task. A comparison in progress is cancelled, and another process makes it within some minutes.
    pub async fn stop(self) {
        self.0.stop().await;
    }
}
