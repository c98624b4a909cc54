//! The figures on the page about how the project is checked.

use std::fs;
use std::path::{Path, PathBuf};

use idempotent_webhook::presets;
use serde_json::Value;

use super::{page, root};

pub(super) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path, extension));
        } else if path.extension().is_some_and(|it| it == extension) {
            files.push(path);
        }
    }
    files
}

fn texts(folder: &str, extension: &str) -> Vec<String> {
    let files = files(&root().join(folder), extension).into_iter();
    files
        .map(|file| fs::read_to_string(file).unwrap())
        .collect()
}

/// The count rounded down to hundreds, such as `1,000`.
fn hundreds(count: usize) -> String {
    let hundreds = count / 100;
    format!("{},{}00", hundreds / 10, hundreds % 10)
}

/// How many lines start with one of these texts.
fn lines(text: &str, beginnings: &[&str]) -> usize {
    let begins = |line: &&str| beginnings.iter().any(|it| line.trim().starts_with(it));
    text.lines().filter(begins).count()
}

/// The number of lines of code, without tests and comments.
fn code(text: &str) -> usize {
    let text = text.split("\n#[cfg(test)]\nmod ").next().unwrap();
    let lines = text.lines().map(str::trim);
    let is_code =
        |line: &&str| !line.is_empty() && !line.starts_with("//") && !line.starts_with("--");
    lines.filter(is_code).count()
}

fn code_of(paths: &[&str]) -> usize {
    let texts = paths.iter().flat_map(|path| match path.ends_with(".rs") {
        true => vec![fs::read_to_string(root().join(path)).unwrap()],
        false => [texts(path, "rs"), texts(path, "sql")].concat(),
    });
    texts.map(|text| code(&text)).sum()
}

#[test]
fn the_figures_of_the_checks_are_those_of_the_tree() {
    let page = page("checked.md");
    let says =
        |figure: String| assert!(page.contains(&figure), "checked.md does not say: {figure}");

    let tests = texts("tests/it", "rs");
    let tests = tests
        .iter()
        .map(|text| lines(text, &["#[test]", "#[tokio::test"]));
    says(format!("has more than {}.", hundreds(tests.sum())));

    let scenarios = fs::read_to_string(root().join("tests/under_fire/main.rs")).unwrap();
    let scenarios = scenarios.lines().filter(|line| line.contains("\" => "));
    says(format!("{} scenarios", scenarios.count()));

    let guards = fs::read_to_string(root().join("tests/model/src/guards.rs")).unwrap();
    let (_, guards) = guards.split_once("pub enum Guard {\n").unwrap();
    let (guards, _) = guards.split_once("\n}").unwrap();
    let count = guards
        .lines()
        .filter(|line| line.ends_with(',') && !line.contains("//"));
    says(format!("**The model** has {} guards", count.count()));

    let vectors = texts("tests/vectors", "json");
    let cases = vectors.iter().map(|text| {
        let cases: Vec<Value> = serde_json::from_str(text).unwrap();
        cases.len()
    });
    says(format!("More than {} cases", hundreds(cases.sum())));
    says(format!("for {} presets", presets::ALL.len()));

    let corpora = fs::read_to_string(root().join("tests/corpora/payloads.json")).unwrap();
    let corpora: Vec<Value> = serde_json::from_str(&corpora).unwrap();
    let payloads = corpora
        .iter()
        .map(|one| one["payloads"].as_array().unwrap().len());
    let mut repositories: Vec<_> = corpora
        .iter()
        .map(|one| one["repository"].as_str())
        .collect();
    repositories.dedup();
    says(format!(
        "{} payloads of {} public repositories",
        payloads.sum::<usize>(),
        repositories.len()
    ));

    let targets = files(&root().join("fuzz/fuzz_targets"), "rs").len();
    says(format!("{targets} targets"));

    let heart = [
        "src/layer/request",
        "src/transaction",
        "src/layer/idempotent_webhook.rs",
    ];
    let (heart, all) = (code_of(&heart), code_of(&["src"]));
    says("is about 5,000 lines without tests and comments, about a tenth of `src`".to_owned());
    assert!((4_500..6_000).contains(&heart), "{heart}");
    assert!((all / 12..all / 8).contains(&heart), "{heart} of {all}");
    says("Presets and signatures are a third of `src`".to_owned());
    let signatures = code_of(&["src/presets", "src/provider"]);
    assert!(
        (all * 3 / 10..all * 4 / 10).contains(&signatures),
        "{signatures} of {all}"
    );
}
