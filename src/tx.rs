//! The transaction of a delivery, on its way to the handler and back.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use http::Extensions;
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres, SqlSafeStr};
use tokio::sync::OwnedSemaphorePermit;

use crate::after_commit::{AfterCommit, WorkResult};
use crate::delivery::Delivery;
use crate::recency::{self, Recency};
use crate::savepoint::{CLAIM_DEPTH, Savepoint, Work, intact};

/// The transaction in which the delivery has been claimed.
///
/// Whatever a handler does through it commits together with the claim, if the handler
/// answers 2xx, or vanishes together with it. It dereferences to [`PgConnection`], so
/// queries run with `.execute(&mut *tx)`, and [`begin`](Self::begin) makes a savepoint.
///
/// A handler neither commits nor rolls back: it answers. A transaction that it has ended
/// by SQL of its own, a statement whose error it has ignored, and a `DedupeTx` that
/// outlives the handler (in a task, or in the body of the response) all lead to a 500,
/// so that the provider delivers again.
///
/// # What is refused
///
/// The transaction is gone if the future of [`begin`](Self::begin) is dropped after it has
/// asked for the savepoint and before it has the answer, by a timeout or by `select!`; or if
/// sqlx's own `Connection::begin(&mut *tx)` fails or is dropped. From then on each use of
/// `&mut *tx` panics before anything is sent: it would be committed by itself, without the
/// claim, and again at the next attempt. The layer answers 500, and nothing of the attempt is
/// left.
///
/// The same goes for a [`Savepoint`] that is gone. If its `commit` or `rollback` is cancelled,
/// the transaction is not committed either.
///
/// Some uses cannot be seen from here. After the first two, what is written may be committed
/// although the delivery fails; after the third, a success may lack what was written before:
///
/// - SQL text that ends the transaction (`commit`, `rollback`, `abort`, `end`, `prepare
///   transaction`), followed by further statements.
/// - A function that takes `&mut PgConnection`, calls `begin`, `begin_with` or `transaction` of
///   sqlx on it, ignores that this failed or was cancelled, and goes on with the very same
///   reference; likewise with a savepoint of sqlx's in which it makes another one. Such a
///   function has to pass the error on.
/// - A savepoint of sqlx's own whose `commit` is cancelled, after another one of the same depth
///   was rolled back: sqlx then rolls back to that one.
///
/// sqlx loses step with Postgres when a `COPY` fails or is broken off: it takes the answers to
/// earlier statements for those to later ones. The layer notices at the end, rolls back, closes
/// the connection, and answers 500 or 503.
///
/// The panic needs `panic = "unwind"`, which is Rust's default.
///
/// With the feature `axum` it is an extractor; without it, [`DedupeTx::take`] gets it out
/// of the request.
pub struct DedupeTx {
    /// There until `drop`.
    connection: Option<InTransaction>,
    slot: Slot,
}

impl DedupeTx {
    /// Whether a request is within a layer already.
    pub(crate) fn is_in(extensions: &Extensions) -> bool {
        extensions.get::<Slot>().is_some()
    }

    /// Takes the transaction out of a request's extensions.
    ///
    /// # Errors
    ///
    /// [`ExtractError`] if the request has not come through
    /// [`IdempotentWebhook`](crate::IdempotentWebhook), or if the transaction has been
    /// taken already.
    pub fn take(extensions: &Extensions) -> Result<Self, ExtractError> {
        let slot = extensions.get::<Slot>().ok_or(ExtractError::MissingLayer)?;
        let mut state = slot.lock();
        match std::mem::replace(&mut *state, State::Lent) {
            State::Here(mut connection) => {
                connection.taken = true;
                Ok(Self {
                    connection: Some(connection),
                    slot: slot.clone(),
                })
            }
            State::Lent => Err(ExtractError::AlreadyTaken),
            State::Closed => {
                *state = State::Closed;
                Err(ExtractError::Over)
            }
        }
    }
}

impl DedupeTx {
    /// Has work done after the commit: in a task, off the way of the response, one piece
    /// after the other in the order of these calls.
    ///
    /// It is **at most once**. It is only done if the commit was confirmed, and not at all
    /// if the process ends before, or if the confirmation got lost. Where that is not
    /// enough, write a job into the transaction and do the work from there.
    ///
    /// Each piece may take as long as a handler may
    /// ([`handler_time`](crate::IdempotentWebhook::handler_time)); an error, a panic or
    /// running out of time is logged and changes nothing. The future ends with `()` or with a
    /// `Result<(), E>`.
    /// [`drained`](crate::IdempotentWebhook::drained) waits for it.
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
        if let Some(connection) = &mut self.connection {
            connection.after_commit.push(work);
        }
    }

    /// Records that the endpoint has seen `version` of `subject`, and tells how it compares with
    /// the highest one seen before. For events that may come late: dedupe does not put them in
    /// order.
    ///
    /// The subject is whatever the events are about, such as `sub_123`; the version is a
    /// number that the provider raises from event to event: a sequence, or the event's own
    /// time. An event that is [`Older`](Recency::Older) can be skipped and acknowledged.
    ///
    /// **Apply one that is the [`Same`](Recency::Same).** A provider's time is often in whole
    /// seconds, as Stripe's `created`, and two updates of one second then have the same version.
    /// Their order is not known. Where it matters, use a version that changes with each event,
    /// or fetch the object from the provider's API.
    ///
    /// It is part of the transaction: it vanishes if the delivery is rolled back, and from
    /// here to the end of the transaction nobody else advances the same subject. Handlers
    /// that advance several should do so in the same order, or they may deadlock, which
    /// Postgres resolves by an error in one of them.
    ///
    /// Subjects are kept apart by endpoint, and by tenant where
    /// [`separate_ids`](crate::TenantSecrets::separate_ids) is on. One that has not been
    /// advanced for long is forgotten by [`prune`](crate::prune).
    ///
    /// # Errors
    ///
    /// Whatever Postgres reports. Pass it on, as any other.
    ///
    /// ```
    /// use axum::{Json, http::StatusCode};
    /// use idempotent_webhook::{DedupeTx, Recency};
    ///
    /// # #[derive(serde::Deserialize)]
    /// # struct Event { subscription: String, created: i64 }
    /// # async fn update(tx: &mut DedupeTx, event: &Event) -> sqlx::Result<()> { Ok(()) }
    /// async fn handler(mut tx: DedupeTx, Json(event): Json<Event>) -> Result<StatusCode, StatusCode> {
    ///     # let failed = |_: sqlx::Error| StatusCode::INTERNAL_SERVER_ERROR;
    ///     if tx.advance(&event.subscription, event.created).await.map_err(failed)? != Recency::Older {
    ///         update(&mut tx, &event).await.map_err(failed)?;
    ///     }
    ///     Ok(StatusCode::OK)
    /// }
    /// ```
    pub async fn advance(&mut self, subject: &str, version: i64) -> sqlx::Result<Recency> {
        let delivery = self.slot.delivery.clone();
        recency::advance(self, &delivery, subject, version).await
    }

    /// Makes a savepoint: what is done through it can be rolled back without the rest, for
    /// example after a statement that may fail.
    ///
    /// A time limit belongs around the statements and not around `begin` itself: see
    /// [what is refused](Self#what-is-refused).
    ///
    /// # Errors
    ///
    /// Whatever Postgres reports, among it a transaction that is aborted already.
    pub async fn begin(&mut self) -> sqlx::Result<Savepoint<'_>> {
        Savepoint::begin_on(self).await
    }

    /// Runs `work` in a savepoint, which is kept if it returns `Ok` and rolled back if it
    /// returns an error, so that the transaction can go on. As with [`begin`](Self::begin), a
    /// time limit belongs within `work`.
    ///
    /// # Errors
    ///
    /// What `work` returns, or what Postgres reports of the savepoint.
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

    /// Hides sqlx's, which fails within a transaction and gives up one of its levels.
    #[doc(hidden)]
    pub async fn begin_with(&mut self, _: impl SqlSafeStr) -> sqlx::Result<Savepoint<'_>> {
        Err(sqlx::Error::InvalidSavePointStatement)
    }
}

const THERE_UNTIL_DROP: &str = "a DedupeTx has its connection until it is dropped";

impl Deref for DedupeTx {
    type Target = PgConnection;

    #[expect(clippy::expect_used, reason = "only `drop` takes the connection out")]
    fn deref(&self) -> &PgConnection {
        self.connection.as_ref().expect(THERE_UNTIL_DROP)
    }
}

impl DerefMut for DedupeTx {
    /// # Panics
    ///
    /// If the transaction is gone, see [what is refused](DedupeTx#what-is-refused).
    #[track_caller]
    #[expect(clippy::expect_used, reason = "only `drop` takes the connection out")]
    fn deref_mut(&mut self) -> &mut PgConnection {
        let connection = self.connection.as_mut().expect(THERE_UNTIL_DROP);
        intact(connection, CLAIM_DEPTH)
    }
}

impl Drop for DedupeTx {
    fn drop(&mut self) {
        let mut state = self.slot.lock();
        if let (State::Lent, Some(connection)) = (&*state, self.connection.take()) {
            *state = State::Here(connection);
        }
        // Otherwise the request is over, and the connection is closed with its
        // transaction.
    }
}

impl fmt::Debug for DedupeTx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DedupeTx").finish_non_exhaustive()
    }
}

/// Why a handler cannot have what it asks for: a mistake in the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtractError {
    /// The request has not come through the layer.
    MissingLayer,
    /// The transaction has been taken, by another extractor or by a middleware.
    AlreadyTaken,
    /// The handler has answered and the transaction has ended.
    Over,
}

impl fmt::Display for ExtractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MissingLayer => {
                "the route is without IdempotentWebhook: \
                 add `.layer(IdempotentWebhook::new(..))` to it"
            }
            Self::AlreadyTaken => {
                "DedupeTx is taken twice for one request: take it once and pass `&mut tx` on"
            }
            Self::Over => "DedupeTx is taken after the handler has answered",
        })
    }
}

impl std::error::Error for ExtractError {}

/// A connection with an open transaction.
///
/// Dropping it closes the connection, so that one in a transaction, or in the midst of a
/// statement, never gets back into the pool.
pub(crate) struct InTransaction {
    connection: Option<PoolConnection<Postgres>>,
    /// Held for as long as the connection.
    permit: Option<OwnedSemaphorePermit>,
    /// Whether the handler, or anybody on its behalf, has taken it.
    pub(crate) taken: bool,
    /// What the handler wants done once this is committed.
    pub(crate) after_commit: AfterCommit,
}

const THERE_UNTIL_RELEASE: &str = "a connection is there until it is released or dropped";

impl InTransaction {
    pub(crate) fn new(connection: PoolConnection<Postgres>) -> Self {
        Self {
            connection: Some(connection),
            permit: None,
            taken: false,
            after_commit: AfterCommit::default(),
        }
    }

    pub(crate) fn holding(mut self, permit: Option<OwnedSemaphorePermit>) -> Self {
        self.permit = permit;
        self
    }

    /// Gives the connection back to the pool, once its transaction has ended.
    pub(crate) fn release(mut self) {
        drop(self.connection.take());
    }
}

impl Deref for InTransaction {
    type Target = PgConnection;

    #[expect(
        clippy::expect_used,
        reason = "only `release` and `drop` take the connection out"
    )]
    fn deref(&self) -> &PgConnection {
        self.connection.as_deref().expect(THERE_UNTIL_RELEASE)
    }
}

impl DerefMut for InTransaction {
    #[expect(
        clippy::expect_used,
        reason = "only `release` and `drop` take the connection out"
    )]
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.connection.as_deref_mut().expect(THERE_UNTIL_RELEASE)
    }
}

impl Drop for InTransaction {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            // Postgres rolls back when it sees the socket closed. A farewell could block.
            drop(connection.detach());
        }
    }
}

/// The place in a request's extensions from which the handler takes the transaction, and
/// to which it comes back when the handler drops it.
#[derive(Clone)]
pub(crate) struct Slot {
    delivery: Delivery,
    state: Arc<Mutex<State>>,
}

enum State {
    Here(InTransaction),
    Lent,
    Closed,
}

impl Slot {
    pub(crate) fn new(delivery: Delivery, connection: InTransaction) -> Self {
        Self {
            delivery,
            state: Arc::new(Mutex::new(State::Here(connection))),
        }
    }

    /// Takes the transaction back for good. `None`: somebody still has it.
    pub(crate) fn close(&self) -> Option<InTransaction> {
        match std::mem::replace(&mut *self.lock(), State::Closed) {
            State::Here(connection) => Some(connection),
            State::Lent | State::Closed => None,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
