//! Generates the facts in the documentation of each preset, which includes them from `src/presets/facts/NAME.md`.

use std::fmt::Write;
use std::fs;

use idempotent_webhook::presets;

use super::statuses::{RedeliveredAfter, Statuses};
use super::table::place;
use super::{
    Basis, Compared, Deadline, Entry, FACTS, Likely, SwitchedOff, compare_or_write, entries,
    in_days, in_seconds, path,
};

#[test]
fn the_documentation_says_what_the_presets_and_the_facts_say() {
    for entry in entries() {
        let text = lines(&entry).join("\n") + "\n";
        compare_or_write(&format!("{FACTS}/{}.md", entry.name()), &text);
    }
}

#[test]
fn each_file_of_facts_is_of_a_preset() {
    for file in fs::read_dir(path(FACTS)).unwrap() {
        let file = file.unwrap().path();
        let name = file.file_stem().unwrap().to_str().unwrap();
        let is_of_a_preset = presets::ALL.iter().any(|preset| preset.name() == name);
        assert!(is_of_a_preset, "there is no preset {name}");
    }
}

/// The dashboard shows this text for an endpoint.
#[test]
fn the_dashboard_says_what_switches_an_endpoint_off() {
    let mut file = "//! Written by `tests/provider/facts` from `src/presets/facts`.\n\n\
                    /// What makes a provider stop sending, in Markdown. `None` if the provider does not say.\n\
                    #[rustfmt::skip]\n\
                    pub(crate) fn switched_off(provider: &str) -> Option<&'static str> {\n    \
                    Some(match provider {\n"
        .to_owned();
    for Entry { preset, facts, .. } in entries() {
        if !matches!(facts.switched_off, SwitchedOff::Unknown) {
            let (name, text) = (preset.name(), facts.switched_off());
            writeln!(file, "        {name:?} => {text:?},").unwrap();
        }
    }
    file.push_str("        _ => return None,\n    })\n}\n");
    compare_or_write("src/presets/switched_off.rs", &file);
}

/// The dashboard shows this for a failed delivery. If only some statuses make a provider deliver again, the preset
/// answers with one of these statuses.
#[test]
fn the_dashboard_says_which_providers_deliver_again() {
    let mut file = "//! Written by `tests/provider/facts` from `src/presets/facts`.\n\n\
                    /// Whether a provider delivers again by itself after a failure, if that is known.\n\
                    #[rustfmt::skip]\n\
                    pub(crate) fn redelivers(provider: &str) -> Option<bool> {\n    \
                    Some(match provider {\n"
        .to_owned();
    for Entry { preset, facts, .. } in entries() {
        let redelivers = match facts.redelivered_after {
            RedeliveredAfter::Unknown => continue,
            RedeliveredAfter::Never => false,
            RedeliveredAfter::Failures | RedeliveredAfter::Only(_) | RedeliveredAfter::But(_) => {
                true
            }
        };
        writeln!(file, "        {:?} => {redelivers},", preset.name()).unwrap();
    }
    file.push_str("        _ => return None,\n    })\n}\n");
    compare_or_write("src/presets/redelivers.rs", &file);
}

/// The facts as a list in Markdown.
fn lines(entry: &Entry) -> Vec<String> {
    let Entry { facts, .. } = entry;
    let description = entry.provider.description();
    let mut lines = vec![
        success(entry),
        redelivery(entry),
        format!("- Retry: {}.", facts.retry),
    ];
    lines.push(format!("- Switched off: {}.", facts.switched_off()));
    let deadline = in_seconds(description.response_deadline);
    lines.push(match facts.deadline {
        Deadline::Documented => format!("- Response deadline: {deadline}."),
        Deadline::Likely => format!("- Response deadline: {deadline} (likely)."),
        Deadline::Assumed => {
            format!("- Response deadline: not published; the preset assumes {deadline}.")
        }
    });
    let limit = size(description.body_limit);
    lines.push(if facts.body_limit_is_published {
        format!("- Body limit: {limit}.")
    } else {
        format!("- Body limit: {limit}; the provider publishes none.")
    });
    if let Some(version) = description.payload_version {
        lines.push(format!("- Payload version: {}.", place(version)));
    }
    if description.event_type.is_some() {
        lines.push(event_names(description.event_names));
    }
    lines.push(match &facts.handshake {
        Some(handshake) => format!("- Handshake: {handshake}"),
        None => "- Handshake: none.".to_owned(),
    });
    lines.extend(facts.notes.iter().map(|note| format!("- {note}")));
    let basis = match facts.basis {
        Basis::Suite => {
            "a case from the provider's own test suite, or a delivery that it sent, verifies"
        }
        Basis::Example => "an example in the provider's documentation verifies",
        Basis::Documented => {
            "the provider documents the signature, but none of its examples was verified"
        }
        Basis::SecondHand => {
            "third parties describe the signature; **the provider itself does not**"
        }
    };
    lines.push(format!(
        "- Basis: {basis}. Source: <{}>, checked in {}.",
        facts.source, facts.checked
    ));
    lines.extend(facts.compared.iter().map(|compared| {
        let Compared {
            source,
            kind,
            month,
        } = compared;
        let kind = kind.as_str();
        let source = match source.starts_with("https://") {
            true => format!("<{source}>"),
            false => source.clone(),
        };
        format!("- Compared in {month} with {kind}: {source}.")
    }));
    lines
}

fn event_names(examples: &[String]) -> String {
    let examples: Vec<_> = examples.iter().map(|name| format!("`{name}`")).collect();
    match examples.split_last() {
        Some((last, [])) => format!("- Event names: such as {last}."),
        Some((last, rest)) => format!("- Event names: such as {} or {last}.", rest.join(", ")),
        None => "- Event names: the sender chooses them.".to_owned(),
    }
}

fn success(entry: &Entry) -> String {
    let description = entry.provider.description();
    let doubt = entry.facts.doubt(Likely::Success);
    let mut line = format!("- Success: {}{doubt}", entry.facts.success);
    if let Some(status) = description.success_status {
        write!(
            line,
            "; the layer answers every success with {}",
            status.as_u16()
        )
        .unwrap();
    }
    line + "."
}

fn redelivery(entry: &Entry) -> String {
    let Entry { facts, .. } = entry;
    let description = entry.provider.description();
    let doubt = facts.doubt(Likely::RedeliveredAfter);
    let after = match &facts.redelivered_after {
        RedeliveredAfter::Never => {
            format!(
                "never by itself{doubt}: **a failed delivery is lost, unless the layer [keeps](crate::Keep) it**"
            )
        }
        RedeliveredAfter::Failures => format!("after every failure{doubt}"),
        RedeliveredAfter::Only(statuses) => format!("after {}{doubt} only", list(statuses)),
        RedeliveredAfter::But(statuses) => {
            format!("after every failure except {}{doubt}", list(statuses))
        }
        RedeliveredAfter::Unknown => "it is not known which answers cause it".to_owned(),
    };
    let mut line = format!("- Redelivery: {after}");
    if let Some(schedule) = &facts.schedule {
        write!(line, "; {schedule}").unwrap();
    }
    let window = in_days(description.redelivery_window);
    write!(line, ". The redelivery window is {window}.").unwrap();
    if let Some(failure) = description.failure_status {
        let (failure, rejection) = (failure.as_u16(), description.rejection_status.as_u16());
        write!(
            line,
            " The layer answers failures and rejections with {failure}"
        )
        .unwrap();
        if rejection != failure {
            write!(line, ", and a wrong signature with {rejection}").unwrap();
        }
        line.push('.');
    } else if description.rejection_status != http::StatusCode::UNAUTHORIZED {
        let rejection = description.rejection_status.as_u16();
        write!(
            line,
            " The layer answers a wrong signature with {rejection}."
        )
        .unwrap();
    }
    line
}

fn list(statuses: &[Statuses]) -> String {
    let texts: Vec<_> = statuses.iter().map(ToString::to_string).collect();
    match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => texts.concat(),
    }
}

fn size(bytes: usize) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1024 * 1024) => format!("{} MiB", bytes / (1024 * 1024)),
        _ if bytes.is_multiple_of(1024) => format!("{} KiB", bytes / 1024),
        _ => format!("{bytes} bytes"),
    }
}
