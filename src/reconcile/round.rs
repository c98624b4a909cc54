//! A round: page by page, what is missing is found and kept.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method, Request};
use tokio::time::Instant;

use super::error::ReconcileError;
use super::handle::Reconcile;
use super::position::{Begun, Limits, Position, Span, TURN};
use super::source::{Content, EventPage, EventSource, ListedEvent, PageQuery, SourceError};
use crate::activity::{MISSED, Source};
use crate::delivery::{Delivery, DeliveryId, DeliveryKey, Tenant};
use crate::metrics::Metrics;
use crate::recovery::{Acceptance, Accepted};

/// The longest time for a page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(2 * 60);

/// The longest wait that a list may ask for.
const MAX_WAIT: Duration = Duration::from_secs(60 * 60);

/// How often a page is asked for that the list cannot give now.
const MAX_WAITS: u32 = 10;

/// How many deliveries are kept in one transaction.
const GROUP: usize = 64;

/// The rounds of one process.
pub(super) struct Rounds<'a, S> {
    pub(super) reconcile: &'a Reconcile<S>,
    pub(super) position: Position,
    pub(super) limits: Limits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Now,
    WhenDue,
}

/// How a round has ended.
pub(super) enum Ended {
    Complete(Reconciled),
    /// It is not due yet, or the turn of another process.
    NotNow(Duration),
}

/// What a round of [`Reconcile`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reconciled {
    /// It has looked at events of this time and later.
    pub since: SystemTime,
    /// It has looked at events of this time and earlier.
    pub until: SystemTime,
    /// How many events of this time the list has.
    pub listed: u64,
    /// How many deliveries were missing, and are kept now or were asked for again.
    pub missed: u64,
    /// How many are missing and cannot be run. The log says why.
    pub unusable: u64,
}

/// A delivery that is missing, as [`Reconcile::dry_run`] has found it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MissingDelivery {
    /// The delivery id.
    pub id: DeliveryId,
    /// The event type, if it has one.
    pub event_type: Option<String>,
    /// When the event occurred, as the list says.
    pub occurred_at: SystemTime,
    /// Why it cannot be run, if it cannot.
    pub unusable: Option<String>,
}

/// An event of the list, as the delivery that its webhook would have been.
struct Listed {
    delivery: Delivery,
    head: Parts,
    event: ListedEvent,
}

/// The answer of a list.
enum Asked {
    Page(EventPage),
    /// To ask again after this time, for this reason.
    Wait(Duration, String),
}

/// What a round has seen.
struct Seen {
    reconciled: Reconciled,
    /// Why the first of those cannot be run that cannot.
    left_out: Option<String>,
    /// Of a list of attempts: what was attempted again meanwhile, and what was asked for.
    done: HashSet<DeliveryKey>,
}

impl<S: EventSource> Rounds<'_, S> {
    /// A round, if there is one to begin or to go on with.
    pub(super) async fn run(&self, start: Start) -> Result<Ended, ReconcileError> {
        let now = start == Start::Now;
        let bounds = self.position.bounds(&self.limits).await?;
        let Some(mut round) = self.position.begin(&bounds, now).await? else {
            return Ok(Ended::NotNow(self.position.wait().await?));
        };
        let resumed = round.cursor.is_some();
        if bounds.has_gap && !resumed {
            tracing::warn!(
                endpoint = self.position.endpoint,
                source = self.position.source,
                "webhooks were not reconciled for longer than `look_back`: events of the time between are \
                 not looked at"
            );
        }
        let mut seen = Seen::new(round.span);
        let metrics = &self.reconcile.settings.metrics;
        match self.pages(&mut round, &mut seen).await {
            Ok(true) => {
                seen.report(&self.position, metrics);
                let next = self.reconcile.every;
                let left_out = seen.left_out.as_deref();
                self.position.complete(&round, next, left_out).await?;
                Ok(Ended::Complete(seen.reconciled))
            }
            Ok(false) => Ok(Ended::NotNow(self.position.wait().await?)),
            Err(error) => {
                seen.report(&self.position, metrics);
                metrics.reconciliation_failed();
                // The page may not be known to the list any more.
                let anew = resumed && seen.reconciled.listed == 0;
                let wait = self.reconcile.failed_wait();
                let failure = error.to_string();
                let broken_off = self.position.break_off(wait, Some(&failure), anew);
                broken_off.await?;
                Err(error)
            }
        }
    }

    /// All pages from the one at which the round is. Returns whether it was the turn of this process to the
    /// end.
    async fn pages(&self, round: &mut Begun, seen: &mut Seen) -> Result<bool, ReconcileError> {
        if round.span.since > round.span.until {
            return Ok(true);
        }
        let tenant = self.tenant().await?;
        loop {
            let Some(page) = self.page(round).await? else {
                return Ok(false);
            };
            let missing = self.missing(page.events, &tenant, seen).await?;
            let missed = self.bring_back(missing, seen).await?;
            seen.reconciled.missed += missed;
            round.cursor = next(page.next, &round.cursor)?;
            if !self.position.go_on(round, missed, None).await? {
                return Ok(false);
            }
            if round.cursor.is_none() {
                return Ok(true);
            }
        }
    }

    /// The page at which the round is. Waits where the list says that it is worth it. `None` if the turn was
    /// lost meanwhile.
    async fn page(&self, round: &Begun) -> Result<Option<EventPage>, ReconcileError> {
        let mut waits = 0;
        loop {
            match self.ask(round.span, &round.cursor, &mut waits).await? {
                Asked::Page(page) => return Ok(Some(page)),
                Asked::Wait(wait, reason) => {
                    let wait = Some((wait, &*reason));
                    if !self.position.go_on(round, 0, wait).await? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Asks for a page, unless it has asked to wait too often.
    async fn ask(
        &self,
        span: Span,
        cursor: &Option<String>,
        waits: &mut u32,
    ) -> Result<Asked, ReconcileError> {
        let query = PageQuery {
            since: span.since,
            until: span.until,
            cursor: cursor.clone(),
        };
        let page = self.reconcile.source.page(&query);
        let error = match tokio::time::timeout(PAGE_TIMEOUT, page).await {
            Ok(Ok(page)) => return Ok(Asked::Page(page)),
            Ok(Err(error)) => error,
            Err(_) => SourceError::new("it took longer than 2 minutes"),
        };
        *waits += 1;
        let Some(wait) = error.wait().filter(|_| *waits <= MAX_WAITS) else {
            return Err(ReconcileError::Source(error));
        };
        let wait = wait.min(MAX_WAIT);
        tracing::warn!(
            endpoint = self.position.endpoint,
            source = self.position.source,
            %error,
            seconds = wait.as_secs(),
            "the provider's list of events asks to wait"
        );
        Ok(Asked::Wait(wait, error.to_string()))
    }

    /// What [`Reconcile::dry_run`] returns.
    pub(super) async fn list_missing(&self) -> Result<Vec<MissingDelivery>, ReconcileError> {
        let span = self.position.bounds(&self.limits).await?.span;
        let mut found = Vec::new();
        if span.since > span.until {
            return Ok(found);
        }
        let tenant = self.tenant().await?;
        let (mut seen, mut cursor, mut waits) = (Seen::new(span), None, 0);
        loop {
            let page = match self.ask(span, &cursor, &mut waits).await? {
                Asked::Page(page) => page,
                Asked::Wait(wait, _) => {
                    tokio::time::sleep(wait).await;
                    continue;
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
            cursor = next(page.next, &cursor)?;
            if cursor.is_none() {
                return Ok(found);
            }
        }
    }

    /// The tenant of the path, where the provider has tenants.
    async fn tenant(&self) -> Result<Option<Tenant>, ReconcileError> {
        let head = self.head(Method::POST);
        let secrets = self.reconcile.settings.provider.secrets();
        let found = secrets
            .find(&head)
            .await
            .map_err(|error| ReconcileError::Tenant(error.to_string()))?;
        match found.secrets {
            Ok(_) => Ok(found.tenant),
            Err(error) => Err(ReconcileError::Tenant(error.to_string())),
        }
    }

    /// The head of a request to the route.
    fn head(&self, method: Method) -> Parts {
        let mut head = Request::new(()).into_parts().0;
        head.method = method;
        head.uri = self.reconcile.path.clone();
        head
    }

    /// The events of the round's time of which nothing is known.
    async fn missing(
        &self,
        events: Vec<ListedEvent>,
        tenant: &Option<Tenant>,
        seen: &mut Seen,
    ) -> Result<Vec<Listed>, ReconcileError> {
        let Reconciled { since, until, .. } = seen.reconciled;
        let mut listed = Vec::with_capacity(events.len());
        let mut in_page = HashSet::new();
        for event in events {
            if event.occurred_at < since {
                continue;
            }
            let occurred_at = event.occurred_at;
            let event = match self.identify(event, tenant) {
                Ok(event) => event,
                Err(reason) => {
                    if occurred_at <= until {
                        seen.leave_out(reason);
                    }
                    continue;
                }
            };
            let key = event.delivery.key();
            if occurred_at > until {
                seen.done.insert(key);
                continue;
            }
            seen.reconciled.listed += 1;
            if !seen.done.contains(&key) && in_page.insert(key) {
                listed.push(event);
            }
        }
        if listed.is_empty() {
            return Ok(listed);
        }
        let deliveries: Vec<&Delivery> = listed.iter().map(|one| &one.delivery).collect();
        let places: HashSet<usize> = self
            .position
            .missing(&deliveries)
            .await?
            .into_iter()
            .collect();
        let places_of_all = listed.into_iter().enumerate();
        Ok(places_of_all
            .filter_map(|(place, one)| places.contains(&place).then_some(one))
            .collect())
    }

    /// The delivery that the webhook of an event would have been.
    fn identify(&self, event: ListedEvent, tenant: &Option<Tenant>) -> Result<Listed, String> {
        let settings = &self.reconcile.settings;
        let method = settings.provider.get_methods().first().cloned();
        let mut head = self.head(method.unwrap_or(Method::POST));
        head.headers = event.headers.clone();
        let body = match &event.content {
            Content::Body(body) => {
                let json = HeaderValue::from_static("application/json");
                head.headers.entry(CONTENT_TYPE).or_insert(json);
                body.clone()
            }
            Content::Redelivery(_) => Bytes::new(),
        };
        let verified = settings
            .provider
            .identify(&head, &body)
            .map_err(|error| error.to_string())?;
        let (endpoint, provider) = (settings.endpoint.clone(), settings.provider.shared_name());
        let delivery = Delivery::new(endpoint, provider, tenant.clone(), verified);
        Ok(Listed {
            delivery: delivery.reconciled(),
            head,
            event,
        })
    }

    /// Why a missing delivery cannot be run, if it cannot.
    fn why_unusable(&self, listed: &Listed) -> Option<String> {
        if let Some(reason) = &listed.event.unusable {
            return Some(reason.clone());
        }
        match &listed.event.content {
            Content::Body(body) => {
                let kept = self.reconcile.settings.kept_request(&listed.head, body);
                kept.is_none()
                    .then(|| "its body is larger than `Keep::body_limit`".to_owned())
            }
            Content::Redelivery(_) => None,
        }
    }

    /// Keeps what is missing, or asks for it. Returns how many there were.
    async fn bring_back(
        &self,
        missing: Vec<Listed>,
        seen: &mut Seen,
    ) -> Result<u64, ReconcileError> {
        let settings = &self.reconcile.settings;
        let mut acceptances = Vec::new();
        let mut missed = 0;
        let asked_since = Instant::now();
        for listed in missing {
            if let Some(reason) = self.why_unusable(&listed) {
                seen.leave_out(format!("{}: {reason}", listed.delivery.id()));
                continue;
            }
            match &listed.event.content {
                Content::Body(body) => {
                    if let Some(request) = settings.kept_request(&listed.head, body) {
                        acceptances.push(Acceptance {
                            delivery: listed.delivery,
                            request,
                            begins: false,
                        });
                    }
                }
                Content::Redelivery(redelivery) => {
                    // A page has so few that they are asked for within a turn.
                    if asked_since.elapsed() > TURN / 2 {
                        return Err(ReconcileError::Source(SourceError::new(
                            "it took too long to ask for what is missing",
                        )));
                    }
                    let source = &self.reconcile.source;
                    let asked = tokio::time::timeout(TURN / 3, source.redeliver(redelivery)).await;
                    asked
                        .unwrap_or_else(|_| Err(SourceError::new("it took longer than a minute")))
                        .map_err(ReconcileError::Source)?;
                    seen.done.insert(listed.delivery.key());
                    self.note_missed(&listed.delivery);
                    missed += 1;
                }
            }
        }
        for group in acceptances.chunks(GROUP) {
            missed += self.keep(group).await?;
        }
        Ok(missed)
    }

    /// Keeps deliveries. Returns how many were not known meanwhile.
    async fn keep(&self, group: &[Acceptance]) -> Result<u64, ReconcileError> {
        let settings = &self.reconcile.settings;
        let Some(keep) = &settings.keep else {
            return Err(ReconcileError::NothingKept);
        };
        for one in group {
            if !keep
                .quota
                .has_room_for(&settings.store, &one.delivery)
                .await?
            {
                return Err(ReconcileError::QuotaExhausted);
            }
        }
        let accepted = keep.accept_listed(&settings.store, group).await?;
        let mut missed = 0;
        for (one, accepted) in group.iter().zip(accepted) {
            if let Accepted::New(_) = accepted {
                self.note_missed(&one.delivery);
                missed += 1;
            }
        }
        if missed > 0 {
            keep.note_kept(&settings.store, &settings.endpoint, false);
        }
        Ok(missed)
    }

    fn note_missed(&self, delivery: &Delivery) {
        let settings = &self.reconcile.settings;
        settings.metrics.missed();
        settings.count(Source::Reconciliation, MISSED);
        tracing::info!(
            endpoint = delivery.endpoint(),
            delivery_id = delivery.id().as_str(),
            event_type = delivery.event_type(),
            "a webhook that never came is run"
        );
    }
}

/// The next page. It must not be the same one, or the round would never end.
fn next(next: Option<String>, this: &Option<String>) -> Result<Option<String>, ReconcileError> {
    let error = match &next {
        Some(next) if Some(next) == this.as_ref() => "the list gives the same page as the next one",
        // Postgres cannot store it.
        Some(next) if next.contains('\0') => "the list gives no usable next page",
        _ => return Ok(next),
    };
    Err(ReconcileError::Source(SourceError::new(error)))
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

    fn leave_out(&mut self, reason: String) {
        self.reconciled.unusable += 1;
        // Postgres cannot store NUL.
        self.left_out
            .get_or_insert_with(|| reason.replace('\0', ""));
    }

    fn report(&self, position: &Position, metrics: &Metrics) {
        let Reconciled {
            missed, unusable, ..
        } = self.reconciled;
        let (endpoint, source) = (&*position.endpoint, &*position.source);
        if missed > 0 {
            tracing::warn!(
                endpoint,
                source,
                missed,
                "webhooks never came: they are run as the provider's list has them"
            );
        }
        if let Some(reason) = &self.left_out {
            metrics.reconciliation_failed();
            tracing::warn!(
                endpoint,
                source,
                unusable,
                reason,
                "webhooks never came, and cannot be run"
            );
        }
    }
}
