//! The provider lists that are reconciled for the layers of a recovery.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::task::Recovery;

/// The identity of a list, under which its position is stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReconciledList {
    pub(crate) endpoint: Arc<str>,
    /// Decides the tenant of the list, if there are tenants.
    pub(crate) path: Option<String>,
    pub(crate) name: String,
}

/// All lists that are in use.
#[derive(Debug, Default)]
pub(super) struct ReconciledLists(Mutex<Vec<Weak<ReconciledList>>>);

impl Recovery {
    /// Reserves a list, for as long as the result is held. `None` if it is reserved already: two lists with the same
    /// name would share one position, so events of one list would be skipped because the other list is already further
    /// on.
    pub(crate) fn reconcile(&self, list: ReconciledList) -> Option<Arc<ReconciledList>> {
        // Nothing panics while it holds the lock.
        let lists = &self.shared.reconciled_lists.0;
        let mut lists = lists.lock().unwrap_or_else(PoisonError::into_inner);
        lists.retain(|taken| taken.strong_count() > 0);
        if lists
            .iter()
            .filter_map(Weak::upgrade)
            .any(|taken| *taken == list)
        {
            return None;
        }
        let list = Arc::new(list);
        lists.push(Arc::downgrade(&list));
        Some(list)
    }
}
