//! Small histories by hand, for each rule those that keep it and those that break it.

use super::History;
use super::check::Rule::{self, Caused, Ended, KeptFirst, OneEffect, OneTransaction, TrueAnswer};
use super::check::check;

/// What the history shows, which rules it breaks, and what happens to one delivery, a microsecond apart.
type Case = (&'static str, &'static [Rule], &'static [&'static str]);

const CASES: &[Case] = &[
    ("nothing happens", &[], &[]),
    (
        "processed, and a duplicate",
        &[],
        &[
            "sent #1 a /",
            "begun a",
            "claimed+committed",
            "sent #2 b /",
            "answered #1 200 processed",
            "answered #2 200 duplicate",
        ],
    ),
    (
        "the answer is lost, and another process has it again",
        &[],
        &[
            "sent #1 a /",
            "begun a",
            "claimed+committed",
            "answered #1 nothing",
            "sent #2 b /",
            "answered #2 200 duplicate",
        ],
    ),
    (
        "two effects",
        &[OneEffect, OneTransaction],
        &[
            "sent #1 a /",
            "begun a",
            "claimed+committed",
            "sent #2 b /",
            "begun b",
            "committed",
        ],
    ),
    (
        "two effects of one transaction",
        &[OneEffect],
        &["sent #1 a /", "begun a", "claimed+committed+committed"],
    ),
    (
        "a claim that swallows its delivery",
        &[OneTransaction],
        &["sent #1 a /", "begun a", "claimed"],
    ),
    (
        "a claim in a transaction of its own",
        &[OneTransaction],
        &["sent #1 a /", "begun a", "claimed", "committed"],
    ),
    (
        "an effect without a claim",
        &[OneTransaction],
        &["sent #1 a /", "begun a", "committed"],
    ),
    (
        "an acknowledgement of nothing",
        &[TrueAnswer],
        &["sent #1 a /", "begun a", "answered #1 200 processed"],
    ),
    (
        "an acknowledgement before the commit",
        &[TrueAnswer],
        &[
            "sent #1 a /",
            "begun a",
            "answered #1 200 processed",
            "claimed+committed",
        ],
    ),
    (
        "a duplicate of what is still in flight",
        &[TrueAnswer],
        &[
            "sent #1 a /",
            "begun a",
            "sent #2 b /",
            "answered #2 200 duplicate",
            "claimed+committed",
            "answered #1 200 processed",
        ],
    ),
    (
        "a success that no layer has seen",
        &[TrueAnswer],
        &["sent #1 a /", "answered #1 204 "],
    ),
    (
        "failed, refused, and ignored",
        &[],
        &[
            "sent #1 a /",
            "begun a",
            "answered #1 500 failed",
            "sent #2 a /",
            "answered #2 503 in-flight",
            "sent #3 a /",
            "answered #3 200 ignored",
        ],
    ),
    (
        "kept after a failure, and run again",
        &[],
        &[
            "sent #1 a /kept",
            "begun a",
            "kept",
            "answered #1 500 kept",
            "begun b",
            "claimed+committed",
            "ended none",
        ],
    ),
    (
        "kept after a commit in doubt",
        &[],
        &[
            "sent #1 a /kept",
            "begun a",
            "claimed+committed",
            "kept",
            "answered #1 503 kept",
            "ended none",
        ],
    ),
    (
        "said to be kept, and is not",
        &[TrueAnswer],
        &["sent #1 a /kept", "begun a", "answered #1 500 kept"],
    ),
    (
        "accepted before it is kept",
        &[TrueAnswer],
        &[
            "sent #1 a /accepted",
            "answered #1 200 accepted",
            "kept",
            "begun a",
            "claimed+committed",
            "ended none",
        ],
    ),
    (
        "called before it is kept",
        &[KeptFirst],
        &[
            "sent #1 a /all",
            "begun a",
            "kept",
            "claimed+committed",
            "ended none",
        ],
    ),
    (
        "called, killed, and never kept",
        &[KeptFirst],
        &["sent #1 a /all", "begun a", "answered #1 nothing"],
    ),
    (
        "called before it is kept, where that is right",
        &[],
        &["sent #1 a /kept", "begun a", "answered #1 nothing"],
    ),
    (
        "kept, and lost",
        &[Ended],
        &[
            "sent #1 a /accepted",
            "kept",
            "answered #1 200 accepted",
            "ended none",
        ],
    ),
    (
        "due at the end",
        &[Ended],
        &["sent #1 a /all", "kept", "begun a", "ended due"],
    ),
    (
        "due at the end, although it was processed",
        &[Ended],
        &[
            "sent #1 a /all",
            "kept",
            "begun a",
            "claimed+committed",
            "ended due",
        ],
    ),
    (
        "kept, with an end that nobody has seen",
        &[Ended],
        &["sent #1 a /all", "kept", "begun a", "claimed+committed"],
    ),
    (
        "dead",
        &[],
        &["sent #1 a /all", "kept", "begun a", "ended dead"],
    ),
    (
        "discarded",
        &[],
        &["sent #1 a /all", "kept", "begun a", "ended discarded"],
    ),
    (
        "dead, although it was processed",
        &[Ended],
        &[
            "sent #1 a /all",
            "kept",
            "begun a",
            "claimed+committed",
            "ended dead",
        ],
    ),
    (
        "reprocessed",
        &[],
        &[
            "sent #1 a /archived",
            "kept",
            "begun a",
            // The claim was deleted for the next one.
            "committed",
            "answered #1 200 processed",
            "sent #2 a /reprocess/x",
            "reprocessed",
            "answered #2 200 ",
            "begun a",
            "claimed+committed",
            "ended processed",
        ],
    ),
    (
        "said to be reprocessed, and is not",
        &[TrueAnswer],
        &[
            "sent #1 a /archived",
            "kept",
            "begun a",
            "claimed+committed",
            "sent #2 a /reprocess/x",
            "answered #2 200 ",
            "ended processed",
        ],
    ),
    (
        "reprocessed, and never run again",
        &[Ended],
        &[
            "sent #1 a /archived",
            "kept",
            "begun a",
            "committed",
            "sent #2 a /reprocess/x",
            "reprocessed",
            "ended processed",
        ],
    ),
    (
        "reprocessed once, and run again twice",
        &[OneEffect, OneTransaction],
        &[
            "sent #1 a /archived",
            "kept",
            "begun a",
            "committed",
            "sent #2 a /reprocess/x",
            "reprocessed",
            "begun a",
            "committed",
            "begun b",
            "claimed+committed",
            "ended processed",
        ],
    ),
    (
        "missing, and reconciled",
        &[],
        &[
            "missing",
            "kept",
            "begun a",
            "claimed+committed",
            "ended none",
        ],
    ),
    ("missing for ever", &[Ended], &["missing"]),
    (
        "nobody has sent it",
        &[Caused],
        &["begun a", "claimed+committed"],
    ),
    (
        "it runs before it is sent",
        &[Caused],
        &["begun a", "sent #1 a /"],
    ),
    (
        "an order to reprocess sends nothing",
        &[Caused],
        &["sent #1 a /reprocess/x", "claimed+committed"],
    ),
    (
        "sent once, and called twice",
        &[Caused],
        &["sent #1 a /", "begun a", "begun a"],
    ),
];

/// Each breaks the rules that it says, and a delivery beside it breaks none.
pub fn run() {
    println!("\nhistory: {} histories by hand\n", CASES.len());
    for (name, rules, events) in CASES {
        let mut text = String::from("0.000001 other sent #9 a /\n");
        for (number, events) in events.iter().enumerate() {
            for event in events.split('+') {
                text += &format!("0.{:06} x {event}\n", number + 2);
            }
        }
        let history: History = text.parse().unwrap();
        assert_eq!(history.to_string(), text, "{name}");
        let violations = check(&history);
        let broken: Vec<Rule> = violations.iter().map(|violation| violation.rule).collect();
        assert_eq!(broken, *rules, "{name}: {violations:?}");
        for violation in &violations {
            assert_eq!(violation.id, "x", "{name}");
            let (_, lines) = text.split_once('\n').unwrap();
            let shown = violation.to_string().replace("    ", "");
            assert!(shown.ends_with(lines), "{name}: {shown}");
        }
    }
    println!("each breaks the rules that it should, and no other");
}
