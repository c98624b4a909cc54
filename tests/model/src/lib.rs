//! Model-checks the life of one delivery, and the reports to hooks about it and about its endpoint, in every order of
//! the steps.
//!
//! In the model, one endpoint has one delivery. The delivery is sent up to three times, to two processes. The processes
//! keep it in one of three ways, recover it, die or fall silent. Postgres loses answers. Operators, retention and
//! reconciliation act on the delivery. Each step of the model is a statement of the library, or something that happens
//! between two statements. The comment on each step names the file of its statement. The search visits all states that
//! a configuration reaches, so a property that holds has no exception within these bounds. A counterexample is as short
//! as possible. `cargo test -p model --test guards -- --nocapture` prints a counterexample for each guard.
//!
//! A *take* reserves a kept row for one attempt. Each take increases the row's *take number* (`takes`), so that an
//! outdated attempt cannot change the row. A kept row *ends* when the delivery needs no more attempts. A *guard* is a
//! condition, a lock or a step in the library's code that makes a property hold. A *turn* gives one process a task that
//! runs in one process at a time.
//!
//! - `state.rs`: what Postgres, the processes and the attempts know.
//! - `steps/`: the steps of an attempt, of processes, of operators, and of upkeep.
//! - `properties.rs`: what must hold. `guards.rs`: the code that makes it hold.
//! - `configuration.rs`: what takes part in a check, and how often each thing may go wrong.
//! - `telling/`: two small models of two processes with or without a hook. One is about a problem of an endpoint, and
//!   the other about a dead delivery. Both models share the steps, the guards and the properties with the main model.
//! - `places.rs`: a third small model, of the connections of a pool and the backends behind them.
//! - `turns.rs`: a fourth small model, of two processes that share a task, such as reading a provider's list once.
//! - `checker.rs`: the search. It knows nothing about deliveries.
//!
//! # Guards that no property needs
//!
//! Removing any guard that is not in this table breaks a property (`tests/guards.rs`).
//!
//! | guard | what it is for |
//! |---|---|
//! | `claim.sql`, an attempt that has waited looks again | without it, the row would stay until another attempt finds a duplicate. The guard saves that attempt |
//! | `accept.sql`, `resend.sql`, `keep_failed.sql` look at `deliveries` | without it, the row would stay in the same way. With it, the sender also gets the correct answer: `duplicate`, and not `kept` |
//! | `lock.sql` before `keep_failed.sql` | without it, the row would stay in the same way: an attempt that commits in the meantime would not end the row |
//! | `resend.sql` leaves a running attempt alone | `resend.sql` does not wait for that attempt |
//! | `resolve.sql` after `resend.sql` | without it, the row would stay until another attempt finds a duplicate |
//! | `discard.sql` leaves processed deliveries alone | without it, a request that stays in the archive would be lost, but nothing else |
//! | `takes + 1` in `erase.sql` | a recorded delivery also gets a new take number when it becomes due, and one of these two increases is enough |
//! | `take_turn.sql`, `turn.process = excluded.process` | without it, a process that could not write down the end of its turn would have to wait until the turn expires |
//! | `received_at < now() - $4` in the deletion of a claim | without it, a claim that was made again in the meantime is deleted too early. This matters only if the provider sends the delivery again after its redelivery window |
//!
//! # What is left out
//!
//! - Time. A redelivery window, a schedule or a grace period may end at any moment after the events that it waits for.
//!   The model assumes that these times are long enough. It also assumes that a process from which no heartbeat arrives
//!   for six seconds has really stopped sending its heartbeat every two seconds. If the clock of Postgres jumps, this
//!   affects only how long processes seem silent, and not when deliveries are due. The model leaves out a silence of
//!   Postgres itself (`FRESH` in `liveness/mod.rs`), and a process number that is not announced yet.
//! - The inside of statements. Each statement is one step. A statement is two steps if its snapshot and its write may
//!   see different data, which `read committed` allows (`accept.sql`, `resend.sql`, `keep_failed.sql`). The model
//!   assumes that Postgres does what its documentation says. Attempts take locks and wait for them, but deadlocks are
//!   not modelled: `tests/it/recovery/locks.rs` tests them.
//! - Everything beyond one delivery of one endpoint: batches, the attempt count of deliveries that are taken together,
//!   quota, breaker, object locks, replay guard, tenants, request formats, and a second row that the same process has
//!   taken. The model does not count attempts that did not finish (`unfinished`).
//! - Waiting inside one process (`src/transaction/in_flight/`): in the model, attempts of the same process meet at the
//!   claim, as attempts of two processes do.
//! - The 200 for an event type that a process ignores before it looks at the kept row. This 200 does not count as an
//!   acknowledgement, and the provider does not send the delivery again.
//! - A restart with another version while attempts run: a process restarts only after its attempts have finished.
//! - What another driver does with its transaction: the model assumes that this transaction commits as the layer's
//!   transaction does, and that it has an idle timeout.
//! - What a hook does with a report after its process has called the hook. If the hook sends its message late, the
//!   message may arrive after the next message, as the documentation of `on_change` says. If a delivery dies in a
//!   process without a hook, nobody reports it.
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
