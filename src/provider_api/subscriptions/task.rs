//! The background task: one process compares for all, and changes are logged.

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

/// The shortest time between two looks at the turn.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// The longest: another process may have been killed in its turn, and the gauge shows what any process has found.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Longer than a comparison takes.
const LONGEST_TURN: Duration = Duration::from_secs(3 * 60);

/// The most by which a time is longer, as a part of it.
const JITTER: f64 = 0.1;

/// The wait after the provider could not be asked.
const RETRY: Duration = Duration::from_secs(60 * 60);

impl<S: SubscriptionSource> Subscriptions<S> {
    /// Starts the background task on the current tokio runtime. It runs until [`SubscriptionsTask::stop`] or the end of
    /// the runtime.
    ///
    /// Spawn one in each process: one of them compares at a time. Each difference that is an error is logged at WARN when
    /// it is found first, and at INFO when it is over. While there is one, the endpoint has the problem
    /// [`SubscriptionDiffers`](crate::recovery::Problem::SubscriptionDiffers), if it has a
    /// [`Recovery`](crate::Recovery). A provider that cannot be asked is logged at WARN, and asked again after an hour
    /// at most. If it could not be asked for a day, the endpoint has the problem
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
                // Another process compares once the turn is over.
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

    /// Compares, if it is the turn of this process. Returns how long to wait.
    async fn turn(&self, position: &Position) -> Result<Duration, DatabaseError> {
        // In a database of another environment, it asks nobody.
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
                // Soon: otherwise a single failure would be reported for as long as `every`.
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

/// Up to a tenth longer: many processes must not ask at once.
fn jittered(time: Duration) -> Duration {
    time.mul_f64(1.0 + JITTER * random_fraction())
}

/// The handle of running [`Subscriptions`].
#[derive(Debug)]
pub struct SubscriptionsTask(Background);

impl SubscriptionsTask {
    /// Stops. A comparison that is under way is broken off, and another process makes it within some minutes.
    pub async fn stop(self) {
        self.0.stop().await;
    }
}
