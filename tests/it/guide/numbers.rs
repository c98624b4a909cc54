//! The numbers of the guarantees: each number in the name of a test is defined in the guide, and the other way round.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{page, root};

/// The numbers that the guide defines, in a heading, in a list, or in a table.
fn defined() -> BTreeSet<String> {
    let in_heading = |line: &str| {
        let (number, _) = line.strip_prefix("## ")?.split_once(':')?;
        // The heading of a family of guarantees also matches, but its letter is not a number.
        (number.len() > 1).then(|| number.to_owned())
    };
    let in_bold = |line: &str| {
        let list = line.strip_prefix("- **");
        let (number, _) = list
            .or_else(|| line.strip_prefix("| **"))?
            .split_once("**")?;
        Some(number.to_owned())
    };
    let page = page("guarantees.md");
    let lines = page.lines();
    let numbers = lines.filter_map(|line| in_heading(line).or_else(|| in_bold(line)));
    numbers.collect()
}

/// The families whose numbers start with a word instead of a letter.
const WORDS: [&str; 3] = ["Deploy", "Growth", "Handle"];

/// The number at the start of a test's name, if there is one: `g5_`, `k4a_` or `growth_1_`.
fn number(test: &str) -> Option<String> {
    for word in WORDS {
        let rest = test.strip_prefix(&format!("{}_", word.to_lowercase()));
        if let Some((digits, _)) = rest.and_then(|rest| rest.split_once('_')) {
            return Some(format!("{word} {digits}"));
        }
    }
    let (number, _) = test.split_once('_')?;
    let digits = number.strip_prefix(|family: char| family.is_ascii_lowercase())?;
    let digits = digits.strip_suffix(['a', 'b']).unwrap_or(digits);
    let is_number = digits.len() <= 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
    // The `a` of a name like `a_delivery_...` is an article.
    let is_family = is_number && (!digits.is_empty() || number == "o");
    let (family, rest) = number.split_at_checked(1)?;
    is_family.then(|| family.to_uppercase() + rest)
}

/// Adds the numbers of all tests in a folder and its subfolders.
fn note(folder: &Path, numbers: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            note(&path, numbers);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            // Each test follows its attribute: `#[test]`, `#[tokio::test]` or `#[tokio::test(...)]`.
            for test in text.split("test]").chain(text.split("test(")).skip(1) {
                let Some((attributes, function)) = test.split_once("fn ") else {
                    continue;
                };
                let is_next = !attributes.contains(['{', ';']);
                numbers.extend(number(function).filter(|_| is_next));
            }
        }
    }
}

#[test]
fn each_number_of_a_test_is_defined_and_each_guarantee_has_a_test() {
    let mut used = BTreeSet::new();
    note(&root().join("tests"), &mut used);
    note(&root().join("src"), &mut used);
    note(&root().join("cli"), &mut used);
    let defined = defined();
    let not_defined: Vec<_> = used.difference(&defined).collect();
    let not_tested: Vec<_> = defined.difference(&used).collect();
    assert!(
        not_defined.is_empty(),
        "in names of tests only: {not_defined:?}"
    );
    assert!(not_tested.is_empty(), "in the guide only: {not_tested:?}");
    assert!(used.len() > 60, "{used:?}");
}
