//! The map of the repository: each path in it exists, and each folder is in it.

use std::fs;

use super::root;

const PAGE: &str = include_str!("../../../CONTRIBUTING.md");

/// The folders and files that contain sources.
const TOP: [&str; 8] = [
    "src/",
    "tests/",
    "migrations/",
    "benches/",
    "examples/",
    "fuzz/",
    "cli/",
    ".ci/",
];

/// `NAME` in a path is a placeholder.
fn is_there(path: &str) -> bool {
    path.contains("NAME") || root().join(path).exists()
}

#[test]
fn each_file_of_the_map_is_there() {
    // Skips code blocks, whose lines may be commands.
    let texts = PAGE.split("```").step_by(2);
    let quoted = texts.flat_map(|text| text.split('`').skip(1).step_by(2));
    let paths = quoted.filter(|quoted| TOP.iter().any(|top| quoted.starts_with(top)));
    let paths: Vec<_> = paths.collect();
    assert!(paths.len() > 30, "{paths:?}");
    for path in paths {
        assert!(is_there(path), "{path} is in CONTRIBUTING.md only");
    }
}

/// A row of the map names files of its folder, such as `attempt.rs` in the row of
/// `src/layer/request/`.
#[test]
fn each_file_of_a_folder_of_the_map_is_in_that_folder() {
    let mut files = 0;
    for row in PAGE.lines().filter(|line| line.starts_with("| `")) {
        let quoted: Vec<_> = row.split('`').skip(1).step_by(2).collect();
        let (folders, others): (Vec<_>, Vec<_>) =
            quoted.into_iter().partition(|quoted| quoted.contains('/'));
        for file in others.into_iter().filter(|other| other.ends_with(".rs")) {
            let is_there = folders
                .iter()
                .any(|folder| root().join(folder).join(file).exists());
            assert!(is_there, "{file} is in none of {folders:?}");
            files += 1;
        }
    }
    assert!(files >= 5, "{files}");
}

#[test]
fn the_map_has_each_folder() {
    for top in ["src", "tests"] {
        for folder in fs::read_dir(root().join(top)).unwrap() {
            let folder = folder.unwrap();
            if folder.file_type().unwrap().is_dir() {
                let name = folder.file_name();
                let path = format!("`{top}/{}/", name.to_str().unwrap());
                assert!(PAGE.contains(&path), "CONTRIBUTING.md has no {path}");
            }
        }
    }
}
