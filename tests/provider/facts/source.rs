//! The handwritten part of each preset's documentation, in the preset's source file.

use std::fs;
use std::time::Duration;

use idempotent_webhook::presets::Preset;
use idempotent_webhook::provider::signature::Tolerance;

use super::{entries, path};

/// The source of a preset, and the lines of documentation in it.
fn documentation(preset: &Preset) -> (String, Vec<String>) {
    let function = match preset.name() {
        "box" => "box_com".to_owned(),
        name => name.replace('-', "_"),
    };
    let files = [
        format!("src/presets/{function}.rs"),
        format!("src/presets/{function}/mod.rs"),
    ];
    let source = files
        .iter()
        .find_map(|file| fs::read_to_string(path(file)).ok());
    let source = source.unwrap_or_else(|| panic!("{files:?}"));
    let lines = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("///"));
    let lines = lines.map(|line| line.trim().to_owned()).collect();
    (source, lines)
}

#[test]
fn the_documentation_of_each_preset_includes_its_facts() {
    for entry in entries() {
        let (source, _) = documentation(entry.preset);
        let included = format!("facts/{}.md\")]", entry.name());
        assert!(
            source
                .lines()
                .any(|line| line.starts_with("#[doc = include_str!(") && line.ends_with(&included)),
            "{}: `#[doc = include_str!(..)]` of its facts is missing",
            entry.name()
        );
    }
}

/// What follows "- Tolerance: ", up to the end of its sentence.
fn tolerance(lines: &[String]) -> Option<String> {
    let begin = lines
        .iter()
        .position(|line| line.starts_with("- Tolerance: "))?;
    let rest = lines.get(begin + 1..)?.iter();
    let more = rest.take_while(|line| !line.starts_with("- ") && !line.is_empty());
    let text: Vec<_> = lines
        .get(begin)
        .into_iter()
        .chain(more)
        .map(String::as_str)
        .collect();
    let text = text.join(" ");
    let text = text.strip_prefix("- Tolerance: ")?;
    Some(text.split(['.', ';', ':']).next()?.to_owned())
}

/// The first time in a text, such as `30 days`.
fn time(text: &str) -> Option<Duration> {
    let words: Vec<_> = text.split([' ', ',']).collect();
    words.windows(2).find_map(|pair| {
        let [count, unit] = pair else { return None };
        let count: u64 = match *count {
            "a" | "one" => 1,
            count => count.parse().ok()?,
        };
        let seconds = match unit.trim_end_matches('s') {
            "second" => 1,
            "minute" => 60,
            "hour" => 60 * 60,
            "day" => 24 * 60 * 60,
            _ => return None,
        };
        Some(Duration::from_secs(count * seconds))
    })
}

/// W10: the tolerance in the code applies, but people read the tolerance in the prose, so the two
/// must be equal.
#[test]
fn the_tolerance_in_prose_is_that_of_the_code() {
    let mut compared = 0;
    for entry in entries() {
        let name = entry.name();
        let (_, lines) = documentation(entry.preset);
        // Some pages, such as Clerk's, state the tolerance. Others, such as Svix's, refer to
        // Standard Webhooks.
        let Some(said) = tolerance(&lines) else {
            let refers = lines
                .iter()
                .any(|line| line.contains("[`standard_webhooks`]"));
            assert!(
                !entry.provider.signs_time() || refers,
                "{name} does not say its tolerance"
            );
            continue;
        };
        let tolerance = entry.provider.description().tolerance;
        match tolerance.past().filter(|_| entry.provider.signs_time()) {
            None => assert!(
                said.starts_with("any age") || said.contains("the token"),
                "{name}: {said}"
            ),
            // The preset has its own scheme, in which the tolerance is a leeway for the times in a
            // token.
            Some(_) if said.contains("the token") => {}
            Some(past) => {
                let sides = match tolerance == Tolerance::past_only(past) {
                    true => "any time in the future",
                    false => "on both sides",
                };
                assert!(said.contains(sides), "{name}: {said}, but {sides}");
                assert_eq!(time(&said), Some(past), "{name}: {said}");
                compared += 1;
            }
        }
    }
    assert!(compared > 50, "{compared}");
}
