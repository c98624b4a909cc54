//! The transaction of a delivery, in the form in which the handler gets it.

use std::fmt;
use std::future::Ready;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use http::Extensions;
use sqlx::{PgConnection, SqlSafeStr};

use super::after_commit::WorkResult;
use super::recency::{self, Recency};
use super::savepoint::{CLAIM_DEPTH, Savepoint, Work, intact};
use super::slot::{ClaimedTx, Left, Slot};
use crate::tasks_and_errors::extract_error::ExtractError;

/// The transaction in which the delivery was claimed.
///
/// If the handler answers 2xx, everything that it does through this transaction commits together with the claim.
/// Otherwise, everything is rolled back, including the claim. A `DedupeTx` dereferences to [`PgConnection`], so queries
/// run with `.execute(&mut *tx)`. [`begin`](Self::begin) makes a savepoint.
///
/// ```
/// use axum::{Json, http::StatusCode};
/// use idempotent_webhook::{DedupeTx, HandlerError};
///
/// #[derive(serde::Deserialize)]
/// struct Payment {
///     order: i64,
/// }
///
/// async fn paid(
///     mut tx: DedupeTx,
///     Json(payment): Json<Payment>,
/// ) -> Result<StatusCode, HandlerError> {
///     sqlx::query("update orders set status = 'paid' where id = $1")
///         .bind(payment.order)
///         .execute(&mut *tx)
///         .await?;
///     Ok(StatusCode::OK)
/// }
/// ```
///
/// A handler does not commit or roll back: the status of its response decides. If the handler ignores the error of a
/// statement, or keeps the `DedupeTx` beyond its response (in a task, or in the body of the response), the layer
/// answers 500, and the provider delivers again. The layer also answers 500 if the handler ends the transaction with
/// its own SQL. However, if that SQL was a `commit`, it has also committed the claim: the delivery counts as processed,
/// regardless of the answer.
///
/// Functions that handlers call should take `&mut PgConnection`, or `&mut DedupeTx` if they need its methods. There is
/// no `sqlx::Transaction` to pass to functions that require one.
///
/// With the feature `axum`, `DedupeTx` is an extractor. So is `Option<DedupeTx>`, which is `None` on a route without
/// the layer. Without the feature, [`DedupeTx::take`] takes it out of the request.
///
/// # What is refused
///
/// The transaction is lost if a timeout or `select!` drops the future of [`begin`](Self::begin) after it has requested
/// the savepoint and before the answer arrives. The transaction is also lost if sqlx's own
/// `Connection::begin(&mut *tx)` fails or is dropped. From then on, each use of `&mut *tx` panics before anything is
/// sent. Without this panic, the statement would be committed on its own, without the claim, and the next attempt would
/// run it again. The layer answers 500, and nothing that the attempt has written is committed.
///
/// The same applies to a lost [`Savepoint`]. If the `commit` or `rollback` of a savepoint is cancelled, the transaction
/// is not committed either.
///
/// The layer cannot detect the following uses:
///
/// - SQL text that ends the transaction. This applies to `commit` in any case, and to `rollback`, `abort`, `end` and
///   `prepare transaction` if further statements follow. Writes may be committed although the delivery fails.
/// - A function that takes `&mut PgConnection`, calls sqlx's `begin`, `begin_with` or `transaction` on it, and goes on
///   with the very same reference although this call has failed or was cancelled. The same applies if the function
///   makes such a savepoint within one of sqlx's own savepoints. Writes may be committed although the delivery fails.
///   Such a function must return the error.
/// - A cancelled `commit` of one of sqlx's own savepoints, if another savepoint of the same depth was rolled back
///   before. sqlx then rolls back to that earlier savepoint, which still exists in Postgres under the same name. So the
///   delivery may succeed although some of its writes were rolled back.
///
/// sqlx gets out of step with Postgres when a `COPY` fails or is interrupted: it mistakes the answers to earlier
/// statements for answers to later statements. The layer detects that before the commit, rolls back, closes the
/// connection and answers 500 or 503.
///
/// The panic on a lost transaction needs `panic = "unwind"`, which is Rust's default.
pub struct DedupeTx {
    /// Present until `drop`.
    tx: Option<ClaimedTx>,
    slot: Slot,
}

impl DedupeTx {
    /// Whether a request has already passed through a layer.
    pub(crate) fn is_in(extensions: &Extensions) -> bool {
        extensions.get::<Slot>().is_some()
    }

    /// Takes the transaction out of a request's extensions.
    ///
    /// # Errors
    ///
    /// [`ExtractError`] if the request has not passed through [`IdempotentWebhook`](crate::IdempotentWebhook), or if
    /// the transaction was already taken.
    pub fn take(extensions: &Extensions) -> Result<Self, ExtractError> {
        let slot = extensions.get::<Slot>().ok_or(ExtractError::MissingLayer)?;
        Ok(Self::of(slot.take()?, slot.clone()))
    }

    /// Wraps a transaction. When the handler drops the wrapper, the transaction returns to the slot.
    pub(super) fn of(tx: ClaimedTx, slot: Slot) -> Self {
        Self { tx: Some(tx), slot }
    }

    /// Set when a savepoint with writes is dropped without a commit or a rollback.
    #[expect(clippy::expect_used, reason = "only `drop` takes the transaction out")]
    pub(super) fn dropped_savepoint(&self) -> Arc<AtomicBool> {
        let tx = self.tx.as_ref().expect(UNTIL_DROP);
        tx.dropped_savepoint.clone()
    }

    /// Runs `work` after the commit, in a background task and in the order of these calls.
    ///
    /// The work runs **at most once**, and only if the commit was confirmed. The work does not run if the confirmation
    /// is lost, or if the process ends first. For work that must not be lost, write a job to a table in the
    /// transaction, and do the work from that job.
    ///
    /// Each piece of work may take as long as [`handler_timeout`](crate::IdempotentWebhook::handler_timeout). An error,
    /// a panic or a timeout is logged and changes nothing. The future returns `()` or a `Result<(), E>`.
    /// [`drained`](crate::IdempotentWebhook::drained) waits for the work.
    ///
    /// ```no_run
    /// # use idempotent_webhook::DedupeTx;
    /// # use axum::http::StatusCode;
    /// async fn handler(mut tx: DedupeTx) -> StatusCode {
    ///     tx.after_commit(async { tokio::fs::write("/run/last-delivery", "now").await });
    ///     StatusCode::OK
    /// }
    /// ```
    pub fn after_commit(&mut self, work: impl Future<Output: WorkResult> + Send + 'static) {
        if let Some(tx) = &mut self.tx {
            tx.after_commit.push(work);
        }
    }

    /// Records `version` as seen for `subject`, and compares it with the highest version seen before.
    ///
    /// This detects stale events: deduplication does not put events in order.
    ///
    /// The subject is the id of what the events are about, such as the subscription `sub_123`. The version is a number
    /// that the provider raises with each event: a sequence number, or the time of the event. A handler can skip and
    /// acknowledge an event that is [`Older`](Recency::Older). A subject that is longer than 255 bytes, or contains a
    /// NUL, is stored as its SHA-256.
    ///
    /// **Process an event whose version is the [`Same`](Recency::Same).** A provider's time is often in whole seconds,
    /// like Stripe's `created`, so two updates within a second have the same version. Their order is unknown. If the
    /// order matters, use a version that changes with each event, or fetch the object from the provider's API.
    ///
    /// The record is part of the transaction: a rollback removes it. Until the transaction ends, other transactions
    /// that advance the same subject wait. Handlers that advance several subjects should always advance them in the
    /// same order. Otherwise, two handlers may deadlock, and Postgres makes one of them fail.
    ///
    /// Each endpoint has its own subjects, and so does each tenant if
    /// [`separate_ids`](crate::TenantSecrets::separate_ids) is on. [`prune`](crate::prune) deletes subjects that have
    /// not been advanced for a long time.
    ///
    /// # Errors
    ///
    /// Any error of Postgres. Return it, like any other error.
    ///
    /// ```
    /// use axum::{Json, http::StatusCode};
    /// use idempotent_webhook::{DedupeTx, HandlerError, Recency};
    ///
    /// # #[derive(serde::Deserialize)]
    /// # struct Event { subscription: String, created: i64 }
    /// # async fn update(tx: &mut DedupeTx, event: &Event) -> sqlx::Result<()> { Ok(()) }
    /// async fn handler(mut tx: DedupeTx, Json(event): Json<Event>) -> Result<StatusCode, HandlerError> {
    ///     if tx.advance(&event.subscription, event.created).await? != Recency::Older {
    ///         update(&mut tx, &event).await?;
    ///     }
    ///     Ok(StatusCode::OK)
    /// }
    /// ```
    pub async fn advance(&mut self, subject: &str, version: i64) -> sqlx::Result<Recency> {
        let delivery = self.slot.delivery().clone();
        recency::advance(self, &delivery, subject, version).await
    }

    /// Makes a savepoint, which can be rolled back without the rest of the transaction.
    ///
    /// Use it, for example, for a statement that may fail. End it with [`commit`](Savepoint::commit) or
    /// [`rollback`](Savepoint::rollback): a savepoint that is dropped is rolled back.
    ///
    /// Put a timeout around the statements, not around `begin` itself: see
    /// [what is refused](Self#what-is-refused).
    ///
    /// # Errors
    ///
    /// Any error of Postgres, for example if the transaction is already aborted.
    pub async fn begin(&mut self) -> sqlx::Result<Savepoint<'_>> {
        let dropped = self.dropped_savepoint();
        Savepoint::begin_on(self, dropped).await
    }

    /// Runs `work` in a savepoint.
    ///
    /// If `work` returns `Ok`, the savepoint is kept. If it returns an error, the savepoint is rolled back, and the
    /// transaction can continue. As with [`begin`](Self::begin), put a timeout within `work`.
    ///
    /// # Errors
    ///
    /// The error of `work`, or of Postgres for the savepoint itself.
    ///
    /// ```
    /// use idempotent_webhook::DedupeTx;
    /// use sqlx::Executor;
    ///
    /// async fn book(tx: &mut DedupeTx) -> sqlx::Result<()> {
    ///     tx.transaction(|savepoint| {
    ///         Box::pin(async move {
    ///             savepoint.execute("update accounts set balance = balance - 1").await?;
    ///             savepoint.execute("insert into payments default values").await?;
    ///             Ok(())
    ///         })
    ///     })
    ///     .await
    /// }
    /// ```
    pub async fn transaction<T, E: From<sqlx::Error>>(
        &mut self,
        work: impl for<'s> FnOnce(&'s mut Savepoint<'_>) -> Work<'s, T, E> + Send,
    ) -> Result<T, E> {
        self.begin().await?.run(work).await
    }

    /// Hides sqlx's method, which fails within a transaction and makes sqlx count one level too few.
    #[doc(hidden)]
    pub async fn begin_with(&mut self, _: impl SqlSafeStr) -> sqlx::Result<Savepoint<'_>> {
        Err(sqlx::Error::InvalidSavePointStatement)
    }

    /// Exists only for the compiler's message.
    #[doc(hidden)]
    pub fn commit(self) -> Ready<sqlx::Result<()>>
    where
        for<'a> &'a Self: EndedByHandler,
    {
        std::future::ready(Ok(()))
    }

    /// Exists only for the compiler's message.
    #[doc(hidden)]
    pub fn rollback(self) -> Ready<sqlx::Result<()>>
    where
        for<'a> &'a Self: EndedByHandler,
    {
        std::future::ready(Ok(()))
    }
}

/// No type implements this trait, so the compiler explains how a `DedupeTx` ends.
///
/// ```compile_fail,E0277
/// # use idempotent_webhook::DedupeTx;
/// async fn handler(tx: DedupeTx) -> sqlx::Result<()> {
///     tx.commit().await
/// }
/// ```
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a handler neither commits nor rolls back its `DedupeTx`",
    label = "the layer does it, by the status of the response",
    note = "answer 2xx to commit and anything else to roll back",
    note = "for a part that may fail, make a savepoint: `tx.begin().await?`"
)]
pub trait EndedByHandler {}

const UNTIL_DROP: &str = "a DedupeTx has its transaction until it is dropped";

impl Deref for DedupeTx {
    type Target = PgConnection;

    #[expect(clippy::expect_used, reason = "only `drop` takes the transaction out")]
    fn deref(&self) -> &PgConnection {
        &self.tx.as_ref().expect(UNTIL_DROP).connection
    }
}

impl DerefMut for DedupeTx {
    /// # Panics
    ///
    /// If the transaction is lost, see [what is refused](DedupeTx#what-is-refused).
    #[track_caller]
    #[expect(clippy::expect_used, reason = "only `drop` takes the transaction out")]
    fn deref_mut(&mut self) -> &mut PgConnection {
        let tx = self.tx.as_mut().expect(UNTIL_DROP);
        intact(&mut tx.connection, CLAIM_DEPTH)
    }
}

impl Drop for DedupeTx {
    fn drop(&mut self) {
        if let Some(tx) = self.tx.take() {
            self.slot.put_back(Left::Transaction(tx));
        }
    }
}

impl fmt::Debug for DedupeTx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DedupeTx").finish_non_exhaustive()
    }
}
