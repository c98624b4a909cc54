//! The key that a request needs.

use super::set::KeySet;

/// Which key a request needs.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// The key with this id.
    Id(&'a str),
    /// Any key, because requests name none.
    Any,
    /// A key that is not known yet, because none of the known keys has signed the request.
    Newer,
    /// The known key, although it has not signed the request: the provider may have replaced it under the same id.
    Changed,
}

impl Wanted<'_> {
    pub(super) fn is_in(self, keys: &KeySet) -> bool {
        match self {
            Self::Id(id) => keys.with_id(id).next().is_some(),
            Self::Any | Self::Changed => true,
            Self::Newer => false,
        }
    }
}
