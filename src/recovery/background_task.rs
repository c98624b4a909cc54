//! The background tasks that a recovery can also run.

use std::sync::Arc;

use crate::tasks_and_errors::background::Background;
use crate::transaction::Environment;

/// Work outside of requests that was [added](crate::Recovery::with) to a [`Recovery`](crate::Recovery) and runs
/// together with it: [`Retention`](crate::Retention), [`Reconcile`](crate::Reconcile),
/// [`Subscriptions`](crate::subscriptions::Subscriptions).
pub trait BackgroundTask: Begin + Send + 'static {}

impl<T: Begin + Send + 'static> BackgroundTask for T {}

/// A path at which a layer of an endpoint should answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub(crate) endpoint: Arc<str>,
    pub(crate) path: String,
}

/// Only types of this crate implement this trait: nobody outside can name it.
pub trait Begin {
    /// Spawns the task, in this environment.
    #[expect(private_interfaces, reason = "nobody outside can call it")]
    fn begin(self, environment: &Environment) -> Background;

    /// The path of the task's layer, if the task knows it.
    fn place(&self) -> Option<Place> {
        None
    }
}
