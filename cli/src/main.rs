//! Sends, records, replays and verifies webhooks in a shell: see `webhook --help`.

mod address;
mod canary;
mod dashboard;
mod doctor;
mod expectation;
mod input;
mod load;
mod message;
mod plan;
mod preset;
mod providers;
mod record;
mod replay;
mod report;
mod secret;
mod send;
mod sending;
mod status;
mod target;
mod token;
mod verify;
mod visible;
mod why;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Sends, records, replays and verifies webhooks, for 162 providers.
#[derive(Parser)]
#[command(name = "webhook", version, after_help = AFTER_HELP, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

// No `Debug`, because the arguments contain secrets.
#[derive(Subcommand)]
enum Command {
    /// Sends a delivery, signed as the provider signs it
    Send(send::Send),
    /// Receives deliveries, and writes captures of them for tests
    Record(record::Record),
    /// Sends a captured request again, unchanged or signed again
    Replay(replay::Replay),
    /// Explains why a captured request is answered with 401
    Verify(verify::Verify),
    /// Shows how the provider's subscription differs from the event types that the application
    /// handles
    Doctor(doctor::Doctor),
    /// Lists endpoints that have a problem, with the reasons
    Status(status::Status),
    /// Shows what happened to a delivery, from receipt to effect
    Why(why::Why),
    /// Lists the providers, or describes one
    Providers(providers::Providers),
}

const AFTER_HELP: &str = "Other users of the machine see the arguments of a command, and the shell keeps them in its \
history. Give a secret in an environment variable (--secret-env, or WEBHOOK_SECRET) or on standard \
input (--secret -):
  read -rs WEBHOOK_SECRET; export WEBHOOK_SECRET

Exit status:
  0  as it should be: the answers, the signature, the subscription, the endpoints, the delivery
  1  not as it should be
  2  wrong usage, or a key or token that is refused: the next call fails in the same way
  3  no result this time: nothing answered, or the provider, the service or its database is unavailable";

fn main() -> ExitCode {
    let ended = match Arguments::parse().command {
        Command::Send(send) => send.run(),
        Command::Record(record) => record.run(),
        Command::Replay(replay) => replay.run(),
        Command::Verify(verify) => verify.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Status(status) => status.run(),
        Command::Why(why) => why.run(),
        Command::Providers(providers) => providers.run(),
    };
    let (said, code) = match ended {
        Ok(Ended { text, is_right }) => (
            std::io::stdout().write_all(text.as_bytes()),
            if is_right { 0 } else { 1 },
        ),
        Err(Failed::Usage(error)) => (writeln!(std::io::stderr(), "error: {error}"), 2),
        Err(Failed::NotNow(error)) => (writeln!(std::io::stderr(), "error: {error}"), 3),
    };
    match said {
        Ok(()) => ExitCode::from(code),
        // The program that reads the output has exited.
        Err(_) => ExitCode::from(2),
    }
}

/// The output of a command, and whether everything is as it should be.
struct Ended {
    text: String,
    is_right: bool,
}

/// The reason why a command has no result.
enum Failed {
    /// The input is wrong (arguments, a key, an address), so the next call would fail in the same
    /// way.
    Usage(String),
    /// A later call may succeed without any change, for example after the server is back. A job
    /// that ignores this kind of error still fails if the key is wrong.
    NotNow(String),
}

impl From<&str> for Failed {
    fn from(error: &str) -> Self {
        Self::Usage(error.to_owned())
    }
}

impl From<String> for Failed {
    fn from(error: String) -> Self {
        Self::Usage(error)
    }
}
