//! Runs a program of the guide in a separate process.

use std::env;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::{Database, SECRET};

/// A running program. Dropping this value kills the process.
pub struct Process {
    // This field is dropped first, so that the keeper ends before the program. The keeper must not
    // outlive the program, because another process may get the program's process id.
    _keeper: Child,
    child: Child,
    /// The URL, such as `http://127.0.0.1:1234`. Empty until the program is
    /// [listening](Self::until_it_listens).
    pub url: String,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts a program, with these variables in addition to its usual ones.
    ///
    /// # Panics
    ///
    /// If the program is not built.
    pub fn spawn(name: &str, database: &Database, variables: &[(&str, &str)]) -> Self {
        let program = program(name);
        let child = Command::new(&program)
            .env("DATABASE_URL", &database.url)
            .env("STRIPE_WEBHOOK_SECRET", SECRET)
            .env("PORT", "0")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut child = child.unwrap_or_else(|error| {
            panic!(
                "{}: {error}. Run `cargo build --workspace` first",
                program.display()
            )
        });
        let stdout = child.stdout.take().expect("it is piped");
        let number = child.id().expect("it has not ended").to_string();
        Self {
            _keeper: keeper(&number),
            child,
            url: String::new(),
            stdout: BufReader::new(stdout).lines(),
        }
    }

    /// Starts a program that serves HTTP, and waits until it is listening.
    ///
    /// # Panics
    ///
    /// If the program exits before it is listening.
    pub async fn start(name: &str, database: &Database) -> Self {
        let mut process = Self::spawn(name, database, &[]);
        let said = process.stdout.next_line().await.expect("a line");
        let said = said.unwrap_or_else(|| panic!("{name} has ended"));
        let url = said.strip_prefix("listening on ");
        process.url = url
            .unwrap_or_else(|| panic!("{name} says {said:?}"))
            .to_owned();
        process
    }

    /// Sends SIGKILL, and waits until the program is gone.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("it was running");
    }
}

/// Starts the *keeper*: a shell that kills the program when the shell's standard input closes. This
/// happens when this process is killed.
fn keeper(number: &str) -> Child {
    let keeper = Command::new("sh")
        .args(["-c", "read -r _; kill -9 \"$0\"", number])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    keeper.expect("a shell")
}

/// The path of the program. It is in the folder that contains the folder of this test.
fn program(name: &str) -> PathBuf {
    let test = env::current_exe().expect("the path of the test");
    let folder = test.ancestors().nth(2).expect("the folder of the target");
    folder.join(name).with_extension(env::consts::EXE_EXTENSION)
}
