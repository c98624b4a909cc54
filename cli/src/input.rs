//! Reads files and standard input.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::Path;

use idempotent_webhook::testing::Capture;

/// Whether the file name `-` was given, which means standard input.
pub fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// Reads the captured request from a file, or from standard input for `-`.
pub fn read_capture(file: &Path) -> Result<Capture, String> {
    Capture::parse(&read(file)?).map_err(|error| match is_stdin(file) {
        true => format!("standard input is {error}"),
        false => format!("{} is {error}", file.display()),
    })
}

/// Reads a whole file, or the whole standard input for `-`.
pub fn read(file: &Path) -> Result<Vec<u8>, String> {
    if is_stdin(file) {
        return read_stdin();
    }
    let mut content = Vec::new();
    File::open(file)
        .and_then(|mut file| file.read_to_end(&mut content))
        .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    Ok(content)
}

pub fn read_stdin() -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let mut stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        eprintln!("reading from standard input until ctrl-d");
    }
    stdin
        .read_to_end(&mut content)
        .map_err(|error| format!("cannot read standard input: {error}"))?;
    Ok(content)
}
