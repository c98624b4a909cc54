//! Finds the missing deliveries among the events of a page, and brings them back.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method};
use tokio::time::Instant;

use super::error::ReconcileError;
use super::event_source::{Content, EventSource, ListedEvent};
use super::position::{Begun, TURN};
use super::round::{Reconciled, Rounds, Seen};
use crate::provider::delivery::{Delivery, Tenant};
use crate::provider::event_types::Wanted;
use crate::provider_api::source_error::{SourceError, caught};
use crate::recovery::{Acceptance, Accepted};

/// How long a request to send a webhook again may take.
const REDELIVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// The maximum number of deliveries that are kept in one transaction.
const GROUP: usize = 64;

/// An event of the list, and the delivery to which its webhook belongs.
pub(super) struct Listed {
    pub(super) delivery: Delivery,
    head: Parts,
    pub(super) event: ListedEvent,
}

/// The answer to a request to send a webhook again.
enum Redelivered {
    Asked,
    /// The provider will not send the webhook again, however often it is asked.
    Refused(SourceError),
    /// Another process has the turn now.
    LostTurn,
}

impl<S: EventSource> Rounds<'_, S> {
    /// The missing deliveries among these events, within the round's period. An event that cannot be run is marked with
    /// the reason.
    pub(super) async fn missing(
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
            if self.ignores(&event) {
                continue;
            }
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
        let deliveries: Vec<_> = listed
            .iter()
            .map(|one| (&one.delivery, one.event.occurred_at))
            .collect();
        let grace = self.limits.grace;
        let unknown = self.position.unknown(&deliveries, grace).await?;
        let mut unknown = unknown.into_iter().peekable();
        let mut missing = Vec::new();
        for (place, mut one) in listed.into_iter().enumerate() {
            let Some(unknown) = unknown.next_if(|unknown| unknown.place == place) else {
                continue;
            };
            if unknown.may_be_deleted {
                one.event = one
                    .event
                    .unusable("it may have been processed, and its record deleted since");
            } else if unknown.asked_in_vain {
                one.event = one.event.unusable(
                    "its redelivery was requested for more than a week, and it has not arrived",
                );
            }
            missing.push(one);
        }
        Ok(missing)
    }

    /// Whether the layer would ignore the webhook.
    fn ignores(&self, listed: &Listed) -> bool {
        let settings = &self.reconcile.settings;
        let (Some(events), Some(event_type)) = (
            settings.verification.listed_events(),
            listed.delivery.event_type(),
        ) else {
            return false;
        };
        match (&listed.event.content, &listed.event.action) {
            (Content::Body(body), _) => {
                let wanted =
                    settings
                        .verification
                        .check(events, Some(event_type), &listed.head, body);
                matches!(wanted, Wanted::Ignored(_))
            }
            (Content::Redelivery(_), Some(action)) => {
                let qualified = format!("{event_type}.{action}");
                let wanted = events.check(event_type, Some(&qualified));
                matches!(wanted, Wanted::Ignored(_))
            }
            // The list does not give the action of this event, so the layer may handle it.
            (Content::Redelivery(_), None) => events.ignore_all_of(event_type),
        }
    }

    /// Derives the delivery to which the webhook of an event belongs.
    fn identify(&self, event: ListedEvent, tenant: &Option<Tenant>) -> Result<Listed, String> {
        let settings = &self.reconcile.settings;
        let method = settings.verification.provider.methods.first().cloned();
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
            .verification
            .provider
            .identify(&head, &body)
            .map_err(|error| error.to_string())?;
        let (endpoint, provider) = (
            settings.verification.endpoint.clone(),
            settings.verification.provider.shared_name(),
        );
        let delivery = Delivery::new(endpoint, provider, tenant.clone(), verified);
        Ok(Listed {
            delivery: delivery.reconciled(),
            head,
            event,
        })
    }

    /// Why a missing delivery cannot be run. `None` if it can.
    pub(super) fn why_unusable(&self, listed: &Listed) -> Option<String> {
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

    /// Keeps the missing deliveries, or asks the provider to send them again. Returns whether this process kept its
    /// turn to the end.
    pub(super) async fn bring_back(
        &self,
        missing: Vec<Listed>,
        round: &mut Begun,
        seen: &mut Seen,
    ) -> Result<bool, ReconcileError> {
        let settings = &self.reconcile.settings;
        let mut acceptances = Vec::new();
        let mut told_at: Option<Instant> = None;
        for listed in missing {
            if let Some(reason) = self.why_unusable(&listed) {
                seen.leave_out(format!("{}: {reason}", listed.delivery.id()));
                seen.done.insert(listed.delivery.key());
                continue;
            }
            match &listed.event.content {
                Content::Body(body) => {
                    if let Some(request) = settings.kept_request(&listed.head, body) {
                        acceptances.push(Acceptance {
                            delivery: listed.delivery,
                            request,
                            taker: None,
                        });
                    }
                }
                Content::Redelivery(redelivery) => {
                    if told_at.is_none_or(|at| at.elapsed() > TURN / 6) {
                        if !self.position.go_on(round, None).await? {
                            return Ok(false);
                        }
                        told_at = Some(Instant::now());
                    }
                    match self.redeliver(redelivery, round).await? {
                        Redelivered::Asked => {
                            seen.reconciled.missed += 1;
                            if self.position.note_asked(&listed.delivery).await? {
                                self.note_missed(&listed.delivery, round);
                            }
                        }
                        Redelivered::Refused(error) => {
                            seen.leave_out(format!("{}: {error}", listed.delivery.id()));
                        }
                        Redelivered::LostTurn => return Ok(false),
                    }
                    seen.done.insert(listed.delivery.key());
                }
            }
        }
        for group in acceptances.chunks(GROUP) {
            self.keep_missing(group, round, seen).await?;
        }
        Ok(true)
    }

    /// Asks the provider to send a webhook again. Waits if the provider says when to ask again.
    async fn redeliver(
        &self,
        redelivery: &str,
        round: &mut Begun,
    ) -> Result<Redelivered, ReconcileError> {
        let mut waits = 0;
        loop {
            let asked = caught(self.reconcile.source.redeliver(redelivery));
            let error = match tokio::time::timeout(REDELIVERY_TIMEOUT, asked).await {
                Ok(Ok(())) => return Ok(Redelivered::Asked),
                Ok(Err(error)) if error.is_permanent() => return Ok(Redelivered::Refused(error)),
                Ok(Err(error)) => error,
                Err(_) => SourceError::new("it took longer than a minute"),
            };
            waits += 1;
            let Some(wait) = self.wait_after(&error, waits) else {
                return Err(ReconcileError::Source(error));
            };
            if !self.wait(round, wait, &error.to_string()).await? {
                return Ok(Redelivered::LostTurn);
            }
        }
    }

    /// Keeps deliveries, except those that were processed, kept or discarded meanwhile.
    async fn keep_missing(
        &self,
        group: &[Acceptance],
        round: &mut Begun,
        seen: &mut Seen,
    ) -> Result<(), ReconcileError> {
        let settings = &self.reconcile.settings;
        let Some(keep) = &settings.keeper else {
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
        let mut is_news = false;
        for (one, accepted) in group.iter().zip(accepted) {
            if let Accepted::New(_) = accepted {
                seen.reconciled.missed += 1;
                self.note_missed(&one.delivery, round);
                is_news = true;
            }
        }
        if is_news {
            keep.note_kept(&settings.store, &settings.verification.endpoint, false);
        }
        Ok(())
    }

    /// Counts a delivery that was not known to be missing before.
    fn note_missed(&self, delivery: &Delivery, round: &mut Begun) {
        let settings = &self.reconcile.settings;
        round.untold += 1;
        settings.counts.missed();
        tracing::info!(
            endpoint = delivery.endpoint(),
            delivery_id = delivery.id().as_str(),
            event_type = delivery.event_type(),
            "a webhook never arrived: running it"
        );
    }
}
