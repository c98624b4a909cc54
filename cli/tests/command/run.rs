//! Runs the command.

use std::io::Write;
use std::process::{Command, Stdio};

use idempotent_webhook::presets;

/// The output and the exit status of a run.
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Run {
    #[track_caller]
    pub fn ends(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        self
    }

    /// Checks that the output contains a text, regardless of line breaks.
    #[track_caller]
    pub fn says(&self, text: &str) -> &Self {
        let one_line = |text: &str| text.replace('\n', " ");
        let is_said = one_line(&self.out).contains(&one_line(text));
        assert!(is_said, "{text}:\n{}{}", self.out, self.err);
        self
    }

    /// Checks for an error that a later call would return again.
    #[track_caller]
    pub fn is_error(&self, text: &str) -> &Self {
        self.fails(2, text)
    }

    /// Checks for an error after which a later call may succeed.
    #[track_caller]
    pub fn is_not_now(&self, text: &str) -> &Self {
        self.fails(3, text)
    }

    #[track_caller]
    fn fails(&self, code: i32, text: &str) -> &Self {
        assert_eq!((self.code, &*self.out), (code, ""), "{}", self.err);
        assert!(self.err.contains(text), "{}", self.err);
        self
    }
}

/// Runs the command with a secret in `WEBHOOK_SECRET`. The output must never show the secret.
#[track_caller]
pub fn webhook(secret: &str, arguments: &[&str], stdin: &[u8]) -> Run {
    let run = run(Some(secret), arguments, stdin);
    shows_nothing_of(secret, &run);
    run
}

#[track_caller]
pub fn shows_nothing_of(secret: &str, run: &Run) {
    let bare = secret.trim().trim_matches(['"', '\'']);
    let core = bare.trim_start_matches("whsec_");
    let halves = core.split_at(core.floor_char_boundary(core.len() / 2));
    for (part, at_least) in [
        (secret, 6),
        (bare, 6),
        (core, 6),
        // A shorter secret may also be an ordinary word.
        (halves.0, 9),
        (halves.1, 9),
    ] {
        let is_shown = run.out.contains(part) || run.err.contains(part);
        // In some cases, the secret is the name of the provider.
        let is_name = presets::by_name(part).is_ok();
        let is_shown = is_shown && part.len() >= at_least && !is_name;
        assert!(!is_shown, "{}{}", run.out, run.err);
    }
}

pub fn run(secret: Option<&str>, arguments: &[&str], stdin: &[u8]) -> Run {
    let secret = secret.map(|secret| ("WEBHOOK_SECRET", secret));
    run_in(secret, arguments, stdin)
}

/// Runs the command with these environment variables.
pub fn run_in<'a>(
    variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    arguments: &[&str],
    stdin: &[u8],
) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_webhook"));
    command
        .args(arguments)
        .env_remove("WEBHOOK_SECRET")
        .env_remove("WEBHOOK_API_KEY")
        .env_remove("WEBHOOK_TOKEN")
        .envs(variables)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    // The command may have ended without reading its input.
    let _ = running.stdin.take().unwrap().write_all(stdin);
    let output = running.wait_with_output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
