//! Follows the pages of a list of subscriptions.

use std::collections::HashSet;

use crate::provider_api::source_error::SourceError;

/// A list with more pages than this counts as endless: providers allow only some dozens of subscriptions.
const MAX_PAGES: usize = 100;

/// The cursors of the pages read so far. If a cursor comes again, the list would never end.
#[derive(Default)]
pub(super) struct Pages(HashSet<String>);

impl Pages {
    /// The cursor of the next page, as the current page gives it.
    pub(super) fn next(&mut self, next: Option<String>) -> Result<Option<String>, SourceError> {
        let Some(next) = next else {
            return Ok(None);
        };
        if self.0.len() >= MAX_PAGES {
            return Err(SourceError::new("its pages do not end"));
        }
        if !self.0.insert(next.clone()) {
            return Err(SourceError::new("its pages form a circle"));
        }
        Ok(Some(next))
    }

    /// The cursor of the next page, for a list that continues after the last item of a page.
    pub(super) fn behind(
        &mut self,
        last: Option<&String>,
        has_more: bool,
    ) -> Result<Option<String>, SourceError> {
        match (has_more, last) {
            (false, _) => Ok(None),
            (true, Some(last)) => self.next(Some(last.clone())),
            (true, None) => Err(SourceError::new(
                "it has more, but this page has no item to continue after",
            )),
        }
    }
}
