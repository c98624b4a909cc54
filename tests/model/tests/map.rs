//! Checks the comments on the guards, which map each guard to its code in the library. Each file that a comment names
//! must exist, and must contain each piece of code that the comment quotes.

use std::fs;
use std::path::{Path, PathBuf};

const GUARDS: &str = include_str!("../src/guards.rs");

/// The paths of the library's files.
fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("src"), root.join("migrations")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    files
}

/// Each guard's documentation and name.
fn guards() -> Vec<(String, &'static str)> {
    let (_, list) = GUARDS.split_once("pub enum Guard {").unwrap();
    let (list, _) = list.split_once("\n}").unwrap();
    let mut guards = Vec::new();
    let mut docs = String::new();
    for line in list.lines().map(str::trim) {
        match line.strip_prefix("/// ") {
            Some(text) => docs = docs + text + " ",
            None if line.ends_with(',') => {
                guards.push((std::mem::take(&mut docs), line.trim_end_matches(',')));
            }
            None => {}
        }
    }
    guards
}

fn is_file(quoted: &str) -> bool {
    quoted.ends_with(".rs") || quoted.ends_with(".sql")
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn each_guard_is_in_a_file_that_is_there_and_has_what_is_quoted_of_it() {
    let files = files();
    let guards = guards();
    assert!(guards.len() > 50, "{}", guards.len());
    for (docs, guard) in guards {
        let quoted: Vec<_> = docs.split('`').skip(1).step_by(2).collect();
        let (named, code): (Vec<_>, Vec<_>) = quoted.into_iter().partition(|text| is_file(text));
        assert!(!named.is_empty(), "{guard} is in no file");
        let mut text = String::new();
        for name in named {
            let mut found = files.iter().filter(|path| path.ends_with(name)).peekable();
            assert!(found.peek().is_some(), "{guard}: there is no {name}");
            for path in found {
                text += &words(&fs::read_to_string(path).unwrap());
            }
        }
        for code in code {
            assert!(
                text.contains(&words(code)),
                "{guard}: its files do not have {code}"
            );
        }
    }
}
