//! The heartbeats of other processes that this process has seen.

use std::collections::HashMap;

use tokio::time::Instant;

use super::{FRESH, SILENCE};

/// Numbers and their last heartbeats.
pub(super) type Heartbeats = Vec<(i64, i64)>;

/// The numbers of other processes.
#[derive(Default)]
pub(super) struct OtherProcesses(HashMap<i64, Seen>);

#[derive(Clone, Copy)]
struct Seen {
    heartbeat: i64,
    /// When this process first saw this heartbeat.
    since: Instant,
    /// Whether this process has seen an earlier heartbeat of this number. If it has not, the other process may have
    /// been dead for a day.
    has_changed: bool,
}

impl OtherProcesses {
    /// Notes the heartbeats that were read now. Forgets all other numbers.
    pub(super) fn note(&mut self, heartbeats: Heartbeats) {
        let before = std::mem::take(&mut self.0);
        let see = |(number, heartbeat)| {
            let seen = match before.get(&number) {
                Some(before) if before.heartbeat == heartbeat => *before,
                before => Seen {
                    heartbeat,
                    since: Instant::now(),
                    has_changed: before.is_some(),
                },
            };
            (number, seen)
        };
        self.0 = heartbeats.into_iter().map(see).collect();
    }

    /// The processes whose heartbeat has not changed for too long. `sent_at` is a time before the heartbeats were
    /// read.
    pub(super) fn silent(&self, heartbeats: &Heartbeats, sent_at: Instant) -> Heartbeats {
        let is_silent = |(number, heartbeat): &&(i64, i64)| {
            self.0.get(number).is_some_and(|seen| {
                seen.heartbeat == *heartbeat
                    && sent_at.saturating_duration_since(seen.since) >= SILENCE
            })
        };
        heartbeats.iter().filter(is_silent).copied().collect()
    }

    /// Processes that are not known to be alive.
    pub(super) fn unknown(&self) -> Vec<i64> {
        let lives = |seen: &Seen| seen.has_changed && seen.since.elapsed() < FRESH;
        let unknown = self.0.iter().filter(|(_, seen)| !lives(seen));
        unknown.map(|(number, _)| *number).collect()
    }
}
