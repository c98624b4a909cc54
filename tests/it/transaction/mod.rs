//! What a handler does with its transaction, and when that is committed.

mod after_commit;
mod commit;
mod recency;
mod savepoints;
