//! Sends a captured webhook again, to see that the endpoint takes it once.
//!
//!     cargo run --example replay -- --help
//!
//! It signs a body as the provider would, or sends a capture as it is; asks for the same
//! delivery as often and as concurrently as it is told; and says of the answers whether
//! they are what an idempotent endpoint gives.

mod arguments;
mod capture;
mod expectation;
mod message;
mod provider;
mod report;
mod sending;

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use arguments::Arguments;
use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // What was asked for: the help.
        Err(help) if !help.use_stderr() => {
            return match help.print() {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::from(2),
            };
        }
        Err(error) => {
            eprintln!("{}; --help says more", first_paragraph(&error.to_string()));
            return ExitCode::from(2);
        }
    };
    match run(arguments).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether the answers are what was to be expected.
async fn run(arguments: Arguments) -> Result<bool, Box<dyn Error>> {
    let plan = arguments.plan()?;
    let sent = sending::send_all(&plan).await?;
    let report = report::Report::new(&plan, &sent);
    write!(std::io::stdout(), "{report}")?;
    Ok(report.is_as_expected())
}

/// What clap has to say, in one line.
fn first_paragraph(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.is_empty());
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}
