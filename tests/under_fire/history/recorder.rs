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

/// Appends to a history to which other processes append, too.
pub struct Appender(File);

impl Appender {
    pub fn open(path: &Path) -> Self {
        let file = OpenOptions::new().append(true).open(path);
        Self(file.unwrap())
    }

    /// In one write, so that no line is torn. It survives the process at once: the kernel has it.
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

/// A history that begins now, in a file that is removed with it.
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

    /// For the environment of applications.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Earlier commits are not part of the history.
    pub fn began_at(&self) -> u64 {
        self.0.began_at
    }

    /// Returns the number of the request.
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

    /// With what Postgres has committed since it began.
    pub fn history(&self, committed: Vec<Line>) -> History {
        let written = fs::read_to_string(self.path()).unwrap();
        let written = written.lines().map(|line| line.parse().unwrap());
        History::new(written.chain(committed).collect())
    }
}

/// In microseconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_micros().try_into().unwrap()
}
