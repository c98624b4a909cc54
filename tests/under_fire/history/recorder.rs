//! Writes a history while it happens.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tempfile::TempPath;

use super::{Event, History, Line};
use crate::sender::Attempt;

/// Appends to a history to which other processes append as well.
pub struct Appender(File);

impl Appender {
    pub fn open(path: &Path) -> Self {
        let file = OpenOptions::new().append(true).open(path);
        Self(file.unwrap())
    }

    /// Appends in one write, so that no line is torn. From then on, the kernel has the line, so the
    /// line survives the process.
    pub fn append(&self, id: &str, event: Event) {
        let line = Line {
            at: now(),
            id: id.to_owned(),
            event,
        };
        let line = format!("{line}\n");
        let written = (&self.0).write(line.as_bytes()).unwrap();
        assert_eq!(written, line.len(), "the history is cut off");
    }
}

/// A history that starts when this value is made. Dropping the last clone removes the file.
#[derive(Clone)]
pub struct Recorder(Arc<Recording>);

struct Recording {
    path: TempPath,
    appender: Appender,
    began_at: u64,
    requests: AtomicU64,
}

impl Recorder {
    pub fn start() -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.into_temp_path();
        Self(Arc::new(Recording {
            appender: Appender::open(&path),
            path,
            began_at: now(),
            requests: AtomicU64::new(1),
        }))
    }

    /// The path, for the environment of applications.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The start of the history. Earlier commits are not part of it.
    pub fn began_at(&self) -> u64 {
        self.0.began_at
    }

    /// Records a request, and returns its number.
    pub fn sent(&self, id: &str, process: &str, path: &str) -> u64 {
        let request = self.0.requests.fetch_add(1, Ordering::Relaxed);
        let sent = Event::Sent {
            request,
            process: process.to_owned(),
            path: path.to_owned(),
        };
        self.0.appender.append(id, sent);
        request
    }

    pub fn answered(&self, id: &str, request: u64, attempt: Attempt) {
        let answered = Event::Answered { request, attempt };
        self.0.appender.append(id, answered);
    }

    pub fn missing(&self, id: &str) {
        self.0.appender.append(id, Event::Missing);
    }

    /// The whole history, including what Postgres has committed since the history started.
    pub fn history(&self, committed: Vec<Line>) -> History {
        let written = fs::read_to_string(self.path()).unwrap();
        let written = written.lines().map(|line| line.parse().unwrap());
        History::new(written.chain(committed).collect())
    }
}

/// The current time in microseconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_micros().try_into().unwrap()
}
