//! What is guaranteed?
//!
//! The promise:
//!
#![doc = include_str!("promise.md")]
//!
//! The name of a test begins with the guarantee that it checks, such as
//! `g5_swallowed_sql_error_is_not_acknowledged`.
//!
//! # G1: authentic first
//!
//! Nothing of a request reaches Postgres, a JSON parser or the handler before its signature is
//! verified over the exact raw bytes. A forged request costs no connection. MACs are compared in
//! constant time. Blank secrets cannot be configured. Rejected requests are counted by cause, with a
//! reason that has no text of a sender who is not authentic.
//!
//! There are three exceptions:
//!
//! - the application's own lookup of a tenant's secrets ([`TenantSecrets`](crate::TenantSecrets));
//! - the fetch of a key that a request names, where the provider rotates its keys
//!   ([`KeySource`](crate::provider::keys::KeySource));
//! - a form or JSON is parsed first where the signature, or the name of the key, is in it.
//!
//! What a forged request may cost before its signature is known: memory within twice its body, and 256 KiB;
//! CPU within ten HMAC-SHA256 of its body, and 256 KiB, for a secret, unless a key operation (RSA, ECDSA, Ed25519, a
//! chain of certificates) is needed. Twilio may have signed several forms of the URL, up to 6, each of which is tried
//! with the fields of the body. JSON is read without building a document. A token in a header has at most 16 KiB, as
//! has the header of any token. Fetches are bounded as the module [`keys`](crate::provider::keys) says.
//! `cargo bench --bench memory -- --forged` measures memory and CPU.
//!
//! # G2: fail closed
//!
//! A delivery without a usable id is rejected with a text that says so: with 400, or with the
//! [status of failures](crate::Provider::failure_status) of its provider. It is never processed without dedupe, and
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
//! event with the reason, and with the delivery id once it is authentic. Secrets, signatures and the
//! bodies of requests are never logged. The reason of a failure is that of the handler, or the beginning of
//! its textual response, either of which may quote a value of a body.
//!
//! # G14: no panic and no unbounded growth
//!
//! Nothing that a sender sends makes the layer panic, or grow without a bound.
//!
//! # R: recovery
//!
//! With [`keep`](crate::IdempotentWebhook::keep) and [`Recovery`](crate::Recovery);
//! [`recovery`](super::recovery) says how.
//!
//! - **R1** A delivery is kept with its exact body, in a transaction of its own: a failed one after the
//!   rollback and before the response ([`Keep::failed`](crate::Keep::failed)), or each one before its handler
//!   runs ([`Keep::all`](crate::Keep::all)), so that a process that is killed at any moment loses nothing. Of
//!   a forged request nothing is kept. If a failed one cannot be kept, the response is the handler's,
//!   and never a 2xx.
//! - **R2** Of the headers, only those are kept that the handler needs again. Signatures,
//!   `Authorization` and `Cookie` are not, unless [`Keep::headers`](crate::Keep::headers) names them.
//! - **R3** A body over [`Keep::body_limit`](crate::Keep::body_limit) is not kept. If its delivery fails, that
//!   is recorded without it, and the outcome is `failed`. No more is kept than
//!   [`Keep::quota`](crate::Keep::quota) says, but for what comes between two checks.
//! - **R4** It runs through the application's router, marked as verified by a private type that no
//!   request from outside can have.
//! - **R5** An attempt of recovery and one of the provider queue for the same claim, so only one of them commits. What
//!   is kept ends in the transaction of the claim, whoever makes it. A row that stays behind ends as a duplicate when
//!   its turn comes, and retention never deletes the claim before it. [`forget`](crate::Endpoint::forget) also deletes
//!   what is kept of a processed delivery, so that it does not run by itself. A delivery that is not processed is not
//!   forgotten by it. [`reprocess`](crate::Endpoint::reprocess) forgets a delivery and makes it due in one transaction,
//!   so it runs once more.
//! - **R6** An attempt is counted before it runs, by the clock of the database, so a handler that
//!   kills its process uses up its attempts. It runs for as long as its process lives, which others hear of every
//!   two seconds. The deliveries of a process that was killed run again in another one within about ten
//!   seconds, whatever [`handler_timeout`](crate::IdempotentWebhook::handler_timeout) is. Postgres ends the
//!   claim of a process that is frozen or cut off, once an attempt can no longer be running.
//! - **R7** An attempt that did not reach the handler is not counted: Postgres is away, no layer was
//!   reached, or another attempt is in flight.
//! - **R8** The schedule is that of [`Keep::retry_delays`](crate::Keep::retry_delays), each
//!   delay varied by a fifth. A handler can choose another time, an end, or to discard the delivery
//!   ([`HandlerError`](crate::HandlerError)).
//! - **R9** Few attempts run at once ([`concurrency`](crate::Recovery::concurrency)), of all layers together,
//!   and never on more than half of the pool's connections. A waiting delivery holds no connection. Endpoints
//!   take turns.
//! - **R10** After several failures of different deliveries of an endpoint in a row, one is tried at
//!   a time, and the others wait without using up attempts
//!   ([`Keep::breaker`](crate::Keep::breaker)). Operators [`pause`](crate::Endpoint::pause) and
//!   [`resume`](crate::Endpoint::resume) an endpoint.
//! - **R11** A process only takes deliveries of the layers that hold its handle. Deliveries that are due and
//!   that no process takes are logged at WARN.
//! - **R12** After the last attempt a delivery is dead. It stays until it is retried, discarded or
//!   pruned.
//! - **R13** [`Endpoint`](crate::Endpoint) lists, retries, discards and reprocesses what is kept. A retry of a
//!   delivery that was processed meanwhile does nothing and says so. A call that is dropped leaves no open
//!   transaction in the pool.
//! - **R14** With [`Keep::acknowledge`](crate::Keep::acknowledge) the provider gets 200 once a failed delivery
//!   is kept.
//! - **R15** With [`Keep::accept_first`](crate::Keep::accept_first) it gets 200 once the
//!   delivery is kept, and the handler runs in the background. If it cannot be kept, it gets a 503.
//! - **R16** The handler can see the [`attempt`](crate::Delivery::attempt),
//!   [`first_received_at`](crate::Delivery::first_received_at), and whether it
//!   [`is_reprocessed`](crate::Delivery::is_reprocessed). Its idempotency keys are the same at
//!   each attempt. Recovery does not keep the order of deliveries; see
//!   [`advance`](crate::DedupeTx::advance).
//! - **R17** All of this holds under what G11 names. Each attempt has a span, and is counted.
//!
//! # N: reconciliation
//!
//! With [`Reconcile`](crate::Reconcile):
//!
//! - **N1** The provider's list gives the events of a time with their bodies, or the provider is asked to send a
//!   webhook again.
//! - **N2** What runs was neither processed nor kept nor discarded nor forgotten, and is older than the grace
//!   time. What may have been processed without a record is left alone: events before the first recorded
//!   delivery, and those of a time whose deliveries may have been deleted. A time since the last round that is too
//!   old to be looked at is reported until somebody deals with it.
//! - **N3** What is missing has the delivery id that the preset takes from the webhook, and is kept. So a webhook
//!   that arrives after all, an attempt of recovery and reconciliation have one effect. A list that does not
//!   give what the id is made of is refused when it is built.
//! - **N4** One process reconciles a list at a time, and another one goes on with its page if it is killed. A
//!   dry run touches nothing. A limit of the list is waited out. A list that fails changes nothing, and is
//!   reported.
//!
//! # D: the dashboard
//!
//! With the feature `dashboard`:
//!
//! - **D1** Nobody may see it until an authorizer decides, or the application says that something in
//!   front of it does. Rights are checked for each request: to see pages, to see payloads, to act, on
//!   all endpoints and tenants or on some. Without the right to see payloads, what reasons quote is masked.
//! - **D2** Actions are accepted only from pages of the same site, and no GET changes anything. A page to
//!   which another site leads has no actions until the reader asks for them. Every answer has a Content
//!   Security Policy that allows the dashboard's own script and style, and nothing else. What a sender has
//!   chosen is shown as text, its invisible characters spelt out.
//! - **D3** `fine` and `never received` are only said if they are known. An action on many deliveries says
//!   what it will do and to how many, changes only deliveries that had failed or were processed when they
//!   were seen, counts each batch in the transaction of the batch, and can be cancelled. What it has made
//!   due is done once none of it is due. What operators do is recorded, with their names.
//! - **D4** The work of a page is bounded: numbers are counted up to 10,000, and up to 100,000 before an
//!   action; lists are read from an index page by page; a statement takes at most 5 seconds. The dashboard
//!   uses two connections at most, however many requests are abandoned. Activity costs a delivery no round
//!   trip.
//! - **D5** It works under any prefix, behind a proxy, without scripts, on a phone, and in dark mode.
