//! What the layer guarantees, and the names by which the tests refer to it.
//!
//! The promise in one sentence:
//!
//! > The database effects a handler makes through [`DedupeTx`](crate::DedupeTx) commit at most
//! > once for each delivery id of an endpoint within the retention, and a 2xx leaves only after
//! > that commit. Effects outside the database are at-least-once, with a stable key to make them
//! > idempotent.
//!
//! The name of a test begins with the guarantee that it checks, such as
//! `g5_swallowed_sql_error_is_not_acknowledged`.
//!
//! # G1: authentic first
//!
//! Nothing of a request reaches Postgres, a JSON parser or the handler before its signature is
//! verified over the exact raw bytes. A forged request costs no connection. MACs are compared in
//! constant time. Blank secrets cannot be configured. The one exception is the application's own
//! lookup of a tenant's secrets ([`TenantSecrets`](crate::TenantSecrets)).
//!
//! # G2: fail closed
//!
//! A delivery without a usable id is a 400 that says so. It is never processed without dedupe, and
//! never under an empty id that it shares with others. An id is not usable if it is missing, blank,
//! longer than 255 bytes, has control characters, is repeated, is not visible ASCII in a header, or
//! is neither a string nor an integer in JSON. Parts of a composite id are length-delimited.
//! Integers are read digit by digit, never as a float. If JSON is read, the whole body must be
//! valid JSON.
//!
//! # G3: one winner
//!
//! Of any number of simultaneous deliveries of one id, over any number of processes, at most one
//! transaction commits. The claim is one atomic insert.
//!
//! # G4: one transaction
//!
//! The claim and everything the handler does through `DedupeTx` commit together or not at all. A
//! nested `begin()` is a savepoint.
//!
//! # G5: acknowledge after the commit
//!
//! A 2xx leaves only after Postgres has confirmed the commit. Three cases are not taken for success:
//!
//! - The handler has ignored a SQL error. Postgres answers the commit of an aborted transaction with
//!   a rollback and no error. The layer detects that and answers 500.
//! - The `DedupeTx` outlives the handler: it was moved into a task, or into the body of the
//!   response. The answer is 500.
//! - The commit fails, or its answer is lost. The answer is 503. If it was committed, the retry is
//!   a duplicate.
//!
//! # G6: roll back before any other answer
//!
//! After anything but a 2xx (a rejection by an extractor, an error, a panic, a timeout) the layer
//! rolls back and awaits it before the response leaves, so that an immediate retry can claim the
//! delivery. [`also_commit_on`](crate::IdempotentWebhook::also_commit_on) sets further statuses that
//! commit.
//!
//! # G7: never acknowledge what may still fail
//!
//! A duplicate that arrives while the first is in flight waits, for less than the provider's own
//! deadline. If the first commits, the answer is 200. If it fails, one waiter runs the handler. At
//! the timeout the answer is 503 with `Retry-After`. Waiters of the same process hold no connection:
//! many duplicates of one slow delivery do not slow down other deliveries.
//!
//! # G8: the sender's hang-up changes nothing
//!
//! From BEGIN to COMMIT the work runs in a task of its own, which finishes even if the sender hangs
//! up and the server drops the response future. Otherwise a handler slower than the provider's
//! deadline would be cancelled on every attempt.
//!
//! # G9: bounded
//!
//! Body bytes and time, waiting, handler time and connections each have a default and a setting. A
//! `Content-Length` over the limit is refused unread. A body within the layer's limit also passes
//! axum's own extractors, whose limit is 2 MB by default.
//!
//! # G10: the database may be down
//!
//! If the pool is exhausted, or Postgres restarts or is a read-only standby, the answer is 503 with
//! `Retry-After` within the timeout, and the layer recovers by itself. A pooled connection that was
//! left in an open or aborted transaction is closed, not used.
//!
//! # G11: the database may be configured otherwise
//!
//! All of this holds with any default isolation level, with PgBouncer in transaction mode, with
//! another search path, and for a role without the right to create tables.
//!
//! # G12: retention cannot undercut redeliveries
//!
//! [`Retention`](crate::Retention) and [`prune`](crate::prune) keep deliveries that their provider
//! may still redeliver. They delete in small batches and do not block claims.
//!
//! # G13: each message has one reader
//!
//! The sender gets a status and a short plain text without internals. The operator gets a `tracing`
//! event with the reason, and with the delivery id once it is authentic. Secrets, signatures and
//! bodies are never logged.
//!
//! # G14: no panic and no unbounded growth
//!
//! Nothing that a sender sends makes the layer panic, or grow without a bound.
