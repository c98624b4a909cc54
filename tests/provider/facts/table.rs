//! The tables in `PROVIDERS.md`.

use std::fmt::Write;
use std::fs;

use idempotent_webhook::Source;
use idempotent_webhook::presets;

use super::{Deadline, Entry, Likely, compare_or_write, entries, in_days, in_seconds, path};

const BEGIN: &str = "<!-- The tables are written by tests/provider/facts/table.rs. -->\n";

#[test]
fn the_tables_say_what_the_presets_and_the_facts_say() {
    let page = fs::read_to_string(path("PROVIDERS.md")).unwrap();
    let (before, _) = page.split_once(BEGIN).unwrap();
    let tables = format!("{before}{BEGIN}{}", tables());
    compare_or_write("PROVIDERS.md", &tables);
}

fn tables() -> String {
    let entries = entries();
    let mut text =
        "| preset | signature | body covered | delivery id | id covered | redelivery window | \
                    retry | deadline | version | handshake | basis |\n\
                    |---|---|---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for entry in &entries {
        writeln!(text, "{}", signature_row(entry)).unwrap();
    }
    text.push_str(ANSWERS);
    for entry in &entries {
        writeln!(text, "{}", answers_row(entry)).unwrap();
    }
    text
}

fn signature_row(entry: &Entry) -> String {
    let Entry {
        provider, facts, ..
    } = entry;
    let description = provider.description();
    let yes = |is: bool| if is { "yes" } else { "**no**" };
    let doubt = match facts.deadline {
        Deadline::Documented => "",
        Deadline::Likely => " (likely)",
        Deadline::Assumed => " (assumed)",
    };
    format!(
        "| `{}` | {} | {} | {} | {} | {} | {} | {}{doubt} | {} | {} | [{}]({}) |",
        entry.name(),
        description.signature,
        yes(provider.signs_body()),
        place(description.delivery_id),
        yes(provider.signs_delivery_id()),
        in_days(description.redelivery_window),
        facts.retry,
        in_seconds(description.response_deadline),
        description.payload_version.map(place).unwrap_or_default(),
        if provider.answers_handshakes() {
            "answered"
        } else {
            ""
        },
        facts.basis.as_str(),
        facts.source,
    )
}

pub(super) fn place(source: &Source) -> String {
    let text = source.to_string();
    let words = text.split(' ').map(|word| match word {
        "header" | "body" | "digest" | "signed" | "value" | "time" | "receipt" | "or" | "and" => {
            word.to_owned()
        }
        name => format!("`{name}`"),
    });
    words.collect::<Vec<_>>().join(" ")
}

const ANSWERS: &str = "
## What each answer makes the provider do

Each cell has the status that the layer answers, and whether the provider delivers again after it by itself:
*again*, or **final**. \"Unknown\" is documented nowhere; \"likely\" is not confirmed. If a 4xx is final and
another answer makes the provider deliver again, the preset answers 503 or 429 in its place, to a wrong
signature as well, since the secret may have been changed at the provider first. The layer's own answers are 401
for the signature, 400, 408 and 413 for a request that cannot be read, 500 and 503 for a failure. The
handler's 4xx stays what it is, unless the preset answers each failure with one status; 410, after which some
senders delete the endpoint, becomes 500.

- **Success**: the statuses that the provider counts as delivered. If it insists on one, the layer answers every
  success with it, after the colon.
- **Switched off**: when it disables the endpoint or the subscription.

The name leads to the source.

| preset | success | wrong signature | unreadable request | failure | the handler's 4xx | switched off |
|---|---|---|---|---|---|---|
";

fn answers_row(entry: &Entry) -> String {
    let Entry {
        provider, facts, ..
    } = entry;
    let description = provider.description();
    let failure = description.failure_status.map(|status| status.as_u16());
    let cell = |ours: &[u16]| {
        let ours = failure.map_or(ours.to_vec(), |status| vec![status]);
        effect(entry, &ours)
    };
    let mut success = format!("{}{}", facts.success, facts.doubt(Likely::Success));
    if let Some(status) = description
        .success_status
        .map(|status| status.as_u16().to_string())
        && status != facts.success
    {
        write!(success, ": {status}").unwrap();
    }
    format!(
        "| [`{}`]({}) | {success} | {} | {} | {} | {} | {} |",
        entry.name(),
        facts.source,
        effect(entry, &[description.rejection_status.as_u16()]),
        cell(&[400, 408, 413]),
        cell(&[500, 503]),
        match failure {
            Some(_) => cell(&[]),
            None => after_any_4xx(entry),
        },
        facts.switched_off(),
    )
}

/// The table cell for what the provider does after an answer with one of these statuses.
fn effect(entry: &Entry, statuses: &[u16]) -> String {
    let doubt = entry.facts.doubt(Likely::RedeliveredAfter);
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for status in statuses {
        let then = match entry.facts.redelivered_after.contains(*status) {
            Some(true) => "again",
            Some(false) => "**final**",
            None => "unknown",
        };
        match groups.iter_mut().find(|(known, _)| *known == then) {
            Some((_, among)) => among.push(status.to_string()),
            None => groups.push((then, vec![status.to_string()])),
        }
    }
    let groups = groups.iter().map(|(then, among)| match *then {
        "unknown" => format!("{}: {then}", among.join(", ")),
        _ => format!("{}: {then}{doubt}", among.join(", ")),
    });
    groups.collect::<Vec<_>>().join("; ")
}

/// The table cell for all 4xx statuses: "again", if the provider delivers again after each of them. 410 is left out,
/// because the layer never answers it.
fn after_any_4xx(entry: &Entry) -> String {
    let after = &entry.facts.redelivered_after;
    let doubt = entry.facts.doubt(Likely::RedeliveredAfter);
    let is_final: Vec<_> = (400..500)
        .filter(|status| *status != 410 && after.contains(*status) == Some(false))
        .collect();
    match (after.contains(400), &*is_final) {
        (None, _) => "unknown".to_owned(),
        (_, []) => format!("again{doubt}"),
        (_, all) if all.len() == 99 => format!("**final**{doubt}"),
        (_, some) => effect(entry, some),
    }
}

#[test]
fn the_pages_count_the_presets() {
    let count = presets::ALL.len();
    let pages = [
        (
            "README.md",
            format!("There are presets for {count} providers"),
        ),
        ("CHANGELOG.md", format!("`presets`: {count} providers")),
        ("cli/src/main.rs", format!("for {count} providers.")),
        ("cli/README.md", format!("webhooks of {count} providers")),
        (
            "src/documentation/compared_with.md",
            format!("with the {count} presets"),
        ),
        (
            "src/documentation/compared_with.md",
            format!("how {count} providers sign"),
        ),
        (
            "src/documentation/providers.md",
            format!("for each of {count} providers,"),
        ),
    ];
    let silent = pages.into_iter().filter(|(file, text)| {
        let page = fs::read_to_string(path(file)).unwrap();
        !page.contains(text)
    });
    let silent: Vec<_> = silent.collect();
    assert!(silent.is_empty(), "these do not say so: {silent:#?}");
}
