//! The life of one delivery, and what is told of it and of its endpoint, checked by machine in every order of the steps.
//!
//! A delivery of one endpoint is sent up to three times to two processes, which keep it in one of three ways, recover
//! it, die or fall silent. Postgres loses answers. Operators, retention and reconciliation act on it. Each step of the
//! model is a statement of the library, or what happens between two of them; each names its file. All states that a
//! configuration reaches are looked at, so a property that holds has no exception within these bounds. A
//! counterexample is a shortest one: `cargo test -p model --test guards -- --nocapture` prints one for each guard.
//!
//! - `state.rs` has what Postgres, the processes and the attempts know.
//! - `steps/` has the steps: of an attempt, of processes, of operators, of upkeep.
//! - `properties.rs` has what must hold, and `guards.rs` what keeps it.
//! - `configuration.rs` has what takes part in a check, and how often each thing may go wrong.
//! - `telling/` has two small models beside this one, of two processes with or without a hook: of a problem of an endpoint,
//!   and of a dead delivery. Both share the steps, the guards and the properties.
//! - `places.rs` is a third one, of the places of a pool and the backends behind them.
//! - `turns.rs` is a fourth one, of two processes that share a task such as a round over a provider's list.
//! - `checker.rs` searches. It knows nothing of deliveries.
//!
//! # Guards that no property needs
//!
//! Each other guard breaks a property once it is taken away (`tests/guards.rs`).
//!
//! | guard | what it is for |
//! |---|---|
//! | `claim.sql`, an attempt that has waited looks again | the row would stay, and end as a duplicate: it saves an attempt |
//! | `accept.sql`, `resend.sql`, `keep_failed.sql` look at `deliveries` | the same. The sender also hears the truth: `duplicate`, and not `kept` |
//! | `lock.sql` before `keep_failed.sql` | the same: the attempt that commits meanwhile would not end the row |
//! | `resend.sql` leaves alone what runs | it does not wait for that attempt |
//! | `resolve.sql` after `resend.sql` | the row would stay, and end as a duplicate |
//! | `discard.sql` leaves alone what is processed | a request that stays in the archive would be lost, and nothing else |
//! | `takes + 1` in `erase.sql` | what is only recorded is counted again once it becomes due. Each of both is enough |
//! | `take_turn.sql`, `turn.process = excluded.process` | a process that could not end its turn would wait until it is over |
//! | `received_at < now() - $4` in the deletion of a claim | one that is new again is deleted too early, which matters only if the provider sends it again after its redelivery window |
//!
//! # What is left out
//!
//! - Time. A redelivery window, a schedule, a grace time are over at any moment after what they wait for: that they are
//!   long enough is an assumption. So is that a process which is silent for six seconds has no heartbeat every two. The clock
//!   of Postgres is set forward or back for what is said of processes alone, and not for what is due. A silence of Postgres
//!   itself (`FRESH` in `liveness/mod.rs`) and a number that is not announced yet are left out.
//! - Statements. Each is one step, or two where its snapshot and its write see different things (`accept.sql`,
//!   `resend.sql`, `keep_failed.sql`), as `read committed` is documented. That Postgres does what it documents is
//!   assumed. Locks are taken and waited for, but a wait in a circle is not modelled: `tests/it/recovery/locks.rs` has it.
//! - One delivery of one endpoint: no batches, nor what is counted of those that are taken together, quota, breaker, object locks, replay guard, tenants or formats of
//!   requests, no second row that shares a process. Attempts that did not end (`unfinished`) are not counted.
//! - What is waited for in one process (`src/transaction/in_flight/`): its attempts meet at the claim, as those of two
//!   processes do.
//! - What a process ignores before it looks at what is kept: that 200 acknowledges nothing, and the provider does not send
//!   the delivery again. A process begins anew with another version once its attempts have ended.
//! - What another driver does with its transaction: it commits as that of the layer does, and has a limit when idle.
//! - What a hook does with what it is told after its process has called it: a message that it sends late may come after
//!   the next one. So the page of `on_change` says. A delivery that dies in a process without a hook is told by nobody.
//! - Citus, where the claim and what is kept do not commit together.

pub mod checker;
pub mod configuration;
pub mod guards;
pub mod places;
pub mod properties;
pub mod state;
pub mod steps;
pub mod telling;
pub mod turns;
