//! A round of reconciliation: the process that has the turn, the right to run a round, reads the pages of a provider's
//! list, one after the other. `bounds.rs` computes which period the round covers. `missing.rs` finds which events are
//! missing, and which of them cannot be run.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use http::request::Parts;
use http::{Method, Request};
use tokio::time::Instant;

use super::bounds::{Limits, Span};
use super::error::ReconcileError;
use super::event_source::{EventPage, EventSource, PageQuery};
use super::position::{Begun, Position, TURN};
use super::settings::Reconcile;
use crate::provider::delivery::{DeliveryId, DeliveryKey, Tenant};
use crate::provider_api::source_error::{SourceError, caught};
use crate::tasks_and_errors::panic::{catch_panic, message};

/// How long a request for a page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(2 * 60);

/// The longest wait. If a list asks for a longer wait, the round waits only for this time.
const MAX_WAIT: Duration = Duration::from_secs(60 * 60);

/// How often a round waits for the same page, or for the same redelivery, before it fails.
const MAX_WAITS: u32 = 10;

/// A list with more pages than this counts as endless.
const MAX_PAGES: usize = 100_000;

/// How long a process waits before it checks again whether the database belongs to its environment.
const NOT_HOME_WAIT: Duration = Duration::from_secs(60);

/// The rounds of one process.
pub(super) struct Rounds<'a, S> {
    pub(super) reconcile: &'a Reconcile<S>,
    pub(super) position: Position,
    pub(super) limits: Limits,
}

/// How a round has ended.
pub(super) enum Ended {
    Complete(Reconciled),
    /// No round can run now: none is due, another process has the turn, or the database belongs to another environment.
    /// Check again after this time.
    NotNow(Duration),
}

/// The result of a round of [`Reconcile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reconciled {
    /// The round covered events from this time on.
    pub since: SystemTime,
    /// The round covered events up to and including this time.
    pub until: SystemTime,
    /// How many events of this period the list contains, not counting events that the layer ignores, nor events that
    /// give no delivery id.
    pub listed: u64,
    /// How many deliveries were missing. They are now kept, or the provider was asked to send them again.
    pub missed: u64,
    /// How many events are missing but cannot be run, or give no delivery id. The log gives the first reason.
    pub unusable: u64,
}

/// A missing delivery, found by [`Reconcile::dry_run`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MissingDelivery {
    /// The delivery id.
    pub id: DeliveryId,
    /// The event type, if it has one.
    pub event_type: Option<String>,
    /// When the event occurred, according to the list.
    pub occurred_at: SystemTime,
    /// Why the delivery cannot be run. `None` if it can.
    pub unusable: Option<String>,
}

/// The answer to a request for a page.
enum Asked {
    Page(EventPage),
    /// Ask again after this time, for this reason.
    Wait(Duration, String),
}

/// What a round has found so far.
pub(super) struct Seen {
    pub(super) reconciled: Reconciled,
    /// Why the first unusable delivery cannot be run.
    left_out: Option<String>,
    /// Deliveries that this round does not examine again: deliveries that the list also shows after the round's period,
    /// deliveries that were left out, and deliveries that the provider was asked to send again. In a dry run, all
    /// deliveries that were found are added as well.
    pub(super) done: HashSet<DeliveryKey>,
}

impl<S: EventSource> Rounds<'_, S> {
    /// Starts or resumes a round, if it is time for one.
    pub(super) async fn run(&self) -> Result<Ended, ReconcileError> {
        if !self.position.store.is_home_or_unnamed().await? {
            return Ok(Ended::NotNow(NOT_HOME_WAIT));
        }
        let bounds = self.position.bounds(&self.limits).await?;
        let on_request = self.limits.on_request;
        let Some(mut round) = self.position.begin(&bounds, on_request).await? else {
            return Ok(Ended::NotNow(self.position.wait().await?));
        };
        if let Some(gap) = bounds.gap() {
            let ago = |time: SystemTime| time.elapsed().unwrap_or_default().as_secs();
            tracing::warn!(
                endpoint = self.position.list().endpoint,
                source = self.position.list().source,
                from_seconds_ago = ago(gap.since),
                until_seconds_ago = ago(gap.until),
                "webhooks were not reconciled for too long: the events of this period are not looked at, because \
                 they are older than `look_back`, than the records that retention has left, or than the list goes back"
            );
        }
        let mut seen = Seen::new(round.span);
        let metrics = &self.reconcile.settings.verification.metrics;
        let ended = self.pages(&mut round, &mut seen).await;
        seen.report(&self.position);
        match ended {
            Ok(true) => {
                let (next, left_out) = (self.reconcile.every, seen.left_out.as_deref());
                if self.position.complete(&round, next, left_out).await? {
                    metrics.reconciliation_failed();
                }
                Ok(Ended::Complete(seen.reconciled))
            }
            Ok(false) => Ok(Ended::NotNow(self.position.wait().await?)),
            Err(error) => {
                metrics.reconciliation_failed();
                // If the list refuses the page for good, the next round starts with the first page.
                let anew = matches!(&error, ReconcileError::Source(error) if error.is_permanent());
                let (wait, failure) = (self.reconcile.failed_wait(), error.to_string());
                let broken_off = self.position.break_off(&round, wait, &failure, anew);
                broken_off.await?;
                Err(error)
            }
        }
    }

    /// Brings back the missing deliveries of all remaining pages, starting with the round's current page. Returns
    /// whether this process kept the turn to the end.
    async fn pages(&self, round: &mut Begun, seen: &mut Seen) -> Result<bool, ReconcileError> {
        if round.span.since > round.span.until {
            return Ok(true);
        }
        let tenant = self.tenant().await?;
        let mut cursors = Cursors::from(&round.cursor);
        loop {
            let Some(page) = self.page(round).await? else {
                return Ok(false);
            };
            let missing = self.missing(page.events, &tenant, seen).await?;
            if !self.bring_back(missing, round, seen).await? {
                return Ok(false);
            }
            round.cursor = cursors.next(page.next)?;
            if !self.position.go_on(round, None).await? {
                return Ok(false);
            }
            if round.cursor.is_none() {
                return Ok(true);
            }
        }
    }

    /// Reads the round's current page. If the list asks to wait, the round waits and asks again, several times. Returns
    /// `None` if the turn was lost meanwhile.
    async fn page(&self, round: &mut Begun) -> Result<Option<EventPage>, ReconcileError> {
        let mut waits = 0;
        loop {
            match self.ask(round.span, &round.cursor, &mut waits).await? {
                Asked::Page(page) => return Ok(Some(page)),
                Asked::Wait(wait, reason) => {
                    if !self.wait(round, wait, &reason).await? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Waits, and keeps the turn meanwhile. Returns whether the turn could be kept.
    pub(super) async fn wait(
        &self,
        round: &mut Begun,
        wait: Duration,
        reason: &str,
    ) -> Result<bool, ReconcileError> {
        let until = Instant::now() + wait;
        loop {
            if !self.position.go_on(round, Some(reason)).await? {
                return Ok(false);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(true);
            }
            tokio::time::sleep(left.min(TURN / 3)).await;
        }
    }

    /// Asks for a page. If the list asks to wait, returns how long. Fails after any other error, and if the list has
    /// asked to wait too often.
    async fn ask(
        &self,
        span: Span,
        cursor: &Option<String>,
        waits: &mut u32,
    ) -> Result<Asked, ReconcileError> {
        let layer = &self.reconcile.settings.verification;
        let versions = layer.provider.expected_payload_versions();
        let query = PageQuery {
            since: span.since,
            until: span.until,
            cursor: cursor.clone(),
            events: layer.listed_events().cloned(),
            versions: versions.to_vec(),
        };
        let page = caught(self.reconcile.source.page(&query));
        let error = match tokio::time::timeout(PAGE_TIMEOUT, page).await {
            Ok(Ok(page)) => return Ok(Asked::Page(page)),
            Ok(Err(error)) => error,
            Err(_) => SourceError::new("it took longer than 2 minutes"),
        };
        *waits += 1;
        match self.wait_after(&error, *waits) {
            Some(wait) => Ok(Asked::Wait(wait, error.to_string())),
            None => Err(ReconcileError::Source(error)),
        }
    }

    /// How long to wait after an error that asks to wait. Such an error is logged. `None` for any other error, and
    /// after too many waits.
    pub(super) fn wait_after(&self, error: &SourceError, waits: u32) -> Option<Duration> {
        let wait = error.wait().filter(|_| waits <= MAX_WAITS)?.min(MAX_WAIT);
        tracing::warn!(
            endpoint = self.position.list().endpoint,
            source = self.position.list().source,
            %error,
            seconds = wait.as_secs(),
            "the provider asks to wait"
        );
        Some(wait)
    }

    /// The result of [`Reconcile::dry_run`].
    pub(super) async fn list_missing(&self) -> Result<Vec<MissingDelivery>, ReconcileError> {
        let span = self.position.bounds(&self.limits).await?.span();
        let mut found = Vec::new();
        if span.since > span.until {
            return Ok(found);
        }
        let tenant = self.tenant().await?;
        let (mut seen, mut cursor) = (Seen::new(span), None);
        let mut cursors = Cursors::from(&cursor);
        loop {
            let mut waits = 0;
            let page = loop {
                match self.ask(span, &cursor, &mut waits).await? {
                    Asked::Page(page) => break page,
                    Asked::Wait(wait, _) => tokio::time::sleep(wait).await,
                }
            };
            let missing = self.missing(page.events, &tenant, &mut seen).await?;
            for listed in missing {
                seen.done.insert(listed.delivery.key());
                found.push(MissingDelivery {
                    id: listed.delivery.id().clone(),
                    event_type: listed.delivery.event_type().map(str::to_owned),
                    occurred_at: listed.event.occurred_at,
                    unusable: self.why_unusable(&listed),
                });
            }
            cursor = cursors.next(page.next)?;
            if cursor.is_none() {
                return Ok(found);
            }
        }
    }

    /// The tenant of the path, if the provider has tenants.
    async fn tenant(&self) -> Result<Option<Tenant>, ReconcileError> {
        let head = self.head(Method::POST);
        let secrets = self.reconcile.settings.verification.provider.secrets();
        let found = catch_panic(secrets.find(&head))
            .await
            .map_err(|payload| ReconcileError::Tenant(message(&*payload).into()))?
            .map_err(ReconcileError::Tenant)?;
        match found.secrets {
            Ok(_) => Ok(found.tenant),
            Err(error) => Err(ReconcileError::Tenant(error.into())),
        }
    }

    /// The head of a request to the route.
    pub(super) fn head(&self, method: Method) -> Parts {
        let mut head = Request::new(()).into_parts().0;
        head.method = method;
        head.uri = self.reconcile.path.clone();
        head
    }
}

/// The cursors of the pages that this process has asked for in a round. If a cursor comes again, the round would never
/// end, because a list gives the same page for the same cursor.
struct Cursors(HashSet<String>);

impl Cursors {
    fn from(first: &Option<String>) -> Self {
        Self(first.iter().cloned().collect())
    }

    fn next(&mut self, next: Option<String>) -> Result<Option<String>, ReconcileError> {
        let Some(next) = next else {
            return Ok(None);
        };
        let error = if next.contains('\0') {
            // Postgres cannot store NUL.
            "the list gives no usable next page"
        } else if self.0.len() > MAX_PAGES {
            "its pages do not end"
        } else if self.0.insert(next.clone()) {
            return Ok(Some(next));
        } else {
            "its pages form a circle"
        };
        // The next round starts with the first page.
        Err(ReconcileError::Source(SourceError::new(error).permanent()))
    }
}

impl Seen {
    fn new(span: Span) -> Self {
        Self {
            reconciled: Reconciled {
                since: span.since,
                until: span.until,
                listed: 0,
                missed: 0,
                unusable: 0,
            },
            left_out: None,
            done: HashSet::new(),
        }
    }

    pub(super) fn leave_out(&mut self, reason: String) {
        self.reconciled.unusable += 1;
        // Postgres cannot store NUL.
        self.left_out
            .get_or_insert_with(|| reason.replace('\0', ""));
    }

    fn report(&self, position: &Position) {
        let Reconciled {
            missed, unusable, ..
        } = self.reconciled;
        let (endpoint, source) = (&*position.list().endpoint, &*position.list().source);
        if missed > 0 {
            tracing::warn!(
                endpoint,
                source,
                missed,
                "webhooks never arrived: running them from the provider's list"
            );
        }
        if let Some(reason) = &self.left_out {
            tracing::warn!(
                endpoint,
                source,
                unusable,
                reason,
                "webhooks never arrived, and cannot be run"
            );
        }
    }
}
