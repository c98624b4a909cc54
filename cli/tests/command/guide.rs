//! The examples of the command in the guide.

use crate::run::{run, webhook};

const GUIDE: &str = include_str!("../../../src/documentation/answers.md");

/// The lines of the guide after this line, up to the end of the code block.
fn block(first: &str) -> Vec<&'static str> {
    let block = GUIDE.lines().skip_while(|line| *line != first).skip(1);
    block.take_while(|line| *line != "```").collect()
}

#[test]
fn the_guide_shows_what_the_command_says() {
    let capture = block("```http").join("\n");
    let verify = ["verify", "github", "-"];

    let found = webhook("It's a Secret to Everybody", &verify, capture.as_bytes());
    found.ends(1);
    let shown = block("$ webhook verify github capture.http").join("\n");
    assert_eq!(found.out.trim_end(), shown);

    let other = run(Some("another"), &verify, capture.as_bytes());
    other.ends(1);
    let shown = block("$ WEBHOOK_SECRET=another webhook verify github capture.http");
    let (dots, end) = shown.split_first().unwrap();
    assert_eq!(*dots, "...");
    assert!(
        other.out.trim_end().ends_with(&end.join("\n")),
        "{}",
        other.out
    );
}
