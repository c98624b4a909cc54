//! Facts about each provider beyond the settings of its preset: `src/presets/facts/NAME.json`. The facts and the
//! settings together generate the facts in the documentation of the presets (`src/presets/facts/NAME.md`) and the
//! tables of `PROVIDERS.md`.
//!
//!     UPDATE_PROVIDERS=1 cargo test --all-features --test provider facts::

mod checks;
mod documentation;
mod retry;
mod source;
mod statuses;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use idempotent_webhook::presets::{self, Preset};
use idempotent_webhook::{Provider, Secret};
use serde::Deserialize;

use retry::Retry;
use statuses::RedeliveredAfter;

/// The folder of the facts about each provider, and of the pages that are generated from them.
const FACTS: &str = "src/presets/facts";

/// Whether the provider states something, or whether we assume it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Facts {
    /// The page on which the provider documents its webhooks.
    source: String,
    basis: Basis,
    /// The answers that the provider counts as delivered.
    success: String,
    redelivered_after: RedeliveredAfter,
    /// How often and for how long the provider retries.
    schedule: Option<String>,
    retry: Retry,
    switched_off: SwitchedOff,
    /// The answers that count differently towards switching off the endpoint.
    counts: Option<String>,
    deadline: Deadline,
    /// The month in which the facts were last compared with a source, such as `2026-11`.
    checked: String,
    /// The sources that the facts were compared with, as far as somebody has written them down.
    #[serde(default)]
    compared: Vec<Compared>,
    #[serde(default)]
    body_limit_is_published: bool,
    handshake: Option<String>,
    /// The facts that are not confirmed.
    #[serde(default)]
    likely: Vec<Likely>,
    /// Further sentences for the documentation.
    #[serde(default)]
    notes: Vec<String>,
}

/// A comparison of the facts with a source.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Compared {
    /// The address of the source, or the name and the version of a package.
    source: String,
    kind: Kind,
    /// The month of the comparison, such as `2026-11`.
    month: String,
}

/// What the facts were compared with.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// The provider's own pages.
    Documentation,
    /// A copy of the provider's pages, or a quotation from them.
    Copy,
    /// The source code of the sender, if it is public, or of the provider's SDK.
    Code,
    /// Code or pages of a third party.
    SecondHand,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Documentation => "the documentation",
            Self::Copy => "a copy of the documentation",
            Self::Code => "the provider's code",
            Self::SecondHand => "third parties",
        }
    }
}

/// What confirms the signature that the preset verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Basis {
    /// A case of the provider's own test suite, or a delivery that the provider has sent.
    Suite,
    /// An example in the provider's documentation.
    Example,
    Documented,
    SecondHand,
}

impl Basis {
    fn as_str(self) -> &'static str {
        match self {
            Self::Suite => "suite",
            Self::Example => "example",
            Self::Documented => "documented",
            Self::SecondHand => "second-hand",
        }
    }
}

/// What makes the provider stop sending.
#[derive(Deserialize)]
#[serde(from = "String")]
enum SwitchedOff {
    /// Nothing makes the provider stop sending.
    Never,
    /// The provider does not say.
    Unknown,
    When(String),
}

impl From<String> for SwitchedOff {
    fn from(text: String) -> Self {
        match text.as_str() {
            "never" => Self::Never,
            "unknown" => Self::Unknown,
            _ => Self::When(text),
        }
    }
}

impl Facts {
    /// Text about what makes the provider stop sending, and which answers count differently.
    fn switched_off(&self) -> String {
        let when = match &self.switched_off {
            SwitchedOff::Never => "never",
            SwitchedOff::Unknown => "unknown",
            SwitchedOff::When(text) => text,
        };
        match &self.counts {
            Some(counts) => format!("{when}; {counts}"),
            None => when.to_owned(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Deadline {
    Documented,
    Likely,
    Assumed,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Likely {
    Success,
    RedeliveredAfter,
}

impl Facts {
    fn is_likely(&self, what: Likely) -> bool {
        self.likely.contains(&what)
    }

    /// " (likely)", if the fact is only likely.
    fn doubt(&self, what: Likely) -> &'static str {
        if self.is_likely(what) {
            " (likely)"
        } else {
            ""
        }
    }
}

/// A preset, and the facts about its provider.
struct Entry {
    preset: &'static Preset,
    provider: Provider,
    facts: Facts,
}

impl Entry {
    fn name(&self) -> &'static str {
        self.preset.name()
    }
}

/// All presets, in order.
fn entries() -> Vec<Entry> {
    let entries = presets::ALL.iter().map(|preset| Entry {
        preset,
        provider: preset.provider(Secret::new("a secret").unwrap()),
        facts: facts(preset.name()),
    });
    entries.collect()
}

fn facts(preset: &str) -> Facts {
    let file = format!("{FACTS}/{preset}.json");
    let text = fs::read_to_string(path(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// Compares the content of the file with the expected content, or writes the file.
fn compare_or_write(relative: &str, expected: &str) {
    let found = fs::read_to_string(path(relative)).unwrap_or_default();
    if std::env::var_os("UPDATE_PROVIDERS").is_some() {
        if found != expected {
            fs::write(path(relative), expected).unwrap();
        }
        return;
    }
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(
            found, expected,
            "{relative}: run it with UPDATE_PROVIDERS=1"
        );
    }
    assert_eq!(
        found.len(),
        expected.len(),
        "{relative}: run it with UPDATE_PROVIDERS=1"
    );
}

/// The time in whole days if it is two days or more, and otherwise in hours.
fn in_days(time: std::time::Duration) -> String {
    let hours = time.as_secs() / 3600;
    match hours {
        48.. => format!("{} days", hours / 24),
        1 => "1 hour".to_owned(),
        _ => format!("{hours} hours"),
    }
}

/// The time in seconds, with a fraction if there is one.
fn in_seconds(time: std::time::Duration) -> String {
    format!("{} s", time.as_secs_f64())
}
