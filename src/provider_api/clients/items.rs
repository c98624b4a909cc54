//! Reads the items of a list of events.

use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::client::parse;
use crate::provider_api::reconcile::ListedEvent;
use crate::provider_api::source_error::SourceError;

pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads an item of a list with `read`. An item that cannot be read must not stop the rest, so it becomes an unusable
/// event with the time `since`. The round leaves this event out, and reports it.
pub(super) fn item(
    since: SystemTime,
    json: &RawValue,
    read: impl FnOnce(&[u8]) -> Result<ListedEvent, SourceError>,
) -> ListedEvent {
    read(json.get().as_bytes()).unwrap_or_else(|error| {
        let event = ListedEvent::new(since, json.get().to_owned());
        event.unusable(error.to_string())
    })
}

/// The id of the last item that can be read. The next page starts after it.
pub(super) fn last_id(items: &[Box<RawValue>]) -> Result<String, SourceError> {
    #[derive(Deserialize)]
    struct Id {
        id: String,
    }
    let ids = items.iter().rev().map(|raw| parse(raw.get().as_bytes()));
    let last = ids.filter_map(Result::ok).next();
    last.map(|Id { id }| id).ok_or_else(|| {
        SourceError::new("it has more, but this page has no item to continue after").permanent()
    })
}

/// Whether all events of a page are before this time. If so, a list that is sorted newest first has no more events for
/// the round.
pub(super) fn are_older(events: &[ListedEvent], since: SystemTime) -> bool {
    !events.is_empty() && events.iter().all(|one| one.occurred_at < since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_cannot_be_read_is_left_out_and_not_quoted() -> Result<(), serde_json::Error> {
        let json = RawValue::from_string(r#"{"created":"a name"}"#.to_owned())?;
        let read = |json: &[u8]| {
            let _: std::collections::BTreeMap<String, u64> = parse(json)?;
            Ok(ListedEvent::new(SystemTime::now(), "{}"))
        };
        let event = item(SystemTime::UNIX_EPOCH, &json, read);
        assert_eq!(event.occurred_at, SystemTime::UNIX_EPOCH);
        assert_eq!(
            event.unusable.as_deref(),
            Some("the answer differs from the documentation, at line 1 column 19")
        );
        Ok(())
    }
}
