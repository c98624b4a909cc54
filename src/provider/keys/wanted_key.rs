//! Which of the keys a request needs.

use super::set::KeySet;

/// Which key a request needs.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// That with this id.
    Id(&'a str),
    /// Any of them, where requests name none.
    Any,
    /// One that is not among those that are known, since none of them has signed the request.
    Newer,
    /// That which is known, although it has not signed the request: the provider may have replaced it under its id.
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
