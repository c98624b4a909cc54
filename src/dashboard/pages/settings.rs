//! The settings of a layer, as a process reported them.

use maud::{Markup, html};
use serde::Serialize;
use serde_json::{Map, Value};
use sqlx::{PgConnection, Row};

use super::super::html::{Timestamp, facts, visible};
use super::super::rows::grouped;

const TOLD: &str = "
    select version, settings::text as settings, extract(epoch from told_at)::float8 as told_at
    from idempotent_webhook.endpoint_settings
    where endpoint = $1
";

/// The name of a reported value that is not a setting. The page of the endpoint shows this value with the numbers.
const SWITCHED_OFF: &str = "switched_off_by_provider";

#[derive(Debug, Serialize)]
pub(super) struct Told {
    version: String,
    at: Timestamp,
    values: Map<String, Value>,
}

impl Told {
    /// A text in Markdown that says what makes the provider stop sending, if the provider documents it.
    pub(super) fn switched_off(&self) -> Option<&str> {
        self.values.get(SWITCHED_OFF)?.as_str()
    }

    /// Whether the layer expects a version that the signature does not cover.
    pub(super) fn version_is_unsigned(&self) -> bool {
        self.values.get("version_is_signed") == Some(&Value::Bool(false))
    }

    /// Whether the provider delivers again by itself after a failure. `None` if this is not known.
    pub(super) fn redelivers(&self) -> Option<bool> {
        self.values.get("redelivered_by_provider")?.as_bool()
    }

    /// For how long after the first request the provider can deliver again, in seconds.
    pub(super) fn redelivery_window(&self) -> Option<f64> {
        self.values.get("redelivery_window_seconds")?.as_f64()
    }

    /// Which deliveries the layer keeps: `failed`, `all` or `accepted`. `None` if it keeps none.
    pub(super) fn keeps(&self) -> Option<&str> {
        self.values.get("keep")?.as_str()
    }

    /// Whether the layer answers failures with success, because it keeps the deliveries.
    pub(super) fn acknowledges(&self) -> bool {
        self.values.get("acknowledge") == Some(&Value::Bool(true))
    }

    /// The header with the signature.
    pub(super) fn signature_header(&self) -> Option<&str> {
        self.values.get("signature_header")?.as_str()
    }
}

pub(super) async fn told(
    connection: &mut PgConnection,
    endpoint: &str,
) -> sqlx::Result<Option<Told>> {
    let row = sqlx::query(TOLD)
        .bind(endpoint)
        .fetch_optional(connection)
        .await?;
    let Some(row) = row else { return Ok(None) };
    // Another version of this crate may have written a different format.
    let values = serde_json::from_str(row.try_get("settings")?).unwrap_or_default();
    Ok(Some(Told {
        version: row.try_get("version")?,
        at: Timestamp(row.try_get("told_at")?),
        values,
    }))
}

pub(super) fn facts_of(told: &Told, now: Timestamp) -> Markup {
    let values: Vec<(String, Markup)> = told
        .values
        .iter()
        .filter(|(name, value)| !value.is_null() && *name != SWITCHED_OFF)
        .map(|(name, value)| {
            let (name, unit) = name_and_unit(name);
            (in_words(name), html! { (visible(&text(value, unit))) })
        })
        .collect();
    let values: Vec<(&str, Option<Markup>)> = values
        .iter()
        .map(|(name, value)| (&**name, Some(value.clone())))
        .collect();
    html! {
        (facts(&values))
        p.muted {
            "Reported by a process"
            @if !told.version.is_empty() { " with version " (visible(&told.version)) }
            ", " (told.at.with_age(now)) "."
        }
    }
}

/// The unit of a setting's numbers.
#[derive(Clone, Copy)]
enum Unit {
    None,
    Seconds,
    Bytes,
}

fn name_and_unit(name: &str) -> (&str, Unit) {
    if let Some(name) = name.strip_suffix("_seconds") {
        return (name, Unit::Seconds);
    }
    match name.strip_suffix("_bytes") {
        Some(name) => (name, Unit::Bytes),
        None => (name, Unit::None),
    }
}

fn in_words(name: &str) -> String {
    let mut words = name.replace('_', " ");
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

fn text(value: &Value, unit: Unit) -> String {
    match (value, unit) {
        (Value::String(text), _) => text.clone(),
        (Value::Array(values), unit) => {
            let values: Vec<String> = values.iter().map(|value| text(value, unit)).collect();
            values.join(", ")
        }
        (Value::Bool(true), _) => "yes".to_owned(),
        (Value::Bool(false), _) => "no".to_owned(),
        (Value::Number(number), Unit::Seconds) => number.as_f64().map_or(String::new(), span),
        (Value::Number(number), Unit::Bytes) => {
            let bytes = number.as_i64().unwrap_or_default();
            grouped(bytes) + " bytes"
        }
        (value, _) => value.to_string(),
    }
}

/// A duration without rounding, in the largest unit that divides it.
fn span(seconds: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(86_400.0, "d"), (3_600.0, "h"), (60.0, "min")];
    let is_whole = |unit: f64| seconds >= unit && seconds % unit == 0.0;
    match UNITS.into_iter().find(|(unit, _)| is_whole(*unit)) {
        Some((unit, name)) => format!("{} {name}", seconds / unit),
        None => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn a_time_is_exact_in_its_largest_unit() {
        for (seconds, expected) in [
            (0.0, "0 s"),
            (1.5, "1.5 s"),
            (30.0, "30 s"),
            (90.0, "90 s"),
            (300.0, "5 min"),
            (10_800.0, "3 h"),
            (2_592_000.0, "30 d"),
        ] {
            assert_eq!(span(seconds), expected);
        }
    }
}
