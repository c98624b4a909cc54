//! `webhook providers`.

use std::fmt::Write;
use std::time::Duration;

use clap::Args;
use idempotent_webhook::{Provider as Preset, Secret};

use crate::preset::Provider;
use crate::{Ended, Failed};

#[derive(Args)]
pub struct Providers {
    /// One of them, for a description
    name: Option<Provider>,
}

/// Instead of a secret, to make a preset say what it needs.
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
        "\n\"webhook providers NAME\" says more of one, such as what its secret is."
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
    say(
        "redelivery",
        &format!("within {}", span(description.redelivery_window)),
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

/// What the preset says about a text that is not its secret.
fn secret(preset: &Preset) -> String {
    match preset.check_secrets() {
        Ok(()) => "the text that the provider shows, as it is".to_owned(),
        Err(error) => format!("not any text: {}", error.reason()),
    }
}

/// Without the marks of code.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

fn span(time: Duration) -> String {
    humantime::format_duration(time).to_string()
}
