//! Small handwritten histories: for each rule, some histories that keep it and some that break it.

use super::History;
use super::check::Rule::{
    self, Caused, Ended, Handled, KeptFirst, OneEffect, OneTransaction, Remembered, TrueAnswer,
};
use super::check::check;

/// A description of the history, the rules that it breaks, and the events of one delivery. The events are a microsecond
/// apart, except that an event can state after how many seconds it happens.
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
        "the answer is lost, and another process gets it again",
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
        "a duplicate of a delivery that is still in flight",
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
        "failed, and refused",
        &[],
        &[
            "sent #1 a /",
            "begun a",
            "answered #1 500 failed",
            "sent #2 a /",
            "answered #2 503 in-flight",
        ],
    ),
    ("ignored", &[], &["sent #1 a /", "answered #1 200 ignored"]),
    (
        "ignored, and called",
        &[TrueAnswer],
        &["sent #1 a /", "begun a", "answered #1 200 ignored"],
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
        "reported as kept, but is not",
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
        "called before it is kept, on a route that allows it",
        &[],
        &["sent #1 a /kept", "begun a", "answered #1 nothing"],
    ),
    (
        "kept, and lost",
        &[Ended, Handled],
        &[
            "sent #1 a /accepted",
            "kept",
            "answered #1 200 accepted",
            "ended none",
        ],
    ),
    (
        "acknowledged, and ended by a process that has no handler",
        &[OneTransaction, Ended, Handled],
        &[
            "sent #1 a /accepted",
            "kept",
            "answered #1 200 accepted",
            "begun a",
            "claimed",
            "ended none",
        ],
    ),
    (
        "acknowledged, and its request stays as if it had been processed",
        &[Ended, Handled],
        &[
            "sent #1 a /archived",
            "kept",
            "answered #1 200 kept",
            "begun a",
            "ended processed",
        ],
    ),
    (
        "processed, and reprocessed when there is no handler",
        &[OneTransaction, Ended, Handled],
        &[
            "sent #1 a /archived",
            "kept",
            "begun a",
            "claimed+committed",
            "answered #1 200 processed",
            "sent #2 a /operate/reprocess/archived/x",
            "reprocessed",
            "claimed",
            "ended processed",
        ],
    ),
    (
        "ignored by a process of another version, and processed",
        &[],
        &[
            "sent #1 a /accepted",
            "kept",
            "answered #1 200 accepted",
            "begun a",
            "sent #2 b /accepted",
            "answered #2 200 ignored",
            "begun a",
            "claimed+committed",
            "ended none",
        ],
    ),
    (
        "acknowledged, and discarded by an operator",
        &[],
        &[
            "sent #1 a /accepted",
            "kept",
            "answered #1 200 accepted",
            "begun a",
            "sent #2 a /operate/discard/accepted/x",
            "discarded",
            "answered #2 200 ",
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
        "kept, with an unknown end",
        &[Ended],
        &["sent #1 a /all", "kept", "begun a", "claimed+committed"],
    ),
    (
        "dead",
        &[],
        &["sent #1 a /all", "kept", "begun a", "ended dead"],
    ),
    (
        "dead, and due again by order",
        &[],
        &[
            "sent #1 a /all",
            "kept",
            "begun a",
            "sent #2 a /operate/retry/all/x",
            "rescheduled",
            "answered #2 200 ",
            "begun a",
            "claimed+committed",
            "ended none",
        ],
    ),
    (
        "reported as due again, but is not",
        &[TrueAnswer],
        &[
            "sent #1 a /all",
            "kept",
            "begun a",
            "sent #2 a /operate/retry/all/x",
            "answered #2 200 ",
            "ended dead",
        ],
    ),
    (
        "dead, and deleted",
        &[],
        &[
            "sent #1 a /all",
            "kept",
            "begun a",
            "dead-pruned",
            "ended none",
        ],
    ),
    (
        "due again, and lost",
        &[Ended],
        &[
            "sent #1 a /all",
            "kept",
            "begun a",
            "dead-pruned",
            "rescheduled",
            "ended none",
        ],
    ),
    (
        "discarded",
        &[],
        &[
            "sent #1 a /all",
            "kept",
            "begun a",
            "sent #2 a /operate/discard/all/x",
            "discarded",
            "answered #2 200 ",
            "ended none",
        ],
    ),
    (
        "discarded, and processed when it is sent again",
        &[],
        &[
            "sent #1 a /all",
            "kept",
            "sent #2 a /operate/discard/all/x",
            "discarded",
            "sent #3 a /all",
            "kept",
            "begun a",
            "claimed+committed",
            "ended none",
        ],
    ),
    (
        "discarded, kept again, and lost",
        &[Ended],
        &[
            "sent #1 a /all",
            "kept",
            "sent #2 a /operate/discard/all/x",
            "discarded",
            "sent #3 a /all",
            "kept",
            "ended none",
        ],
    ),
    (
        "discarded without an order",
        &[Caused],
        &[
            "sent #1 a /all",
            "kept",
            "begun a",
            "discarded",
            "ended none",
        ],
    ),
    (
        "reported as discarded, but is not",
        &[TrueAnswer],
        &[
            "sent #1 a /all",
            "kept",
            "begun a",
            "sent #2 a /operate/discard/all/x",
            "answered #2 200 ",
            "ended dead",
        ],
    ),
    (
        "found by an operator who came too late",
        &[],
        &[
            "sent #1 a /all",
            "kept",
            "begun a",
            "claimed+committed",
            "sent #2 a /operate/discard/all/x",
            "answered #2 404 ",
            "ended none",
        ],
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
            "claimed+committed",
            "answered #1 200 processed",
            "sent #2 a /operate/reprocess/archived/x",
            "reprocessed",
            "answered #2 200 ",
            "begun a",
            "claimed+committed",
            "ended processed",
        ],
    ),
    (
        "reported as reprocessed, but is not",
        &[TrueAnswer],
        &[
            "sent #1 a /archived",
            "kept",
            "begun a",
            "claimed+committed",
            "sent #2 a /operate/reprocess/archived/x",
            "answered #2 200 ",
            "ended processed",
        ],
    ),
    (
        "reprocessed without an order",
        &[Caused],
        &[
            "sent #1 a /archived",
            "kept",
            "begun a",
            "claimed+committed",
            "reprocessed",
            "begun a",
            "claimed+committed",
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
            "claimed+committed",
            "sent #2 a /operate/reprocess/archived/x",
            "reprocessed",
            "ended processed",
        ],
    ),
    (
        "reprocessed before it was processed",
        &[Ended],
        &[
            "sent #1 a /archived",
            "kept",
            "sent #2 a /operate/reprocess/archived/x",
            "reprocessed",
            "begun a",
            "claimed+committed",
            "ended processed",
        ],
    ),
    (
        "reprocessed once, and run again twice",
        &[OneEffect],
        &[
            "sent #1 a /archived",
            "kept",
            "begun a",
            "claimed+committed",
            "sent #2 a /operate/reprocess/archived/x",
            "reprocessed",
            "begun a",
            "claimed+committed",
            "begun b",
            "claimed+committed",
            "ended processed",
        ],
    ),
    (
        "processed twice, and then reprocessed without an effect",
        &[OneEffect, Ended],
        &[
            "sent #1 a /archived",
            "kept",
            "begun a",
            "claimed+committed",
            "begun b",
            "claimed+committed",
            "sent #2 a /operate/reprocess/archived/x",
            "reprocessed",
            "ended processed",
        ],
    ),
    (
        "reprocessed, and then discarded",
        &[],
        &[
            "sent #1 a /archived",
            "kept",
            "begun a",
            "claimed+committed",
            "sent #2 a /operate/reprocess/archived/x",
            "reprocessed",
            "sent #3 a /operate/discard/archived/x",
            "discarded",
            "ended none",
        ],
    ),
    (
        "forgotten once it cannot be sent again",
        &[],
        &[
            "sent #1 a /",
            "begun a",
            "claimed+committed",
            "answered #1 200 processed",
            "after 20 s claim-pruned",
        ],
    ),
    (
        "forgotten while it can be sent again",
        &[Remembered],
        &[
            "sent #1 a /",
            "begun a",
            "claimed+committed",
            "answered #1 200 processed",
            "after 19 s claim-pruned",
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
    ("missing forever", &[Ended], &["missing"]),
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
        &[
            "sent #1 a /operate/reprocess/archived/x",
            "claimed+committed",
        ],
    ),
    (
        "sent once, and called twice",
        &[Caused],
        &["sent #1 a /", "begun a", "begun a"],
    ),
];

/// Each history breaks the rules that it names. Another delivery next to it breaks none.
pub fn run() {
    println!("\nhistory: {} histories by hand\n", CASES.len());
    for (name, rules, events) in CASES {
        let mut text = String::from("0.000001 other sent #9 a /\n");
        for (number, events) in events.iter().enumerate() {
            let after = events
                .strip_prefix("after ")
                .and_then(|after| after.split_once(" s "));
            let (seconds, events) = after.unwrap_or(("0", events));
            for event in events.split('+') {
                text += &format!("{seconds}.{:06} x {event}\n", number + 2);
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
