//! Whether a table of event types has matched yet. One whose names are all misspelt answers each event with success.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tracing::warn;

use crate::event_types::{Ignored, Matched, Wanted, WantedEvents};

/// So many events are ignored before it is said that no name has matched. Some providers send fifty for one that is
/// wanted.
const MANY: u32 = 100;

/// How much of a type is logged, in characters.
const MAX_TYPE: usize = 100;

/// What has become of the events of a layer and its clones in this process.
#[derive(Debug, Default)]
pub(super) struct FirstMatch {
    ignored: AtomicU32,
    /// A name has matched, or it was said that none has.
    is_settled: AtomicBool,
}

impl FirstMatch {
    pub(super) fn note(&self, wanted: &Wanted, events: &WantedEvents) {
        if self.is_settled.load(Ordering::Relaxed) {
            return;
        }
        match wanted {
            Wanted::Yes(Matched::Type(_)) => self.is_settled.store(true, Ordering::Relaxed),
            Wanted::Ignored(Ignored::Other(event_type)) => self.note_ignored(events, event_type),
            Wanted::Ignored(Ignored::Named(_)) | Wanted::Yes(Matched::Other) => {}
        }
    }

    fn note_ignored(&self, events: &WantedEvents, event_type: &str) {
        let ignored = self
            .ignored
            .fetch_add(1, Ordering::Relaxed)
            .saturating_add(1);
        let similar = events.similar_to(event_type);
        if (similar.is_none() && ignored < MANY) || self.is_settled.swap(true, Ordering::Relaxed) {
            return;
        }
        let event_type: String = event_type.chars().take(MAX_TYPE).collect();
        match similar {
            Some(similar) => warn!(
                event_type,
                "webhook ignored, and no name of the table has matched yet: `{similar}` is spelt in another way (logged \
                 once)"
            ),
            None => warn!(
                event_type,
                ignored,
                "webhook ignored, and no name of the table has matched yet: are they spelt as the provider has them? \
                 (logged once)"
            ),
        }
    }
}
