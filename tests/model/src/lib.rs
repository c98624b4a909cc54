//! The life of one delivery, and what hooks report about it and about its endpoint, checked by machine in every order
//! of the steps.
//!
//! In the model, one endpoint has one delivery. It is sent up to three times, to two processes. The processes keep it
//! in one of three ways, recover it, die or fall silent. Postgres loses answers. Operators, retention and
//! reconciliation act on the delivery. Each step of the model is a statement of the library, or something that happens
//! between two statements; each step names its file. The search visits all states that a configuration reaches, so a
//! property that holds has no exception within these bounds. A counterexample is always a shortest one:
//! `cargo test -p model --test guards -- --nocapture` prints one for each guard.
//!
//! - `state.rs`: what Postgres, the processes and the attempts know.
//! - `steps/`: the steps of an attempt, of processes, of operators, and of upkeep.
//! - `properties.rs`: what must hold. `guards.rs`: the code that makes it hold.
//! - `configuration.rs`: what takes part in a check, and how often each thing may go wrong.
//! - `telling/`: two small models of two processes with or without a hook. One is about a problem of an endpoint, and
//!   the other about a dead delivery. They share the steps, the guards and the properties with this model.
//! - `places.rs`: a third small model, of the connections of a pool and the backends behind them.
//! - `turns.rs`: a fourth small model, of two processes that share a task such as a round over a provider's list.
//! - `checker.rs`: the search. It knows nothing about deliveries.
//!
//! # Guards that no property needs
//!
//! Each other guard breaks a property if it is removed (`tests/guards.rs`).
//!
//! | guard | what it is for |
//! |---|---|
//! | `claim.sql`, an attempt that has waited looks again | without it, the row would stay and end as a duplicate. It saves an attempt |
//! | `accept.sql`, `resend.sql`, `keep_failed.sql` look at `deliveries` | the same. The sender also gets the correct answer: `duplicate`, and not `kept` |
//! | `lock.sql` before `keep_failed.sql` | the same. Without it, an attempt that commits in the meantime would not end the row |
//! | `resend.sql` leaves a running attempt alone | so it does not wait for that attempt |
//! | `resolve.sql` after `resend.sql` | without it, the row would stay and end as a duplicate |
//! | `discard.sql` leaves processed deliveries alone | without it, a request that stays in the archive would be lost, but nothing else |
//! | `takes + 1` in `erase.sql` | a recorded delivery gets a new take number when it becomes due. Either of the two is enough |
//! | `take_turn.sql`, `turn.process = excluded.process` | without it, a process that could not end its turn would wait until the turn is over |
//! | `received_at < now() - $4` in the deletion of a claim | without it, a claim that is new again is deleted too early. This matters only if the provider sends the delivery again after its redelivery window |
//!
//! # What is left out
//!
//! - Time. A redelivery window, a schedule or a grace period may end at any moment after the events that it waits for.
//!   That these times are long enough is an assumption. So is that a process that seems silent for six seconds really
//!   does not send its heartbeat every two seconds. The clock of Postgres is set forward or back only for the silence
//!   of processes, and not for the times at which deliveries are due. A silence of Postgres itself (`FRESH` in
//!   `liveness/mod.rs`) and a process number that is not announced yet are left out.
//! - The inside of statements. Each statement is one step, or two steps if its snapshot and its write see different
//!   things (`accept.sql`, `resend.sql`, `keep_failed.sql`), as `read committed` is documented. That Postgres does what
//!   it documents is assumed. Locks are taken and waited for, but deadlocks are not modelled:
//!   `tests/it/recovery/locks.rs` tests them.
//! - Everything beyond one delivery of one endpoint: batches, and the attempt count of deliveries that are taken
//!   together; quota, breaker, object locks, replay guard, tenants, request formats, and a second row that shares a
//!   process. Attempts that did not finish (`unfinished`) are not counted.
//! - Waiting inside one process (`src/transaction/in_flight/`): attempts of the same process meet at the claim, as
//!   attempts of two processes do.
//! - Event types that a process ignores before it looks at the kept row: its 200 acknowledges nothing, and the provider
//!   does not send the delivery again. A process restarts with another version only after its attempts have finished.
//! - What another driver does with its transaction: the model assumes that it commits as the layer's transaction does,
//!   and that it has an idle timeout.
//! - What a hook does with a report after its process has called it: a message that the hook sends late may arrive
//!   after the next message. The documentation of `on_change` says so. If a delivery dies in a process without a hook,
//!   nobody reports it.
//! - Citus, where the claim and the kept row do not commit together.

pub mod checker;
pub mod configuration;
pub mod guards;
pub mod places;
pub mod properties;
pub mod state;
pub mod steps;
pub mod telling;
pub mod turns;
