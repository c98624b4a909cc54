//! The texts of the crate's statements, read from its source code, so that no new statement is left
//! out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Each statement on the crate's tables contains this text.
const SCHEMA: &str = "idempotent_webhook.";

/// The texts of all statements by name. A name consists of a file in `src`, and the constant if
/// there is one.
pub fn statements() -> BTreeMap<String, String> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeMap::new();
    let mut folders = vec![src.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&src).unwrap().display().to_string();
            if path.is_dir() && name != "documentation" {
                folders.push(path);
            } else if name.ends_with(".sql") {
                found.insert(name, fs::read_to_string(path).unwrap());
            } else if name.ends_with(".rs") {
                let source = fs::read_to_string(path).unwrap();
                add_constants(&name, &without_comments_and_tests(&source), &mut found);
            }
        }
    }
    found
}

fn without_comments_and_tests(source: &str) -> String {
    let code = source.split("#[cfg(test)]\nmod ").next().unwrap();
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    code.lines()
        .filter(is_code)
        .fold(String::new(), |code, line| code + line + "\n")
}

/// Adds each constant that is the text of a statement. Fails if a statement is anywhere else.
fn add_constants(file: &str, code: &str, found: &mut BTreeMap<String, String>) {
    let mut rest = code.to_owned();
    for (begin, _) in code.match_indices("const ") {
        let Some((name, value)) = code[begin..].split_once(": &str = ") else {
            continue;
        };
        let name = name.trim_start_matches("const ");
        if !name.chars().all(|c| c.is_ascii_uppercase() || c == '_') {
            continue;
        }
        let value = &value[..end_of(value)];
        let text = expand(value, code);
        if text.contains(SCHEMA) {
            found.insert(format!("{file}:{name}"), text);
            rest = rest.replace(value, "");
        }
    }
    for body in macros(code).into_values() {
        rest = rest.replace(&body, "");
    }
    for text in literals(&rest) {
        let words = ["select", "insert", "update", "delete", "lock"];
        let is_statement = text.contains(SCHEMA) && words.iter().any(|word| text.contains(word));
        assert!(
            !is_statement,
            "{file}: put this statement into a constant: {text}"
        );
    }
}

/// The end of an expression: the first semicolon that is not in a string.
fn end_of(value: &str) -> usize {
    let mut in_text = false;
    let mut before = ' ';
    for (at, c) in value.char_indices() {
        match c {
            '"' if before != '\\' => in_text = !in_text,
            ';' if !in_text => return at,
            _ => {}
        }
        before = c;
    }
    value.len()
}

/// Concatenates the strings in an expression, including those of the macros that it calls.
fn expand(value: &str, code: &str) -> String {
    let macros = macros(code);
    let mut text = String::new();
    let mut rest = value;
    while let Some(at) = rest.find(['"', '!']) {
        if rest[at..].starts_with('"') {
            let literal = &rest[at + 1..];
            let end = end_of_literal(literal);
            text += &unescaped(&literal[..end]);
            rest = &literal[end + 1..];
        } else {
            let name = rest[..at]
                .rsplit(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .unwrap();
            if name == "include_str" {
                return String::new();
            }
            let body = macros.get(name).cloned().or_else(|| imported(name));
            if let Some(body) = body {
                text += &expand(&body, code);
            }
            rest = &rest[at + 1..];
        }
    }
    text
}

/// A macro of another file of the crate.
fn imported(name: &str) -> Option<String> {
    let file = match name {
        "is_listed" | "meets_filter" => "recovery/operator/filter.rs",
        "can_change" => "recovery/operator/operation.rs",
        "begin_own" => "transaction/short_tx.rs",
        _ => return None,
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
    macros(&fs::read_to_string(path).unwrap()).remove(name)
}

/// The bodies of the macros by name.
fn macros(code: &str) -> BTreeMap<String, String> {
    code.split("macro_rules! ")
        .skip(1)
        .map(|part| {
            let (name, body) = part.split_once(' ').unwrap();
            let body = body.split("\n}").next().unwrap();
            (name.to_owned(), body.to_owned())
        })
        .collect()
}

/// The settings at the start of a transaction of the crate's own statements.
pub fn begin_own() -> String {
    expand("begin_own!()", "")
}

/// The start of a claim's transaction.
pub fn begin_claim() -> String {
    let code = include_str!("../../../../src/transaction/store.rs");
    let (_, value) = code.split_once("const BEGIN_CLAIM: &str = ").unwrap();
    expand(&value[..end_of(value)], code)
}

fn literals(code: &str) -> Vec<String> {
    let mut literals = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find('"') {
        let literal = &rest[at + 1..];
        let end = end_of_literal(literal);
        literals.push(literal[..end].to_owned());
        rest = literal.get(end + 1..).unwrap_or_default();
    }
    literals
}

fn end_of_literal(literal: &str) -> usize {
    let mut before = ' ';
    for (at, c) in literal.char_indices() {
        match c {
            '"' if before != '\\' => return at,
            // An escaped backslash escapes nothing.
            '\\' if before == '\\' => before = ' ',
            c => before = c,
        }
    }
    literal.len()
}

/// Resolves those escapes that the statements use.
fn unescaped(literal: &str) -> String {
    let mut text = String::new();
    let mut rest = literal;
    while let Some((before, after)) = rest.split_once("\\\n") {
        text += before;
        rest = after.trim_start();
    }
    text + rest
}
