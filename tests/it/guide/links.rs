//! Each link of the guide leads somewhere, both on a code host and in rustdoc.
//!
//! A page defines its links at its end: links to other pages by file, and links to items by their address at docs.rs.
//! In rustdoc, the definitions in `links.md` take precedence. They lead to the same targets by the names of modules and
//! items, so rustdoc checks them. To update `links.md`:
//!
//!     UPDATE_GUIDE=1 cargo test --test it guide::links

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use pulldown_cmark::{BrokenLink, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::{page, pages, root};

const DOCS_RS: &str = "https://docs.rs/idempotent-webhook/latest/idempotent_webhook/";

struct Links {
    /// Targets by label.
    defined: BTreeMap<String, String>,
    used: BTreeSet<String>,
    undefined: Vec<String>,
    inline: Vec<String>,
    anchors: BTreeSet<String>,
}

fn links(text: &str) -> Links {
    let mut undefined = Vec::new();
    let broken = |link: BrokenLink<'_>| {
        undefined.push(link.reference.to_string());
        None
    };
    let parser = Parser::new_with_broken_link_callback(text, Options::ENABLE_TABLES, Some(broken));
    let definitions = parser.reference_definitions().iter();
    let defined = definitions
        .map(|(label, definition)| (label.to_owned(), definition.dest.to_string()))
        .collect();
    let (mut used, mut inline, mut anchors) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
    let mut heading = None;
    for event in parser {
        match event {
            Event::Start(Tag::Link {
                link_type: LinkType::Inline,
                dest_url,
                ..
            }) => {
                inline.push(dest_url.to_string());
            }
            Event::Start(Tag::Link { id, .. }) => {
                used.insert(id.to_lowercase());
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => anchors.extend(heading.take()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            _ => {}
        }
    }
    let anchors = anchors.iter().map(|heading| anchor(heading)).collect();
    Links {
        defined,
        used,
        undefined,
        inline,
        anchors,
    }
}

/// The anchor that code hosts and rustdoc generate for a heading.
fn anchor(heading: &str) -> String {
    let dashes = heading.to_lowercase().replace(' ', "-");
    dashes
        .chars()
        .filter(|char| char.is_alphanumeric() || matches!(char, '-' | '_'))
        .collect()
}

/// Whether the file of a link exists and has the heading that the link names.
fn leads_somewhere(target: &str) -> bool {
    let (file, fragment) = target
        .split_once('#')
        .map_or((target, None), |(file, fragment)| (file, Some(fragment)));
    let Ok(text) = fs::read_to_string(root().join("src/documentation").join(file)) else {
        return false;
    };
    fragment.is_none_or(|fragment| links(&text).anchors.contains(fragment))
}

/// The name of a link's target in rustdoc, or `None` if the target is elsewhere.
fn in_rustdoc(target: &str) -> Option<String> {
    let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
    let fragment_after = |path: String| match fragment {
        "" => path,
        fragment => format!("{path}#{fragment}"),
    };
    if path == "../../PROVIDERS.md" {
        return Some(fragment_after(
            "mod@crate::documentation::provider_table".to_owned(),
        ));
    }
    if let Some(page) = path.strip_suffix(".md") {
        return Some(fragment_after(format!("mod@crate::documentation::{page}")));
    }
    let path = path.strip_prefix(DOCS_RS)?;
    let (modules, item) = path.rsplit_once('/').unwrap_or(("", path));
    let modules = modules.split('/').filter(|module| !module.is_empty());
    let module = modules.fold("crate".to_owned(), |path, module| {
        format!("{path}::{module}")
    });
    let Some((kind, name)) = item
        .strip_suffix(".html")
        .and_then(|item| item.split_once('.'))
    else {
        return Some(fragment_after(format!("mod@{module}")));
    };
    let method = fragment
        .strip_prefix("method.")
        .or_else(|| fragment.strip_prefix("tymethod."));
    Some(match method {
        Some(method) => format!("method@{module}::{name}::{method}"),
        None => fragment_after(format!("{kind}@{module}::{name}")),
    })
}

#[test]
fn no_link_of_the_guide_is_dead() {
    let mut dead = Vec::new();
    let mut labels: BTreeMap<String, (String, String)> = BTreeMap::new();
    for (page, text) in pages() {
        let Some(name) = page
            .strip_prefix(root().join("src/documentation"))
            .ok()
            .and_then(Path::to_str)
        else {
            continue;
        };
        if matches!(name, "links.md" | "promise.md") {
            continue;
        }
        let links = links(&text);
        let mut say = |what: String| dead.push(format!("{name}: {what}"));
        for label in links.undefined {
            say(format!("[{label}] is not defined"));
        }
        for target in links.inline {
            match target.strip_prefix('#') {
                Some(fragment) if links.anchors.contains(fragment) => {}
                None if target.starts_with("https://") => {}
                // Rustdoc has no page for such a file.
                _ => say(format!(
                    "({target}) is neither a heading of this page nor an address"
                )),
            }
        }
        for (label, target) in links.defined {
            if !links.used.contains(&label.to_lowercase()) {
                say(format!("[{label}] is not used"));
            }
            if !target.starts_with("https://") && !leads_somewhere(&target) {
                say(format!("[{label}]: {target} leads nowhere"));
            }
            let first = labels
                .entry(label.to_lowercase())
                .or_insert_with(|| (label, target.clone()));
            if first.1 != target {
                say(format!(
                    "[{}]: {target} is {} on another page",
                    first.0, first.1
                ));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));

    let definitions = labels
        .into_values()
        .filter_map(|(label, target)| Some(format!("[{label}]: {}\n", in_rustdoc(&target)?)));
    let definitions: String = definitions.collect();
    assert!(definitions.lines().count() > 100, "{definitions}");
    if std::env::var_os("UPDATE_GUIDE").is_some() {
        fs::write(root().join("src/documentation/links.md"), definitions).unwrap();
    } else {
        assert!(
            page("links.md") == definitions,
            "links.md: run it with UPDATE_GUIDE=1"
        );
    }
}

/// If a page or a heading moves, the links to it must change as well.
#[test]
fn no_link_to_the_guide_is_dead() {
    let mut texts = vec![
        (
            root().join("README.md"),
            "/idempotent_webhook/documentation/",
        ),
        (
            root().join("llms.txt"),
            "/idempotent_webhook/documentation/",
        ),
    ];
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                texts.push((path, "crate::documentation::"));
            }
        }
    }
    let mut checked = 0;
    for (path, prefix) in texts {
        let text = fs::read_to_string(&path).unwrap();
        for link in text.split(prefix).skip(1) {
            let end =
                |char: char| !(char.is_alphanumeric() || matches!(char, '_' | '-' | '#' | '/'));
            let link = link
                .split(end)
                .next()
                .unwrap()
                .trim_end_matches('/')
                .replace("/#", "#");
            let link = if link.is_empty() { "README" } else { &link };
            let target = match link.strip_prefix("provider_table") {
                Some(fragment) => format!("../../PROVIDERS.md{fragment}"),
                None => match link.split_once('#') {
                    Some((page, fragment)) => format!("{page}.md#{fragment}"),
                    None => format!("{link}.md"),
                },
            };
            assert!(leads_somewhere(&target), "{}: {link}", path.display());
            checked += 1;
        }
    }
    assert!(checked >= 20, "{checked}");
}
