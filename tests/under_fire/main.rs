//! The guarantees under fire: processes are killed, connections cut, Postgres crashed, and
//! floods of duplicates sent.
//!
//!     cargo test --test under_fire                        all tests in the short form
//!     cargo test --release --test under_fire -- --long    all tests in the long form
//!     cargo test --test under_fire -- soak                one test: backends,
//!                                                         crash_between_messages,
//!                                                         crash_in_recovery, everything,
//!                                                         handover, history, soak, recovery,
//!                                                         reconciliation, rehearsal, shutdown,
//!                                                         storm, telling or versions
//!     cargo test --release --test under_fire -- everything --for 3600
//!                                                         everything at once, for this many seconds
//!
//! Several tests run side by side. Each runs in a process of its own, and its output is printed when it ends. If only
//! one test runs, its output is printed as it comes.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails may panic"
)]

mod application;
mod backends;
mod crash_between_messages;
mod crash_in_recovery;
mod disk;
mod everything;
mod fault;
mod handover;
mod history;
mod operator;
mod process;
mod proxy;
mod reconciliation;
mod recovery;
mod rehearsal;
mod sender;
mod server;
mod shutdown;
mod soak;
mod storm;
mod telling;
mod versions;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use tokio::process::Command;

/// How long the tests take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Within minutes.
    Short,
    /// Within half an hour.
    Long,
}

/// The tests that run side by side, since they spend most of their time waiting. The longest come first.
const TOGETHER: [&str; 12] = [
    "crash_in_recovery",
    "telling",
    "backends",
    "recovery",
    "rehearsal",
    "everything",
    "reconciliation",
    "soak",
    "shutdown",
    "versions",
    "handover",
    "history",
];

/// These two tests run alone. `crash_between_messages` counts the messages of a request, and a slow request has more
/// messages. `storm` compares two rates.
const ALONE: [&str; 2] = ["crash_between_messages", "storm"];

/// Names the test for which this program is started.
const TEST: &str = "UNDER_FIRE_TEST";

#[tokio::main]
async fn main() -> ExitCode {
    // The tests start this same program again, as the application that they disturb.
    if application::is_wanted() {
        application::run().await;
        return ExitCode::SUCCESS;
    }
    if shutdown::is_wanted() {
        shutdown::application().await.expect("it serves");
    }
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let length = match arguments.iter().any(|argument| argument == "--long") {
        true => Length::Long,
        false => Length::Short,
    };
    let time = arguments.iter().position(|argument| argument == "--for");
    let time = time.map(|place| arguments.remove(place + 1).parse().expect("seconds"));
    let time = time.map(Duration::from_secs);
    if let Ok(name) = std::env::var(TEST) {
        run(&name, length, time).await;
        return ExitCode::SUCCESS;
    }
    let filters: Vec<_> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let is_exact = arguments.iter().any(|argument| argument == "--exact");
    let is_asked_for = |name: &&str| {
        let is_it = |filter: &&String| match is_exact {
            true => name == filter,
            false => name.contains(filter.as_str()),
        };
        filters.is_empty() || filters.iter().any(is_it)
    };

    let started = Instant::now();
    // Installs Postgres now if it is missing, so that several tests do not try to install it at once.
    throwaway_postgres::find_or_install().unwrap_or_else(|error| panic!("{error}"));
    let together: Vec<_> = TOGETHER.into_iter().filter(is_asked_for).collect();
    let alone: Vec<_> = ALONE.into_iter().filter(is_asked_for).collect();
    let is_only_one = together.len() + alone.len() == 1;
    let at_once = 2 * std::thread::available_parallelism().unwrap().get();
    let have_passed: Vec<bool> = stream::iter(together)
        .map(|name| test(name, is_only_one))
        .buffer_unordered(at_once)
        .chain(stream::iter(alone).then(|name| test(name, is_only_one)))
        .collect()
        .await;
    let passed = have_passed.iter().filter(|has_passed| **has_passed).count();
    let failed = have_passed.len() - passed;
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {passed} passed; {failed} failed; 0 ignored; 0 measured; \
         0 filtered out; finished in {:.2}s\n",
        started.elapsed().as_secs_f64()
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs a test in a process of its own, and returns whether it has passed. The output of several tests does not mix.
async fn test(name: &str, is_only_one: bool) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(std::env::args().skip(1)).env(TEST, name);
    // If a test hangs, this line shows which one.
    println!("begins {name}");
    let status = if is_only_one {
        command.status().await.unwrap()
    } else {
        let output = command.kill_on_drop(true).output().await.unwrap();
        print!("{}", String::from_utf8_lossy(&output.stdout));
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        output.status
    };
    let has_passed = status.success();
    // `.ci/run` reads this line, which has the form of Rust's own tests.
    let verdict = if has_passed { "ok" } else { "FAILED" };
    println!("test {name} ... {verdict}");
    has_passed
}

async fn run(name: &str, length: Length, time: Option<Duration>) {
    match name {
        "history" => history::cases::run(),
        "backends" => backends::run(length).await,
        "crash_between_messages" => crash_between_messages::run(length).await,
        "crash_in_recovery" => crash_in_recovery::run(length).await,
        "handover" => handover::run().await,
        "versions" => versions::run().await,
        "shutdown" => shutdown::run().await,
        "soak" => soak::run(length).await,
        "recovery" => recovery::run(length).await,
        "telling" => telling::run().await,
        "rehearsal" => rehearsal::run(length).await,
        "reconciliation" => reconciliation::run().await,
        "everything" => everything::run(length, time).await,
        "storm" => storm::run(length).await,
        _ => panic!("there is no test {name}"),
    }
}
