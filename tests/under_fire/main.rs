//! The guarantees under fire: processes are killed, connections cut, Postgres crashed, and
//! floods of duplicates sent.
//!
//!     cargo test --test under_fire                        the short form of all
//!     cargo test --release --test under_fire -- --long    the long form of all
//!     cargo test --test under_fire -- soak                one of crash_between_messages,
//!                                                         crash_in_recovery, everything,
//!                                                         handover, history, soak, recovery,
//!                                                         reconciliation, rehearsal, storm,
//!                                                         telling, versions
//!     cargo test --release --test under_fire -- everything --for 3600
//!                                                         all of it at once, for so many seconds

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails may panic"
)]

mod application;
mod crash_between_messages;
mod crash_in_recovery;
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
mod soak;
mod storm;
mod telling;
mod versions;

use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How much of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Within minutes.
    Short,
    /// Within half an hour.
    Long,
}

#[tokio::main]
async fn main() -> ExitCode {
    // The tests start this same program as the application that they fire at.
    if application::is_wanted() {
        application::run().await;
        return ExitCode::SUCCESS;
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
    let filters: Vec<_> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let is_exact = arguments.iter().any(|argument| argument == "--exact");
    let is_asked_for = |name: &str| {
        let is_it = |filter: &&String| match is_exact {
            true => name == **filter,
            false => name.contains(filter.as_str()),
        };
        filters.is_empty() || filters.iter().any(is_it)
    };

    let started = Instant::now();
    let mut passed = 0;
    let mut failed = 0;
    for name in [
        "history",
        "crash_between_messages",
        "handover",
        "versions",
        "soak",
        "recovery",
        "crash_in_recovery",
        "telling",
        "rehearsal",
        "reconciliation",
        "everything",
        "storm",
    ] {
        if !is_asked_for(name) {
            continue;
        }
        // In a task, so that a panic fails this one and not the others.
        let run = tokio::spawn(async move {
            match name {
                "history" => history::cases::run(),
                "crash_between_messages" => crash_between_messages::run(length).await,
                "handover" => handover::run().await,
                "versions" => versions::run().await,
                "soak" => soak::run(length).await,
                "recovery" => recovery::run(length).await,
                "telling" => telling::run().await,
                "rehearsal" => rehearsal::run(length).await,
                "reconciliation" => reconciliation::run().await,
                "everything" => everything::run(length, time).await,
                "crash_in_recovery" => crash_in_recovery::run(length).await,
                _ => storm::run(length).await,
            }
        });
        // As other tests say it: `.ci/run` reads it.
        match run.await {
            Ok(()) => {
                println!("test {name} ... ok");
                passed += 1;
            }
            Err(_) => {
                println!("test {name} ... FAILED");
                failed += 1;
            }
        }
    }
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
