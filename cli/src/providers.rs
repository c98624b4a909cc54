//! `webhook providers`.

use std::fmt::Write;
use std::time::Duration;

use clap::Args;
use idempotent_webhook::{Provider as Preset, Secret};

use crate::preset::Provider;
use crate::{Ended, Failed};

#[derive(Args)]
pub struct Providers {
    /// The provider to describe [default: all providers are listed]
    name: Option<Provider>,
}

/// Passed to a preset instead of a secret, so that the preset reports what kind of secret it needs.
const UNUSED: &str = "(none)";

impl Providers {
    pub fn run(self) -> Result<Ended, Failed> {
        let text = match self.name {
            Some(provider) => one(provider),
            None => all(),
        };
        Ok(Ended {
            text: text.map_err(|error| error.to_string())?,
            is_right: true,
        })
    }
}

fn all() -> Result<String, Box<dyn std::error::Error>> {
    let mut text = String::new();
    writeln!(text, "{:<22}  {:<52}  delivery id", "name", "signature")?;
    for provider in Provider::all() {
        let name = provider.name();
        let preset = provider.with(Secret::new(UNUSED)?);
        let description = preset.description();
        let (signature, id) = (plain(&description.signature), description.delivery_id);
        writeln!(text, "{name:<22}  {signature:<52}  {id}")?;
    }
    writeln!(
        text,
        "\n\"webhook providers NAME\" describes one of them, and what its secret looks like."
    )?;
    Ok(text)
}

fn one(provider: Provider) -> Result<String, Box<dyn std::error::Error>> {
    let preset = provider.with(Secret::new(UNUSED)?);
    let description = preset.description();
    let mut text = format!("{provider}\n\n");
    let mut say = |what: &str, value: &str| writeln!(text, "{what:<14}  {value}");
    say("signature", &plain(&description.signature))?;
    say("covers", &covered(&preset))?;
    say("secret", &secret(&preset))?;
    if preset.signs_time() {
        let past = description.tolerance.past();
        let past = past.map_or("any age".to_owned(), |past| {
            format!("at most {} old", span(past))
        });
        say("tolerance", &past)?;
    }
    say("delivery id", &description.delivery_id.to_string())?;
    if let Some(event_type) = description.event_type {
        say("event type", &event_type.to_string())?;
    }
    let methods: Vec<_> = description.methods.iter().map(|one| one.as_str()).collect();
    say("methods", &methods.join(", "))?;
    say("body", &format!("at most {} bytes", description.body_limit))?;
    say("deadline", &span(description.response_deadline))?;
    let window = span(description.redelivery_window);
    say(
        "redelivery",
        &format!("at most {window} after the first attempt, by itself or by hand"),
    )?;
    let function = provider.name().replace('-', "_");
    write!(
        text,
        "\nhttps://docs.rs/idempotent-webhook/latest/idempotent_webhook/presets/fn.{function}.html\n"
    )?;
    Ok(text)
}

fn covered(preset: &Preset) -> String {
    let parts = [
        ("the body", preset.signs_body()),
        ("a time", preset.signs_time()),
        ("the delivery id", preset.signs_delivery_id()),
        ("the URL (public_url)", preset.signs_url()),
    ];
    let parts: Vec<_> = parts
        .into_iter()
        .filter_map(|(part, is_covered)| is_covered.then_some(part))
        .collect();
    match &*parts {
        [] => "nothing: the secret itself is sent".to_owned(),
        parts => parts.join(", "),
    }
}

/// What the preset reports about a text that is not a real secret.
fn secret(preset: &Preset) -> String {
    match preset.check_secrets() {
        Ok(()) => "the text that the provider shows, as it is".to_owned(),
        Err(error) => format!("not any text: {}", error.reason()),
    }
}

/// Removes the Markdown marks for code.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

/// A duration in the largest unit that divides it, such as `3 days`.
fn span(time: Duration) -> String {
    const UNITS: [(u64, &str); 3] = [(86_400, "day"), (3_600, "hour"), (60, "minute")];
    let seconds = time.as_secs();
    let divides =
        |unit: u64| time.subsec_nanos() == 0 && seconds >= unit && seconds.is_multiple_of(unit);
    let (number, name) = match UNITS.into_iter().find(|(unit, _)| divides(*unit)) {
        Some((unit, name)) => ((seconds / unit).to_string(), name),
        None => (time.as_secs_f64().to_string(), "second"),
    };
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {name}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_exact_in_its_largest_unit() {
        for (milliseconds, expected) in [
            (1_000, "1 second"),
            (1_250, "1.25 seconds"),
            (90_000, "90 seconds"),
            (300_000, "5 minutes"),
            (3_600_000, "1 hour"),
            (259_200_000, "3 days"),
        ] {
            assert_eq!(span(Duration::from_millis(milliseconds)), expected);
        }
    }
}
