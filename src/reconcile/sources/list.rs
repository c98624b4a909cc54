//! What the lists of events have in common.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::provider_api::{SourceError, parse};
use crate::reconcile::event_source::{ListedEvent, PageQuery};

pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// An item of a list, as `read` has it. One that cannot be read is left out and told: it must not stop the
/// rest.
pub(super) fn item(
    query: &PageQuery,
    json: &RawValue,
    read: impl FnOnce(&[u8]) -> Result<ListedEvent, SourceError>,
) -> ListedEvent {
    read(json.get().as_bytes()).unwrap_or_else(|error| {
        let event = ListedEvent::new(query.since(), json.get().to_owned());
        event.unusable(error.to_string())
    })
}

/// The id behind which a list goes on that has more. Not every item may be readable.
pub(super) fn last_id(items: &[Box<RawValue>]) -> Result<String, SourceError> {
    #[derive(Deserialize)]
    struct Id {
        id: String,
    }
    let ids = items.iter().rev().map(|raw| parse(raw.get().as_bytes()));
    let last = ids.filter_map(Result::ok).next();
    last.map(|Id { id }| id).ok_or_else(|| {
        SourceError::new("it has more, and gives nothing on this page to go on behind").permanent()
    })
}

/// Whether a list with the newest first is past the time of the query.
pub(super) fn are_older(events: &[ListedEvent], query: &PageQuery) -> bool {
    !events.is_empty() && events.iter().all(|one| one.occurred_at < query.since())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn an_item_that_cannot_be_read_is_left_out_and_not_quoted() -> Result<(), serde_json::Error> {
        let query = PageQuery {
            since: SystemTime::UNIX_EPOCH,
            until: SystemTime::UNIX_EPOCH,
            cursor: None,
            events: None,
        };
        let json = RawValue::from_string(r#"{"created":"a name"}"#.to_owned())?;
        let read = |json: &[u8]| {
            let _: std::collections::BTreeMap<String, u64> = parse(json)?;
            Ok(ListedEvent::new(SystemTime::now(), "{}"))
        };
        let event = item(&query, &json, read);
        assert_eq!(event.occurred_at, query.since);
        assert_eq!(
            event.unusable.as_deref(),
            Some("the answer is not what is documented, at line 1 column 19")
        );
        Ok(())
    }
}
