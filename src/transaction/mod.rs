//! The transaction of a delivery: the claim, what the handler does in it, and the commit.

mod after_commit;
mod batch;
mod claim;
mod commit;
mod connection;
pub(crate) mod database_name;
mod dedupe_tx;
mod delivery_id;
pub(crate) mod environment;
mod given_up;
pub(crate) mod in_flight;
mod late_claim;
mod look_up;
mod object_lock;
mod pending_claim;
mod pg_error;
pub(crate) mod pg_time;
mod reachability;
mod recency;
mod registration;
mod row_keys;
mod savepoint;
#[cfg(feature = "sea-orm")]
mod sea_orm;
mod short_tx;
mod slot;
mod store;
mod turn;
mod written;

pub use after_commit::WorkResult;
pub(crate) use batch::{DELETED_BYTES, first_within};
pub(crate) use claim::{AsRead, ClaimRequest, DuplicateOf, NotClaimed};
pub(crate) use commit::{CommitError, RehearsalError};
pub use dedupe_tx::DedupeTx;
pub(crate) use environment::Environment;
pub use late_claim::{BeginError, LateClaim};
pub(crate) use pending_claim::PendingClaim;
pub(crate) use pg_error::{DatabaseError, Explained, hint, with_timeout};
pub use recency::Recency;
pub(crate) use row_keys::{RowKeys, keyed};
pub use savepoint::Savepoint;
#[cfg(feature = "sea-orm")]
pub use sea_orm::{SeaOrmSavepoint, SeaOrmTx};
pub(crate) use short_tx::{ShortTx, begin_own};
pub(crate) use slot::{ClaimedTx, Left, Slot};
pub(crate) use store::Store;
pub(crate) use turn::{List, Turn};
pub(crate) use written::RowsByTable;
pub use written::RowsWritten;
