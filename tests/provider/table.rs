//! The table of presets in `PROVIDERS.md`, which is what the presets themselves say.
//!
//!     UPDATE_PROVIDERS=1 cargo test --all-features --test provider table::

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use idempotent_webhook::presets::{self, Preset};
use idempotent_webhook::{Secret, Source};

const BEGIN: &str = "<!-- The table is written by tests/provider/table.rs. -->\n";

fn table() -> String {
    let mut table = "| preset | signature | body covered | delivery id | id covered | \
                     redelivery window | retry | deadline | handshake |\n\
                     |---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for preset in presets::ALL {
        writeln!(table, "{}", row(preset)).unwrap();
    }
    table
}

fn row(preset: &Preset) -> String {
    let provider = preset.provider(Secret::new("a secret").unwrap());
    let yes = |is: bool| if is { "yes" } else { "**no**" };
    format!(
        "| `{}` | {} | {} | {} | {} | {} | {} | {} s | {} |",
        preset.name(),
        provider.signature_description(),
        yes(provider.signs_body()),
        place(provider.get_delivery_id()),
        yes(provider.signs_delivery_id()),
        time(provider.get_redelivery_window()),
        provider.get_retry(),
        provider.get_response_deadline().as_secs(),
        if provider.answers_handshakes() {
            "answered"
        } else {
            ""
        },
    )
}

fn place(source: &Source) -> String {
    let text = source.to_string();
    let words = text.split(' ').map(|word| match word {
        "header" | "body" | "digest" | "signed" | "value" | "time" | "receipt" | "or" | "and" => {
            word.to_owned()
        }
        name => format!("`{name}`"),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn time(time: Duration) -> String {
    let hours = time.as_secs() / 3600;
    match hours {
        48.. => format!("{} days", hours / 24),
        _ => format!("{hours} hours"),
    }
}

#[test]
fn the_table_says_what_the_presets_say() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("PROVIDERS.md");
    let page = fs::read_to_string(&file).unwrap();
    let (before, found) = page.split_once(BEGIN).unwrap();
    let table = table();
    if std::env::var_os("UPDATE_PROVIDERS").is_some() {
        fs::write(&file, format!("{before}{BEGIN}{table}")).unwrap();
    } else {
        for (found, expected) in found.lines().zip(table.lines()) {
            assert_eq!(found, expected, "run it with UPDATE_PROVIDERS=1");
        }
        assert_eq!(found.len(), table.len(), "run it with UPDATE_PROVIDERS=1");
    }
}

#[test]
fn the_readme_counts_the_presets() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(file).unwrap();
    let count = format!("There are presets for {} providers", presets::ALL.len());
    assert!(readme.contains(&count), "README.md does not say: {count}");
}
