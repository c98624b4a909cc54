//! The life of a kept delivery: each event, and the statement that it runs.
//!
//! | from | event | to | statement |
//! |---|---|---|---|
//! | none | a request of the provider is kept before its handler runs | due; taken, if its attempt starts at once | `accept.sql` |
//! | none | reconciliation finds that its request never came | due | `accept.sql` |
//! | none | a provider attempt failed | due, dead or recorded | `keep_failed.sql` |
//! | recorded, processed | a provider attempt failed | due, dead or recorded again | `keep_failed.sql` |
//! | due | a provider attempt failed, and its handler has decided that the delivery is dead | dead | `keep_failed.sql` |
//! | none, due, dead, recorded, processed | the provider sends it again, and is answered before the handler runs | due | `note_resent.sql`, `resend.sql` |
//! | due, taken | the provider sends it again while an attempt has taken it | due, taken | `note_resent.sql` |
//! | due | its time has come | due, taken | `take.sql` |
//! | due, taken | the process of the attempt is dead | due | `expire.sql` |
//! | due, taken | the attempt was lost in a living process, which gives up the number in `taken_by` | due | `heartbeat.sql` |
//! | any | an attempt claims the delivery, in a transaction that commits | none or processed | `end_with_claim.sql` |
//! | due, taken | the attempt failed | due or dead | `fail.sql` |
//! | due, taken | the attempt could not start | due | `give_back.sql` |
//! | due, taken | it was taken ahead, before there was a slot for it, and is given back | due | `give_back_ahead.sql` |
//! | due, dead, recorded | it was processed while it was kept | none or processed | `resolve.sql`, retention |
//! | due, taken | its handler discards it, or its body was processed under another id | none | `drop.sql` |
//! | due, dead, recorded | the handler of a provider request discards it, or its body was processed under another id | none | `drop.sql` |
//! | due, dead | an operator retries it | due | `retry.sql` |
//! | due, dead, recorded | an operator discards it | none | `discard.sql` |
//! | any | an operator forgets its claim | none | `discard.sql` |
//! | processed | an operator reprocesses it | due | `reprocess.sql` |
//! | due, dead, recorded | its content is erased, by an operator or because it has been dead for some time | recorded | `erase.sql` |
//! | processed | its content is erased | none | `erase.sql` |
//! | dead, recorded, processed | its retention time is over | none | retention |
//!
//! A row is *taken* if its `taken_by` is a number of a living process (`liveness/mod.rs`). The column `takes` is the
//! *take number*: a counter that keeps outdated attempts from changing the row. An attempt that has taken a row can
//! change it only while `takes` is the same as when the attempt took it. Another take increases the number, and so do
//! an operator's changes and repeated requests from the provider. A statement that sets `state` also resets each column
//! about earlier attempts (checked by `tests/it/recovery/new_life.rs`). A provider attempt that has taken nothing
//! writes with `keep_failed.sql` and `drop.sql`.
//!
//! The tables are in `migrations/0002_kept.sql`. Each statement is a file that can be run in psql, except for the
//! statements with an operator's filter, which are in `operator`.
//!
//! Locks are taken in one order: the lock of the claim, the row of the delivery, the row of its endpoint.

mod accept;
mod result;
mod state;
mod take;

use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

pub(super) use accept::accept;
pub(crate) use accept::{Acceptance, Accepted};
pub(crate) use result::{AttemptBy, DroppedAs, GivenBack};
pub use state::KeptState;
pub(super) use take::{MOST_TAKEN, Wanted};

use crate::transaction::RowKeys;

/// Records that reconciliation leaves these deliveries alone from now on. With `if_reconciled`, that is recorded
/// only if the endpoint is reconciled now.
pub(super) fn set_aside<'q>(
    keys: &'q RowKeys,
    endpoint: &'q str,
    if_reconciled: bool,
) -> Query<'q, Postgres, PgArguments> {
    let set_aside = sqlx::query(include_str!("set_aside.sql"));
    keys.bind(set_aside, endpoint).bind(if_reconciled)
}
