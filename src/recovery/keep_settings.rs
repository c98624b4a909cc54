//! `Keep`: the settings that say which deliveries a layer keeps, and how. It has no state, so several layers can
//! share one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;

use super::breaker::Breaker;
use super::dead::OnDead;
use super::quota::QuotaLimits;
use super::schedule::{MAX_DELAY, Schedule};
use super::task::Recovery;
use crate::provider::delivery::Delivery;

/// Which deliveries a layer keeps for [`Recovery`], and how: see
/// [`IdempotentWebhook::keep`](crate::IdempotentWebhook::keep).
///
/// A *kept* delivery is stored in Postgres, so that it can run again until it is processed or dead.
///
/// | | kept | if the process dies in the handler | the provider gets | costs |
/// |---|---|---|---|---|
/// | [`failed`](Self::failed) | a failed delivery, after the rollback | lost, unless the provider retries | the handler's answer | nothing for a success |
/// | [`all`](Self::all) | each delivery, committed before its handler runs | nothing is lost | the handler's answer | one more transaction |
/// | [`accepted`](Self::accepted) | each delivery | nothing is lost | 200 before the handler runs | one more transaction |
///
/// The [`quota`](Self::quota) limits how much is kept.
///
/// A `Keep` holds only settings: layers with clones of the same `Keep` share nothing but the [`Recovery`].
///
/// A layer keeps the method, the URI, the body and some headers of a request. These headers are `content-type`,
/// `content-encoding`, the headers that contain the delivery id and the event type, and the headers that you add with
/// [`headers`](Self::headers). The signature is not kept.
///
/// ```no_run
/// use std::time::Duration;
///
/// use idempotent_webhook::{IdempotentWebhook, Keep, Recovery, Secret, presets};
///
/// # fn main_(pool: sqlx::PgPool, secret: Secret) {
/// let recovery = Recovery::new(pool.clone());
/// let month = Duration::from_secs(30 * 24 * 60 * 60);
/// let stripe = IdempotentWebhook::new(pool, "billing", presets::stripe(secret))
///     .keep(Keep::all(&recovery).processed_for(month));
/// # }
/// ```
#[derive(Clone)]
#[must_use = "it does nothing until a layer has it"]
pub struct Keep {
    pub(crate) recovery: Recovery,
    pub(crate) what: What,
    pub(crate) acknowledge: bool,
    /// How long the request of a processed delivery stays.
    pub(crate) archived_for: Option<Duration>,
    pub(crate) headers: Vec<HeaderName>,
    /// The largest body that is kept, in bytes, if that is less than the endpoint accepts.
    pub(crate) body_limit: Option<usize>,
    pub(crate) quota: QuotaLimits,
    pub(crate) schedule: Schedule,
    pub(crate) breaker: Breaker,
    pub(crate) on_dead: Option<OnDead>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Failed,
    All,
    /// All deliveries, and the answer is sent before the handler runs.
    Accepted,
}

impl Keep {
    fn new(recovery: &Recovery, what: What) -> Self {
        Self {
            recovery: recovery.of_layer(),
            what,
            acknowledge: false,
            archived_for: None,
            headers: Vec::new(),
            body_limit: None,
            quota: QuotaLimits::default(),
            schedule: Schedule::default(),
            breaker: Breaker::default(),
            on_dead: None,
        }
    }

    /// Keeps deliveries that failed.
    ///
    /// A delivery fails if the handler panics, takes too long, or does not answer with success, or if the commit is
    /// refused. A delivery is also kept if its handler could not be called although Postgres was reachable, for
    /// example because all connections were in use.
    ///
    /// A delivery is kept after the rollback and before the response, in a transaction of its own. The sender gets the
    /// same response as without a `Keep`, with the outcome `kept`. If the delivery cannot be kept, the outcome is
    /// `failed`. If the process is killed while the handler runs, nothing is kept: the delivery is lost unless the
    /// provider retries. [`all`](Self::all) closes this gap.
    pub fn failed(recovery: &Recovery) -> Self {
        Self::new(recovery, What::Failed)
    }

    /// Keeps all deliveries, before their handlers run.
    ///
    /// Each request is committed before its handler runs. The transaction of the handler then deletes or archives
    /// the kept delivery. The sender still gets the handler's answer.
    ///
    /// Nothing is lost if the process is killed, at any moment: another process, or the restarted one, runs the
    /// delivery within about ten seconds. If Postgres cannot keep the delivery, or if the body is over the
    /// [`body_limit`](Self::body_limit), the answer is a 503 and the handler does not run. Over the
    /// [`quota`](Self::quota), the delivery is handled without being kept.
    pub fn all(recovery: &Recovery) -> Self {
        Self::new(recovery, What::All)
    }

    /// Keeps all deliveries, and answers before their handlers run.
    ///
    /// Once a delivery is kept, the answer is a 200 with the outcome `accepted`, and the handler runs in the
    /// background. The handler runs at once and in this process, if [`Recovery::concurrency`] allows another attempt.
    ///
    /// This is for handlers that are slower than the provider's deadline. Handshakes are answered as usual. If the
    /// delivery cannot be kept, the [`quota`](Self::quota) is exhausted, or the body is over the
    /// [`body_limit`](Self::body_limit), the answer is a 503. In a database that belongs to another
    /// [environment](Recovery::environment), this process runs no kept deliveries, so the handler runs before the
    /// answer. If the provider sends a delivery again before it is processed, the delivery is due at once, with a
    /// new schedule if it was dead.
    pub fn accepted(recovery: &Recovery) -> Self {
        Self::new(recovery, What::Accepted)
    }

    /// Answers 200 if the handler fails and the delivery is kept, so that the provider does not retry it, or
    /// disable the webhook.
    ///
    /// The outcome is `kept`. If the delivery is not kept, or Postgres does not confirm that it is kept, the provider
    /// sees the failure. If an operator has discarded the delivery meanwhile, the answer is 200 with the outcome
    /// `discarded`. In a database that belongs to another [environment](Recovery::environment), the provider sees each
    /// failure.
    ///
    /// Default: off.
    pub fn acknowledge(mut self) -> Self {
        self.acknowledge = true;
        self
    }

    /// Archives the request of a kept delivery for this time after the delivery is processed.
    ///
    /// During this time, the delivery can be run again on purpose:
    /// [`Endpoint::reprocess`](crate::Endpoint::reprocess). With [`all`](Self::all), the requests of all deliveries
    /// are archived.
    ///
    /// After this time, [`Retention`](crate::Retention) or [`prune`](crate::prune) deletes the request. If you change
    /// the time, the new time applies to deliveries that are kept after the change. At most 10 years. Default: the
    /// request is not archived.
    pub fn processed_for(mut self, time: Duration) -> Self {
        self.archived_for = Some(time.min(MAX_DELAY.saturating_mul(10)));
        self
    }

    /// Keeps further headers, for a handler that reads them. Default: none.
    pub fn headers(mut self, headers: impl IntoIterator<Item = HeaderName>) -> Self {
        self.headers.extend(headers);
        self
    }

    /// The largest body that is kept, in bytes, if the endpoint accepts larger bodies than this. A body must be written
    /// within [`database_timeout`](crate::IdempotentWebhook::database_timeout).
    ///
    /// If a delivery with a larger body fails, it is only recorded, without its request, and with the outcome `failed`.
    /// With [`all`](Self::all) and [`accepted`](Self::accepted), the handler of such a delivery does not run, and the
    /// answer is 503. If the provider does not retry, the delivery is lost. For such a provider, lower
    /// [`Provider::body_limit`](crate::Provider::body_limit). The layer then refuses larger requests, and logs each of
    /// them.
    ///
    /// With 0, no request is kept. So `Keep::failed(&recovery).body_limit(0)` only records failures, and needs no
    /// spawned [`Recovery`]:
    ///
    /// ```sql
    /// select * from idempotent_webhook.failing_deliveries order by last_failed_at desc
    /// ```
    ///
    /// A failure is recorded in a transaction of its own, after the rollback and before the response, so it does
    /// not slow down a success. [`Retention`](crate::Retention) or [`prune`](crate::prune) deletes the record once
    /// it is older than the age that you give them, or once the delivery is processed. If the record cannot be
    /// written, because Postgres is down or the process is killed, the failure is only logged, if at all.
    ///
    /// Default: the provider's [`body_limit`](crate::Provider::body_limit).
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = Some(bytes);
        self
    }

    /// The maximum number of deliveries that are kept for the endpoint, and the maximum total size of their bodies, in
    /// bytes. Dead deliveries and deliveries whose failure is only recorded are included, and processed deliveries are
    /// not.
    ///
    /// A failure over the quota is only logged, with the outcome `failed`. [`all`](Self::all) handles a delivery over
    /// the quota without keeping it, and [`accepted`](Self::accepted) answers 503. A delivery that is already kept or
    /// processed needs no room, so the quota never refuses it. The layer counts every 5 seconds while it keeps
    /// deliveries, so somewhat more than the quota may be kept.
    ///
    /// Default: 100,000 deliveries, 1 GiB.
    pub fn quota(mut self, deliveries: u32, bytes: u64) -> Self {
        self.quota = QuotaLimits::new(deliveries, bytes);
        self
    }

    /// The backoff: the delays before the attempts of [`Recovery`]. The first delay starts with the first failure. Each
    /// further delay starts when the attempt before it fails. Each delay varies by a fifth. Failed retries by the
    /// provider do not change the schedule. After the last attempt, a delivery is dead.
    ///
    /// Default: 10 s, 1 min, 5 min, 15 min, 1 h, 3 h, 6 h, 12 h, 24 h, 24 h.
    pub fn retry_delays(mut self, delays: impl IntoIterator<Item = Duration>) -> Self {
        self.schedule = Schedule::new(delays);
        self
    }

    /// Opens the breaker of the endpoint after this many failures of different deliveries in a row (at least 1, at
    /// most 1,000). While the breaker is open, recovery tries one delivery in each `probe_interval`, until one
    /// succeeds. The other deliveries wait without using up attempts.
    ///
    /// Failures of recovery attempts are counted. With [`all`](Self::all), failures of provider requests are counted as
    /// well. A request from the provider calls the handler even while the breaker is open. Default: 10 failures, 30
    /// seconds.
    pub fn breaker(mut self, failures: u32, probe_interval: Duration) -> Self {
        self.breaker = Breaker {
            failures: i32::try_from(failures.max(1)).unwrap_or(i32::MAX),
            probe_interval: probe_interval.min(MAX_DELAY),
        };
        self
    }

    /// Calls `hook` when a delivery becomes dead, for example to send an alert. The hook gets the delivery, and the
    /// reason why its last attempt failed. A dead delivery is also logged at ERROR and counted.
    ///
    /// The hook is called at once, in the process that made the last attempt. That process may be killed, or may not
    /// learn that its write was committed. If that happens, another process calls its own hook one or two minutes
    /// later. That process must have a hook for the endpoint, and must have spawned [`Recovery`]. A delivery that is
    /// still dead at that time is reported at least once.
    ///
    /// The hook may block, like the hook of [`Recovery::on_change`]. A delivery counts as reported once the hook has
    /// returned or panicked, or has run for 10 seconds. The answer to a request does not wait for the hook.
    ///
    /// Default: none.
    pub fn on_dead(mut self, hook: impl Fn(&Delivery, &str) + Send + Sync + 'static) -> Self {
        self.on_dead = Some(Arc::new(hook));
        self
    }
}

impl fmt::Debug for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keep")
            .field("what", &self.what)
            .field("acknowledge", &self.acknowledge)
            .field("archived_for", &self.archived_for)
            .field("schedule", &self.schedule)
            .field("breaker", &self.breaker)
            .finish_non_exhaustive()
    }
}
