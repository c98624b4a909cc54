//! A handler's work in its transaction, and when the transaction is committed.

mod after_commit;
mod commit;
mod recency;
mod savepoints;
