//! `Reconcile`: the reconciliation of one list, with its settings.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::Uri;

use super::error::ReconcileError;
use super::event_source::EventSource;
use crate::layer::idempotent_webhook::IdempotentWebhook;
use crate::layer::settings::Settings;
use crate::recovery::ReconciledList;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest wait after a failed round.
const FAILED_WAIT: Duration = Duration::from_secs(5 * 60);

/// Reads the provider's own list of events, finds the deliveries that never arrived, and brings them back.
///
/// No webhook arrives while DNS is wrong, or after the provider has switched the endpoint off. After a rotation of
/// secrets, all requests may be rejected. But the provider still lists the events. A listed delivery that is neither
/// processed nor kept nor discarded is now kept (stored with its request), and [`Recovery`](crate::Recovery) runs it
/// through the same route and the same claim as a webhook. If the webhook arrives after all, it is a duplicate.
///
/// ```no_run
/// use idempotent_webhook::reconcile::StripeEvents;
/// use idempotent_webhook::{IdempotentWebhook, Keep, Reconcile, Recovery, Secret, presets};
///
/// # fn main_(pool: sqlx::PgPool, secret: Secret, api_key: Secret) -> Result<(), Box<dyn std::error::Error>> {
/// let recovery = Recovery::new(pool.clone());
/// let stripe = IdempotentWebhook::new(pool, "billing", presets::stripe(secret))
///     .keep(Keep::all(&recovery));
/// let events = StripeEvents::new(api_key, ["invoice.*"]);
/// let reconcile = Reconcile::new(&stripe, events, "/webhooks/stripe")?.spawn();
/// # Ok(())
/// # }
/// ```
///
/// Spawn a `Reconcile` in every process: only one process reconciles a list at a time, and if it is killed, another
/// process continues. [`dry_run`](Self::dry_run) lists missing deliveries, and changes nothing.
///
/// Events from before the endpoint's first recorded delivery are left alone, because they may have been processed
/// before you used this crate. [`since`](Self::since) changes that.
///
/// Clone it to use the same list a second time, such as for a [`dry_run`](Self::dry_run) in an operator's tool next to
/// the background task. Two lists of one endpoint, such as for two accounts that send to one route, need different
/// [names](EventSource::name): otherwise, the second list is refused.
#[derive(Clone)]
#[must_use = "nothing is reconciled until it is spawned or run"]
pub struct Reconcile<S> {
    pub(super) settings: Settings,
    pub(super) path: Uri,
    pub(super) source: S,
    pub(super) every: Duration,
    pub(super) look_back: Duration,
    pub(super) grace: Duration,
    pub(super) since: Option<SystemTime>,
    /// Reserves the name of the list until the last clone is dropped.
    pub(super) list: Arc<ReconciledList>,
}

impl<S: EventSource> Reconcile<S> {
    /// Reconciles the deliveries of a layer with a list of the provider. `path` is the path of the layer's route, such
    /// as `/webhooks/stripe`. Missing deliveries run as requests to this path. With
    /// [`TenantSecrets`](crate::TenantSecrets), the path selects the tenant.
    ///
    /// Pass the layer once it is complete: settings that you later change on a clone have no effect here.
    /// `Events::layer` is the exception: you may call it before or after `new`.
    ///
    /// The first round of a new endpoint covers no time before the round itself, so it does not ask the provider. To
    /// try the API key, use [`dry_run`](Self::dry_run) with [`since`](Self::since).
    ///
    /// # Errors
    ///
    /// [`ReconcileError`] if the layer keeps nothing, if `path` is not a path, if the list lacks a header or the body
    /// from which the provider's delivery id is derived, or if there is already a `Reconcile` for a list with this name
    /// at the endpoint (with tenants: at the same path).
    pub fn new(layer: &IdempotentWebhook, source: S, path: &str) -> Result<Self, ReconcileError> {
        let settings = layer.settings().clone();
        let Some(keeper) = &settings.keeper else {
            return Err(ReconcileError::NothingKept);
        };
        let uri: Uri = path
            .parse()
            .map_err(|_| ReconcileError::Path(path.to_owned()))?;
        if !path.starts_with('/') {
            return Err(ReconcileError::Path(path.to_owned()));
        }
        settings
            .verification
            .provider
            .check_identity(&source.headers(), source.has_bodies())
            .map_err(ReconcileError::Identity)?;
        let name = source.name();
        let list = keeper.settings.recovery.reconcile(ReconciledList {
            endpoint: settings.verification.endpoint.clone(),
            path: settings
                .verification
                .provider
                .has_tenants()
                .then(|| path.to_owned()),
            name: name.clone(),
        });
        Ok(Self {
            list: list.ok_or(ReconcileError::NameTaken(name))?,
            settings,
            path: uri,
            source,
            every: 15 * MINUTE,
            look_back: 7 * DAY,
            grace: 10 * MINUTE,
            since: None,
        })
    }

    /// Sets the time from one round to the next, counted over all processes. At least a second. If processes have
    /// different settings, as during a deploy, the shortest time counts. Default: 15 minutes.
    pub fn every(mut self, interval: Duration) -> Self {
        self.every = interval.max(Duration::from_secs(1));
        self
    }

    /// Sets the maximum age of an event that a round looks at. The first round looks at all events that are not older
    /// than this, and each later round at the events since the previous round. Default: 7 days.
    ///
    /// No round looks at events that are older than the oldest deliveries that [`Retention`](crate::Retention) has
    /// left. Such events may be unknown only because their records were deleted.
    ///
    /// No round looks further back than the list [goes back](EventSource::goes_back). If more time than that passes
    /// without a round, some events are too old for the next round. Their period is a
    /// [gap](crate::documentation::reconciliation#gaps), which is reported until somebody deals with it.
    pub fn look_back(mut self, time: Duration) -> Self {
        self.look_back = time;
        self
    }

    /// Sets how old an event must be before a round looks at it, because the webhook of a younger event may still be on
    /// its way. Set a time that is longer than handlers take. Default: 10 minutes.
    ///
    /// A round overlaps the previous round by this time, and by at least a minute, because the provider's list may lag
    /// behind.
    pub fn grace(mut self, time: Duration) -> Self {
        self.grace = time;
        self
    }

    /// Leaves events before this time alone.
    ///
    /// Default: the time of the endpoint's first recorded delivery, as it was at the first round. If the endpoint had
    /// no delivery by then, it is the time of the first round. A second list of an endpoint, and the list of a tenant,
    /// also start at the time of their first round, because the first delivery of another list or tenant says nothing
    /// about them.
    ///
    /// If another system continued to process the webhooks for a while after the deploy, set the time at which it
    /// stopped. With an earlier time, **events that were processed before, but not recorded, run again**.
    /// [`look_back`](Self::look_back) and retention still limit which events a round looks at.
    pub fn since(mut self, time: SystemTime) -> Self {
        self.since = Some(time);
        self
    }

    /// How long to wait after a failed round.
    pub(super) fn failed_wait(&self) -> Duration {
        self.every.min(FAILED_WAIT)
    }
}

impl<S> fmt::Debug for Reconcile<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconcile")
            .field("endpoint", &self.settings.verification.endpoint)
            .field("path", &self.path)
            .field("every", &self.every)
            .field("look_back", &self.look_back)
            .field("grace", &self.grace)
            .field("since", &self.since)
            .finish_non_exhaustive()
    }
}
