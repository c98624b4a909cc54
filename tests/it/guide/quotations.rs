//! Markdown cannot include a file, so the pages of the guide contain copies. In front of each copy, a comment names the
//! file. To update the copies:
//!
//!     UPDATE_GUIDE=1 cargo test --test it guide::quotations

use std::fs;

use super::{pages, root};

/// The page with up-to-date copies, and the number of files in it.
fn quoted(page: &str) -> (String, usize) {
    let (mut text, mut count) = (String::new(), 0);
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        let Some(file) = line
            .strip_prefix("<!-- ")
            .and_then(|line| line.strip_suffix(" -->"))
        else {
            continue;
        };
        let end = match lines.next_if(|line| line.starts_with("```")) {
            Some(fence) => {
                text.push_str(fence);
                text.push('\n');
                "```"
            }
            None => "",
        };
        while lines.next_if(|line| *line != end).is_some() {}
        let file = root().join("src/documentation").join(file);
        text.push_str(&fs::read_to_string(file).unwrap());
        count += 1;
    }
    (text, count)
}

#[test]
fn the_guide_quotes_its_files_as_they_are() {
    let mut files = 0;
    for (page, text) in pages() {
        let (quoted, count) = quoted(&text);
        files += count;
        if std::env::var_os("UPDATE_GUIDE").is_some() {
            fs::write(&page, quoted).unwrap();
        } else {
            assert!(
                quoted == text,
                "{}: run it with UPDATE_GUIDE=1",
                page.display()
            );
        }
    }
    assert!(files >= 9, "{files}");
}
