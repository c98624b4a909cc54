//! The settings of a layer as JSON, for the dashboard. They are written to Postgres together with the layer's activity
//! (its counts of requests and attempts).

use std::time::Duration;

use http::HeaderName;
use serde_json::{Value, json};

use super::Settings;
use crate::activity::Told;
use crate::presets::{redelivers, switched_off};
use crate::provider::event_types::WantedEvents;
use crate::recovery::What;

impl Settings {
    /// Hands the settings to the activity. Called once a service uses the settings.
    pub(crate) fn tell(&self) {
        if let Some(activity) = &self.counts.activity {
            activity.tell(|| Told {
                version: self.version.clone(),
                settings: self.as_json().to_string(),
            });
        }
    }

    /// One flat object, with durations in seconds. It contains no secret.
    fn as_json(&self) -> Value {
        let provider = &self.verification.provider;
        let keep = self.keeper.as_ref().map(|keeper| &keeper.settings);
        let tolerance = provider.tolerance.past();
        let signature_header = provider.signature_header();
        let events = self.verification.listed_events();
        let names = |names: fn(&WantedEvents) -> &[String]| {
            let names = names(events?).iter().map(|name| storable(name));
            Some(names.collect::<Vec<_>>()).filter(|names| !names.is_empty())
        };
        let versions = provider.expected_versions();
        let retry_delays = keep.map(|keep| keep.schedule.delays());
        json!({
            "provider": storable(provider.name()),
            "switched_off_by_provider": switched_off(provider.name()),
            "redelivered_by_provider": redelivers(provider.name()),
            "expected_versions": (!versions.is_empty())
                .then(|| versions.iter().map(|version| &**version).collect::<Vec<_>>()),
            "version_is_signed": (!versions.is_empty()).then(|| provider.signs_payload_version()),
            "signature_header": signature_header.as_ref().map(HeaderName::as_str),
            // `idempotent_webhook.event_type_problems` reads the following five keys.
            "event_types": names(WantedEvents::handled),
            "ignored_event_types": names(WantedEvents::ignored),
            "ignores_other_events": events.map(|events| events.types().is_some()),
            "event_actions": events.map(|_| provider.has_event_action()),
            "event_types_verified":
                events.map(|_| provider.signs_event_type() && !provider.has_tenants()),
            "tolerance_seconds": tolerance.filter(|_| provider.signs_time()).map(seconds),
            "redelivery_window_seconds": seconds(provider.redelivery_window),
            "body_limit_bytes": provider.body_limit,
            "body_timeout_seconds": seconds(self.verification.body_timeout),
            "handler_timeout_seconds": seconds(self.handler_timeout),
            "in_flight_timeout_seconds": seconds(self.in_flight_timeout),
            "database_timeout_seconds": seconds(self.store.timeout),
            "expected_every_seconds": self.expected_every.map(seconds),
            "retry_after_seconds": seconds(self.verification.retry_after),
            "replay_guard": self.guards_replays,
            "late_claim": self.claims_late,
            "serialize_by": self.serialized_by.as_ref().map(ToString::to_string),
            "keep": keep.map(|keep| match keep.what {
                What::Failed => "failed",
                What::All => "all",
                What::Accepted => "accepted",
            }),
            "acknowledge": keep.is_some_and(|keep| keep.acknowledge),
            "kept_body_limit_bytes": keep.and_then(|keep| keep.body_limit),
            "retry_delays_seconds": retry_delays
                .map(|delays| delays.iter().copied().map(seconds).collect::<Vec<_>>()),
            "processed_for_seconds": keep.and_then(|keep| keep.archived_for).map(seconds),
        })
    }
}

/// Removes NUL, which Postgres cannot store.
fn storable(name: &str) -> String {
    name.replace('\0', "")
}

/// The time in seconds: an integer unless there is a fraction.
fn seconds(time: Duration) -> Value {
    match time.subsec_nanos() {
        0 => time.as_secs().into(),
        _ => time.as_secs_f64().into(),
    }
}
