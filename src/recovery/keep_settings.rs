//! `Keep`: the settings for which deliveries a layer keeps, and how. It has no state, so several layers can have the
//! same one.

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
/// | | kept | if the process dies in the handler | the provider hears | costs |
/// |---|---|---|---|---|
/// | [`failed`](Self::failed) | a failed delivery, after the rollback | lost, unless the provider retries | the handler's answer | nothing for a success |
/// | [`all`](Self::all) | each delivery, committed before its handler runs | nothing is lost | the handler's answer | one more transaction |
/// | [`accepted`](Self::accepted) | each delivery | nothing is lost | 200 before the handler runs | one more transaction |
///
/// The [`quota`](Self::quota) limits how much is kept.
///
/// It only has settings: layers with clones of one share nothing but the [`Recovery`].
///
/// The kept parts of a request are the method, the URI, the body, and these headers: `content-type`,
/// `content-encoding`, the headers with the delivery id and the event type, and those that [`headers`](Self::headers)
/// names. The signature is not kept.
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
    /// The same, and the answer leaves before the handler runs.
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

    /// Keeps deliveries that failed: the handler did not answer success, panicked or took too long, or the commit was
    /// refused. A delivery whose handler could not be called although Postgres was there is kept, too, for example
    /// because all connections were in use.
    ///
    /// A delivery is kept after the rollback and before the response, in a transaction of its own. The sender gets the
    /// same response as otherwise, with the outcome `kept`. If the delivery cannot be kept,
    /// the outcome is `failed`. A process that is killed in the handler keeps nothing: the delivery is
    /// lost unless the provider retries. [`all`](Self::all) closes this hole.
    pub fn failed(recovery: &Recovery) -> Self {
        Self::new(recovery, What::Failed)
    }

    /// Keeps all deliveries: the request is committed before the handler runs, and the kept delivery ends in the
    /// transaction of the handler.
    ///
    /// The sender still gets the handler's answer. A process that is killed at any moment loses nothing:
    /// another one, or its successor, runs the delivery within about ten seconds. If Postgres cannot keep
    /// it, or if the body is over the [`body_limit`](Self::body_limit), the answer is a 503 and the handler does not run.
    /// Over the [`quota`](Self::quota), the delivery is handled without being kept.
    pub fn all(recovery: &Recovery) -> Self {
        Self::new(recovery, What::All)
    }

    /// Keeps all deliveries, answers 200 with the outcome `accepted` once one is kept, and runs the handler
    /// in the background: at once and in this process, if one of the attempts that
    /// [`Recovery::concurrency`] allows is free.
    ///
    /// This is for handlers that are slower than the provider's deadline. Handshakes are answered as usual. If the
    /// delivery cannot be kept, the [`quota`](Self::quota) is exhausted, or the body is over the
    /// [`body_limit`](Self::body_limit), the answer is a 503. In a database of another
    /// [environment](Recovery::environment), which runs no kept delivery, the handler runs before the answer. If the provider sends a delivery again before it is processed, it is due at once, with a new schedule if
    /// it was dead.
    pub fn accepted(recovery: &Recovery) -> Self {
        Self::new(recovery, What::Accepted)
    }

    /// Answers 200 with the outcome `kept` if the handler fails and the delivery is kept, so that the
    /// provider does not retry it, or disable the webhook. If it is not kept, or Postgres does not confirm that, the
    /// provider hears of the failure. If an operator has discarded it meanwhile, the answer is 200 with the outcome
    /// `discarded`. In a database of another [environment](Recovery::environment), the provider hears of each failure.
    ///
    /// Default: off.
    pub fn acknowledge(mut self) -> Self {
        self.acknowledge = true;
        self
    }

    /// The request of a kept delivery stays for this time after the delivery is processed. So it can be run
    /// again on purpose: [`Endpoint::reprocess`](crate::Endpoint::reprocess). With [`all`](Self::all), the
    /// requests of all deliveries stay.
    ///
    /// [`Retention`](crate::Retention) or [`prune`](crate::prune) deletes it afterwards. A change of the time applies
    /// to deliveries that are kept from then on. At most 10 years. Default: it does not stay.
    pub fn processed_for(mut self, time: Duration) -> Self {
        self.archived_for = Some(time.min(MAX_DELAY.saturating_mul(10)));
        self
    }

    /// Further headers to keep, which the handler reads. Default: none.
    pub fn headers(mut self, headers: impl IntoIterator<Item = HeaderName>) -> Self {
        self.headers.extend(headers);
        self
    }

    /// The largest body that is kept, in bytes, if that should be less than the endpoint accepts. A body is written
    /// within [`database_timeout`](crate::IdempotentWebhook::database_timeout).
    ///
    /// A delivery with a larger one fails: it is recorded without its request, with the outcome `failed`. With
    /// [`all`](Self::all) and [`accepted`](Self::accepted), its handler does not run, and the answer is 503. For a
    /// provider that does not retry, that loses it; lower its [`body_limit`](crate::Provider::body_limit) instead, and
    /// the log names each refused request.
    ///
    /// With 0, no request is kept. So `Keep::failed(&recovery).body_limit(0)` only records failures, and needs no
    /// spawned [`Recovery`]:
    ///
    /// ```sql
    /// select * from idempotent_webhook.failing_deliveries order by last_failed_at desc
    /// ```
    ///
    /// A record is written in a transaction of its own, after the rollback and before the response. It does not slow down a
    /// success. [`Retention`](crate::Retention) or [`prune`](crate::prune) deletes it once it is older than the age, or the
    /// delivery is processed. If it cannot be written, because Postgres is down or the process is killed, the failure is only
    /// logged, if at all.
    ///
    /// Default: the provider's [`body_limit`](crate::Provider::body_limit).
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = Some(bytes);
        self
    }

    /// The most deliveries, and the most bytes of bodies, that are kept of the endpoint. Deliveries that are dead or
    /// only recorded count, and processed ones do not.
    ///
    /// A failure over the quota is only logged, with the outcome `failed`. [`all`](Self::all) handles a delivery over
    /// the quota without keeping it, and [`accepted`](Self::accepted) answers 503. A
    /// delivery that is kept or processed already needs no room. The quota is counted every 5 seconds while
    /// deliveries are kept, so somewhat more may be kept.
    ///
    /// Default: 100,000 deliveries, 1 GiB.
    pub fn quota(mut self, deliveries: u32, bytes: u64) -> Self {
        self.quota = QuotaLimits::new(deliveries, bytes);
        self
    }

    /// The backoff: the delays of the attempts of [`Recovery`]. The first one is after the first failure, and
    /// each further one after the attempt before. Each varies by a fifth. Failed retries of the provider do
    /// not move them. After the last one, a delivery is dead.
    ///
    /// Default: 10 s, 1 min, 5 min, 15 min, 1 h, 3 h, 6 h, 12 h, 24 h, 24 h.
    pub fn retry_delays(mut self, delays: impl IntoIterator<Item = Duration>) -> Self {
        self.schedule = Schedule::new(delays);
        self
    }

    /// Opens the breaker of the endpoint after this many failures of different deliveries in a row (at
    /// least 1, at most 1,000). While it is open, one delivery is tried in each `probe_interval`, until one succeeds. The
    /// rest wait without using up attempts.
    ///
    /// Failed attempts of [`Recovery`] count and, with [`all`](Self::all), failed requests. A request of the provider
    /// calls the handler as before. Default: 10 failures, 30 seconds.
    pub fn breaker(mut self, failures: u32, probe_interval: Duration) -> Self {
        self.breaker = Breaker {
            failures: i32::try_from(failures.max(1)).unwrap_or(i32::MAX),
            probe_interval: probe_interval.min(MAX_DELAY),
        };
        self
    }

    /// Calls `hook` with each dead delivery and the reason of its last attempt, for an alert. A dead delivery is also
    /// logged at ERROR and counted.
    ///
    /// It is called at once, in the process that made the last attempt. If that process is killed, or does not hear that
    /// its write was committed, another one with a hook for the endpoint that has spawned [`Recovery`] calls it one or two
    /// minutes later: at least once for each delivery that is still dead by then.
    ///
    /// It may block, like the one of [`Recovery::on_change`]: a delivery counts as reported once the hook has returned,
    /// after 10 seconds, or if it panics. The answer to a request does not wait for it.
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
