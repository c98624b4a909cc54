//! The transaction of a delivery: the claim, what the handler does in it, and the commit.

mod after_commit;
mod claim;
mod commit;
mod connection;
mod dedupe_tx;
mod pg_error;
mod registration;
mod savepoint;
mod slot;
mod store;
mod versions;

pub use after_commit::WorkResult;
pub(crate) use claim::{Claim, ClaimRequest, DuplicateOf, Fingerprint};
pub(crate) use commit::CommitError;
pub use dedupe_tx::{DedupeTx, ExtractError};
#[cfg(feature = "dashboard")]
pub(crate) use pg_error::is_lock_timeout;
pub(crate) use pg_error::{DatabaseError, is_conflict, is_not_migrated, with_timeout};
pub use savepoint::Savepoint;
pub(crate) use slot::{ClaimedTx, Slot};
pub(crate) use store::{ShortTx, Store};
pub use versions::Recency;

/// For a transaction apart from those of deliveries, whatever the default: at a higher level, concurrent
/// changes of one row would fail.
pub(crate) const BEGIN_APART: &str = "begin isolation level read committed";
