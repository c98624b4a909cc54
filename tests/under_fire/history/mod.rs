//! The history of a run: what was sent and answered, which handlers were called, what was committed and kept, and how
//! each delivery ended. [`check`](check::check) reads the history afterwards.
//!
//! Each line is one event: the time, the delivery id, and what happened.
//!
//! ```text
//! 1764000000.120034 all-17 sent #31 127.0.0.1:4711 /all
//! 1764000000.123456 all-17 kept
//! 1764000000.124071 all-17 begun 127.0.0.1:4711
//! 1764000000.130552 all-17 answered #31 nothing
//! 1764000011.002310 all-17 begun 127.0.0.1:4713
//! 1764000011.005120 all-17 claimed
//! 1764000011.005120 all-17 committed
//! 1764000019.000000 all-17 ended none
//! ```
//!
//! Senders and applications append to one file while they run. What was committed is read from Postgres at the end,
//! with the times of the commits. All times come from the clock of one machine, so they can be compared.

pub mod cases;
mod check;
mod recorder;
mod tamper;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::ops::AddAssign;
use std::path::Path;
use std::str::FromStr;

pub use recorder::{Appender, Recorder, now};

use crate::sender::Attempt;

/// What happens to a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request is sent: a delivery from its provider, or an operator's order about a delivery.
    Sent {
        request: u64,
        process: String,
        path: String,
    },
    /// The request has ended, with or without an answer.
    Answered { request: u64, attempt: Attempt },
    /// The delivery never came, but its event is in the provider's list.
    Missing,
    /// The handler of the delivery is called.
    Begun { process: String },
    /// The claim of the delivery is committed.
    Claimed,
    /// The effect of the delivery is committed.
    Committed,
    /// A transaction commits that keeps the delivery as due for the first time.
    Kept,
    /// A transaction commits that makes a processed delivery due again.
    Reprocessed,
    /// A transaction commits that makes an unprocessed delivery due again, with a new schedule.
    Rescheduled,
    /// A transaction commits that discards the delivery, so that it is never processed.
    Discarded,
    /// Retention has deleted the claim of the delivery.
    ClaimPruned,
    /// The delivery was dead, and retention has deleted its kept row.
    DeadPruned,
    /// The state of the kept row at the end of the run.
    Ended(End),
}

/// The state of a delivery's kept row at the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Nothing,
    Due,
    Dead,
    Processed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The time in microseconds since 1970.
    pub at: u64,
    pub id: String,
    pub event: Event,
}

/// All lines, in order of time.
#[derive(Clone, Debug)]
pub struct History(Vec<Line>);

impl History {
    pub fn new(mut lines: Vec<Line>) -> Self {
        lines.sort_by_key(|line| line.at);
        Self(lines)
    }

    /// Each delivery with its lines.
    pub fn deliveries(&self) -> BTreeMap<&str, Vec<&Line>> {
        let mut deliveries = BTreeMap::<&str, Vec<&Line>>::new();
        for line in &self.0 {
            deliveries.entry(&line.id).or_default().push(line);
        }
        deliveries
    }

    /// The deliveries to which something happened.
    pub fn ids(&self, happened: impl Fn(&Event) -> bool) -> BTreeSet<&str> {
        let lines = self.0.iter().filter(|line| happened(&line.event));
        lines.map(|line| &*line.id).collect()
    }

    pub fn processed(&self) -> BTreeSet<&str> {
        self.ids(|event| *event == Event::Committed)
    }

    pub fn effects(&self, id: &str) -> usize {
        let is_effect = |line: &&Line| line.id == id && line.event == Event::Committed;
        self.0.iter().filter(is_effect).count()
    }

    /// How often something happened.
    pub fn count(&self, happened: impl Fn(&Event) -> bool) -> usize {
        self.0.iter().filter(|line| happened(&line.event)).count()
    }

    /// How often each answer was given.
    pub fn answers(&self) -> BTreeMap<String, usize> {
        let mut answers = BTreeMap::new();
        for line in &self.0 {
            if let Event::Answered { attempt, .. } = &line.event {
                *answers.entry(attempt.to_string()).or_default() += 1;
            }
        }
        answers
    }

    /// Panics if the history breaks a rule. To test the rules themselves, it also puts faults into copies of the
    /// history, one at a time, and panics if a fault is not found. Leaves the history as `<name>.history` in Cargo's
    /// folder for temporary files of tests.
    pub fn assert_upheld(&self, name: &str) -> Upheld {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.history"));
        fs::write(&file, self.to_string()).unwrap();
        let violations = check::check(self);
        for violation in &violations {
            println!("{violation}");
        }
        let count = violations.len();
        assert_eq!(count, 0, "violations in {}", file.display());
        Upheld {
            events: self.0.len(),
            faults: tamper::assert_found(self),
        }
    }
}

/// What was checked.
#[derive(Clone, Copy, Default)]
pub struct Upheld {
    events: usize,
    /// How many faults were put into copies of the history to test the rules, one at a time.
    faults: usize,
}

impl AddAssign for Upheld {
    fn add_assign(&mut self, other: Self) {
        self.events += other.events;
        self.faults += other.faults;
    }
}

impl fmt::Display for Upheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, faults } = self;
        write!(
            f,
            "{events} events against no rule; {faults} faults put into them, each found"
        )
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl FromStr for History {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let lines: Result<_, _> = text.lines().map(str::parse).collect();
        Ok(Self::new(lines?))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, id, event } = self;
        write!(f, "{}.{:06} {id} {event}", at / 1_000_000, at % 1_000_000)
    }
}

impl FromStr for Line {
    type Err = Malformed;

    fn from_str(line: &str) -> Result<Self, Malformed> {
        let malformed = || Malformed(line.to_owned());
        let mut words = line.splitn(3, ' ');
        let mut word = || words.next().ok_or_else(malformed);
        let (at, id, event) = (word()?, word()?, word()?);
        let (seconds, micros) = at.split_once('.').ok_or_else(malformed)?;
        let number = |digits: &str| digits.parse::<u64>().map_err(|_| malformed());
        Ok(Self {
            at: number(seconds)? * 1_000_000 + number(micros)?,
            id: id.to_owned(),
            event: event.parse()?,
        })
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent {
                request,
                process,
                path,
            } => write!(f, "sent #{request} {process} {path}"),
            Self::Answered { request, attempt } => write!(f, "answered #{request} {attempt}"),
            Self::Missing => f.write_str("missing"),
            Self::Begun { process } => write!(f, "begun {process}"),
            Self::Claimed => f.write_str("claimed"),
            Self::Committed => f.write_str("committed"),
            Self::Kept => f.write_str("kept"),
            Self::Reprocessed => f.write_str("reprocessed"),
            Self::Rescheduled => f.write_str("rescheduled"),
            Self::Discarded => f.write_str("discarded"),
            Self::ClaimPruned => f.write_str("claim-pruned"),
            Self::DeadPruned => f.write_str("dead-pruned"),
            Self::Ended(end) => write!(f, "ended {end}"),
        }
    }
}

impl FromStr for Event {
    type Err = Malformed;

    fn from_str(event: &str) -> Result<Self, Malformed> {
        let malformed = || Malformed(event.to_owned());
        let request = |word: &str| {
            let number = word.strip_prefix('#').ok_or_else(malformed)?;
            number.parse().map_err(|_| malformed())
        };
        let words: Vec<&str> = event.split(' ').collect();
        Ok(match words[..] {
            ["sent", number, process, path] => Self::Sent {
                request: request(number)?,
                process: process.to_owned(),
                path: path.to_owned(),
            },
            ["answered", number, "nothing"] => Self::Answered {
                request: request(number)?,
                attempt: Attempt::Unanswered,
            },
            ["answered", number, status, ref outcome @ ..] => Self::Answered {
                request: request(number)?,
                attempt: Attempt::Answered {
                    status: status.parse().map_err(|_| malformed())?,
                    outcome: outcome.join(" "),
                },
            },
            ["missing"] => Self::Missing,
            ["begun", process] => Self::Begun {
                process: process.to_owned(),
            },
            ["claimed"] => Self::Claimed,
            ["committed"] => Self::Committed,
            ["kept"] => Self::Kept,
            ["reprocessed"] => Self::Reprocessed,
            ["rescheduled"] => Self::Rescheduled,
            ["discarded"] => Self::Discarded,
            ["claim-pruned"] => Self::ClaimPruned,
            ["dead-pruned"] => Self::DeadPruned,
            ["ended", end] => Self::Ended(end.parse()?),
            _ => return Err(malformed()),
        })
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "none",
            Self::Due => "due",
            Self::Dead => "dead",
            Self::Processed => "processed",
        })
    }
}

impl FromStr for End {
    type Err = Malformed;

    fn from_str(end: &str) -> Result<Self, Malformed> {
        Ok(match end {
            "none" => Self::Nothing,
            "due" => Self::Due,
            "dead" => Self::Dead,
            "processed" => Self::Processed,
            _ => return Err(Malformed(end.to_owned())),
        })
    }
}

/// A text that is not a line of a history.
#[derive(Debug)]
#[expect(dead_code, reason = "a panic shows it")]
pub struct Malformed(String);
