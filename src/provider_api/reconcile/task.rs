//! The background task of reconciliation, and single rounds on request.

use std::sync::Arc;
use std::time::Duration;

use super::bounds::Limits;
use super::error::ReconcileError;
use super::event_source::EventSource;
use super::position::Position;
use super::round::{Ended, MissingDelivery, Reconciled, Rounds};
use super::settings::Reconcile;
use crate::recovery::{Begin, Place};
use crate::tasks_and_errors::background::Background;
use crate::tasks_and_errors::error_chain::ErrorChain;
use crate::tasks_and_errors::progress::Progress;
use crate::tasks_and_errors::random::random_fraction;
use crate::tasks_and_errors::stop_signal::Stop;
use crate::transaction::{Environment, List};

const MINUTE: Duration = Duration::from_secs(60);

/// The shortest time between two checks whether this process has the turn: the right to run a round.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// The longest time between two checks. It is short, so that this process soon takes over from a process that has
/// failed.
const LONGEST_WAIT: Duration = MINUTE;

impl<S: EventSource> Reconcile<S> {
    /// Starts the background task on the current tokio runtime. It runs until [`ReconcileTask::stop`] or the
    /// end of the runtime.
    ///
    /// If the provider asks to wait, as for a rate limit, the round waits. Any other failure of the list is logged at
    /// WARN, and the next round tries again, after 5 minutes at most.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn spawn(self) -> ReconcileTask {
        let environment = self.settings.store.environment().clone();
        ReconcileTask(self.begin(&environment))
    }

    /// Runs one round now, over all events that are not older than [`look_back`](Self::look_back), including events
    /// that an earlier round has looked at. When this returns, the missing deliveries are kept, or the provider was
    /// asked to send them again. [`Recovery`](crate::Recovery) runs the kept ones.
    ///
    /// If the provider asks to wait, as for a rate limit, this call waits.
    ///
    /// # Errors
    ///
    /// [`ReconcileError::Busy`] if another process is in a round, or if the database belongs to another
    /// [environment](crate::Recovery::environment). Any other failure is also returned.
    pub async fn run_once(&self) -> Result<Reconciled, ReconcileError> {
        let rounds = self.rounds(true, Progress::default());
        match rounds.run().await? {
            Ended::Complete(reconciled) => Ok(reconciled),
            Ended::NotNow(_) => Err(ReconcileError::Busy),
        }
    }

    /// Lists what [`run_once`](Self::run_once) would run now. It changes no table, and does not ask the provider to
    /// send a webhook again.
    ///
    /// It finds nothing for an endpoint that has no recorded delivery yet, unless [`since`](Self::since) is set.
    ///
    /// # Errors
    ///
    /// Any error of the list or of Postgres.
    pub async fn dry_run(&self) -> Result<Vec<MissingDelivery>, ReconcileError> {
        self.rounds(true, Progress::default()).list_missing().await
    }

    fn rounds(&self, on_request: bool, progress: Progress) -> Rounds<'_, S> {
        let settings = &self.settings;
        Rounds {
            reconcile: self,
            position: Position::new(
                settings.store.clone(),
                List {
                    endpoint: settings.verification.endpoint.to_string(),
                    address: self.path.to_string(),
                    source: self.list.name.clone(),
                },
                self.every,
                progress,
            ),
            limits: Limits {
                look_back: self.look_back,
                goes_back: self.source.goes_back(),
                grace: self.grace,
                has_tenants: settings.verification.provider.has_tenants(),
                since: self.since,
                on_request,
            },
        }
    }

    async fn run(self: Arc<Self>, mut stop: Stop) {
        let rounds = self.rounds(false, stop.progress().clone());
        loop {
            stop.takes(MINUTE);
            let Some(ended) = stop.or(rounds.run()).await else {
                // This gives up the turn, so that another process can continue at once.
                let _ = rounds.position.leave().await;
                return;
            };
            let wait = match ended {
                Ok(Ended::Complete(_)) => self.every,
                Ok(Ended::NotNow(wait)) => wait,
                Err(error) => {
                    tracing::warn!(
                        endpoint = &*self.settings.verification.endpoint,
                        source = rounds.position.list().source,
                        error = %ErrorChain(&error),
                        "webhooks could not be reconciled with the provider's list, trying again"
                    );
                    self.failed_wait()
                }
            };
            // Another process may have run a round, or may have been killed during one, so check again soon.
            let wait = wait.clamp(SHORTEST_WAIT, LONGEST_WAIT);
            let wait = wait.mul_f64(1.0 + 0.1 * random_fraction());
            if stop.rest(wait).await.is_none() {
                return;
            }
        }
    }
}

impl<S: EventSource> Begin for Reconcile<S> {
    #[expect(private_interfaces, reason = "nobody outside can call it")]
    fn begin(mut self, environment: &Environment) -> Background {
        self.settings.store.set_environment(environment);
        let reconcile = Arc::new(self);
        Background::spawn("reconciliation", move |stop| reconcile.clone().run(stop))
    }

    fn place(&self) -> Option<Place> {
        Some(Place {
            endpoint: self.settings.verification.endpoint.clone(),
            path: self.path.path().to_owned(),
        })
    }
}

/// The handle of a running [`Reconcile`].
#[derive(Debug)]
pub struct ReconcileTask(Background);

impl ReconcileTask {
    /// Stops the task. A round in progress is interrupted, and another process resumes it.
    pub async fn stop(self) {
        self.0.stop().await;
    }
}
