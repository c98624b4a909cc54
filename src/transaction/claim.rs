//! The claim of a delivery: one atomic insert. A rehearsal takes the lock of the claim, but inserts nothing.
//!
//! A delivery that is kept for a retry has a row in `kept_deliveries`. An attempt *takes* the delivery before it runs,
//! which changes the *take number* in that row: an attempt with an older number can no longer change the row. The claim
//! *ends* the kept row: the row is deleted or, if processed deliveries are archived, marked as processed.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{PgConnection, Row};
use sqlx_core::transaction::TransactionManager;
use tokio::time::Instant;

use super::connection::{TransactionId, TxConnection};
use super::look_up::Known;
use super::pg_error::{DatabaseError, Manager, with_timeout};
use super::pg_time::millis;
use super::row_keys::keyed;
use super::slot::ClaimedTx;
use super::store::{MAX_CONNECTIONS, Store};
use super::written::{self, RowsByTable};
use crate::provider::delivery::Delivery;
use crate::provider::digest::Sha256Digest;

const CLAIM: &str = include_str!("claim.sql");
const REHEARSE: &str = include_str!("rehearse.sql");
const REFUSE_COMMITS: &str = include_str!("refuse_commits.sql");
const AS_READ: &str = include_str!("as_read.sql");
const REPLAY_GUARD: &str = include_str!("replay_guard.sql");
const FIRST_WITH_BODY: &str = include_str!("first_with_body.sql");

/// Ends the kept row of the delivery in the transaction of the claim, so that a rollback also undoes the end of the
/// row.
const END_KEPT: &str = include_str!("end_with_claim.sql");

/// How often a claim is repeated after a serialization failure or a deadlock.
const MAX_CONFLICTS: usize = 10;

/// Which delivery to claim.
#[derive(Clone, Debug)]
pub(crate) struct ClaimRequest {
    pub(crate) delivery: Delivery,
    /// The digest of the delivery's event type and body, if the replay guard is on. Another delivery with this digest
    /// is a duplicate.
    pub(crate) fingerprint: Option<Sha256Digest>,
    /// The object that the delivery is about, such as a subscription, if deliveries of one object are processed one at
    /// a time.
    pub(crate) object: Option<Arc<str>>,
    /// The longest wait in Postgres for other deliveries of the object. If it is `None`, only the claim's deadline
    /// applies.
    pub(crate) object_wait: Option<Duration>,
    /// The longest time between two statements of the handler.
    pub(crate) longest_idle: Duration,
    /// The take number, if the delivery is kept and this attempt has taken it. The claim is refused if another attempt
    /// has taken the delivery since.
    pub(crate) take: Option<i64>,
    /// For a rehearsal, which is always rolled back: the state of the kept delivery when it was read. A rehearsal takes
    /// the lock of the claim and writes nothing, so it also runs for a delivery that was already processed.
    pub(crate) rehearsed: Option<AsRead>,
    /// The version of the application, which may be empty.
    pub(crate) version: Arc<str>,
}

/// The state of a kept delivery when a rehearsal read it, before the rehearsal had the lock.
#[derive(Clone, Debug)]
pub(crate) struct AsRead {
    pub(crate) state: String,
    /// The take number.
    pub(crate) takes: i64,
}

/// Why a delivery is not claimed.
#[derive(Debug)]
pub(crate) enum NotClaimed {
    /// The delivery was processed before, or another delivery with the same body was.
    Duplicate(DuplicateOf),
    /// At the deadline, another attempt was still working on the delivery, or a transaction held a lock on one of its
    /// rows.
    InFlight,
    /// Another delivery of the same object was still in flight at the deadline.
    ObjectInFlight,
    /// The delivery was kept. Since this attempt took it (or since a rehearsal read it), it was discarded, forgotten or
    /// taken by another attempt.
    ///
    /// With a late claim, this is also the result if the handler was called with an outdated `is_reprocessed`: since
    /// then, an operator has asked to reprocess the delivery, or a reprocess that was pending at the call is no longer
    /// pending.
    Superseded,
    Failed(DatabaseError),
}

impl NotClaimed {
    /// The result for the error of a statement that waits for other transactions: `InFlight` if the wait has timed out,
    /// otherwise `Failed`.
    fn after_wait(error: DatabaseError) -> Self {
        match error.is_wait_over() {
            true => Self::InFlight,
            false => Self::Failed(error),
        }
    }
}

impl From<DatabaseError> for NotClaimed {
    fn from(error: DatabaseError) -> Self {
        Self::Failed(error)
    }
}

/// What a duplicate has in common with a processed delivery.
#[derive(Debug)]
pub(crate) enum DuplicateOf {
    Id,
    /// The same event type and body. `first` is the id of the processed delivery, or `None` if that id is unknown.
    Body {
        first: Option<String>,
    },
}

/// The limits of a claim's statements, and the settings that are restored for its handler.
#[derive(Clone, Copy)]
struct Limits<'a> {
    /// When the wait for other attempts ends.
    deadline: Instant,
    /// The `lock_timeout` of the pool's connections, which is restored for the handler.
    lock_timeout: &'a str,
    /// The longest time between two statements.
    idle_timeout: &'a str,
    /// The `enable_seqscan` of the pool's connections, which is restored for the handler.
    enable_seqscan: &'a str,
}

/// The transaction of a claim.
struct Begun {
    id: TransactionId,
    /// Whether an operator has asked to reprocess the delivery.
    is_reprocessed: bool,
    /// For a rehearsal: the rows that the session had written before the handler. `None` if Postgres does not count
    /// rows.
    written_before: Option<RowsByTable>,
}

impl Store {
    /// Claims a delivery. Waits for another attempt until the deadline.
    pub(crate) async fn claim(
        &self,
        request: &ClaimRequest,
        deadline: Instant,
    ) -> Result<ClaimedTx, NotClaimed> {
        let mut conflicts = 0;
        let mut connections_tried = 1;
        loop {
            let error = match self.try_claim(request, deadline).await {
                Err(NotClaimed::Failed(error)) => error,
                ended => return ended,
            };
            if error.is_conflict() && conflicts < MAX_CONFLICTS {
                // In `repeatable read` and `serializable`, a claim fails if another claim of the delivery is committed
                // while it waits. The next try has a new snapshot, and recognizes the duplicate.
                conflicts += 1;
            } else if error.may_be_the_connection() && connections_tried < MAX_CONNECTIONS {
                // Any error of Postgres may be due to the connection: its earlier user may have left another role or
                // setting on it. Nothing is committed yet, so another try is safe.
                connections_tried += 1;
            } else {
                return Err(NotClaimed::Failed(error));
            }
        }
    }

    async fn try_claim(
        &self,
        request: &ClaimRequest,
        deadline: Instant,
    ) -> Result<ClaimedTx, NotClaimed> {
        let mut connection = match &request.rehearsed {
            Some(_) => self.begin_rehearsal().await?,
            None => self.begin().await?,
        };
        let not_claimed = match self.claim_in(&mut connection, request, deadline).await {
            Ok(begun) => {
                return Ok(ClaimedTx::new(
                    connection,
                    begun.id,
                    self.timeout,
                    begun.is_reprocessed,
                    begun.written_before,
                ));
            }
            Err(not_claimed) => not_claimed,
        };
        match &not_claimed {
            // The rollback releases the lock of the claim. If another delivery had the same body, the rollback also
            // undoes the row of the claim. It is sent while the connection returns to the pool. Nothing here waits for
            // the rollback, because only attempts at the same delivery wait for the lock, and these attempts are
            // duplicates, too.
            NotClaimed::Duplicate(_) => {
                Manager::start_rollback(&mut connection);
                connection.release();
            }
            // If Postgres grants the session lock just as the wait times out, a rollback does not release the lock.
            // Closing the connection releases it.
            NotClaimed::ObjectInFlight => {
                drop(connection);
                return Err(self.why_not_locked(request).await);
            }
            // A statement is still unfinished, or the connection is of no use for the next delivery. Dropping the
            // connection closes it.
            NotClaimed::Failed(error) if !error.is_conflict() => drop(connection),
            NotClaimed::InFlight | NotClaimed::Superseded | NotClaimed::Failed(_) => {
                connection.roll_back(self.timeout).await;
            }
        }
        Err(not_claimed)
    }

    /// Why an attempt did not get the lock of its object in time. If another attempt has processed the delivery
    /// meanwhile, this one is a duplicate.
    pub(crate) async fn why_not_locked(&self, request: &ClaimRequest) -> NotClaimed {
        match self.look_up(request).await {
            Ok(Known {
                duplicate_of: Some(of),
                ..
            }) => NotClaimed::Duplicate(of),
            Ok(_) => NotClaimed::ObjectInFlight,
            Err(error) => NotClaimed::Failed(error),
        }
    }

    /// Claims the delivery on `connection`. This method may end the transaction that is open on `connection`, and begin
    /// a new one for the claim. It does so to register the redelivery window, or to wait for other deliveries of the
    /// same object.
    async fn claim_in(
        &self,
        connection: &mut TxConnection,
        request: &ClaimRequest,
        deadline: Instant,
    ) -> Result<Begun, NotClaimed> {
        let delivery = &request.delivery;
        let settings = if request.rehearsed.is_some() {
            self.settings_for_rehearsal(connection).await?
        } else {
            self.pool_settings(connection, delivery).await?
        };
        let idle_timeout = settings.idle_timeout(request.longest_idle);
        if let Some(object) = &request.object {
            let deadline = match request.object_wait {
                Some(wait) => deadline.min(Instant::now() + wait),
                None => deadline,
            };
            let locked = self.lock_object(
                connection,
                delivery,
                object,
                deadline,
                &idle_timeout,
                request.rehearsed.is_none(),
            );
            if !locked.await? {
                return Err(NotClaimed::ObjectInFlight);
            }
        }
        let limits = Limits {
            deadline,
            lock_timeout: &settings.lock_timeout,
            idle_timeout: &idle_timeout,
            enable_seqscan: &settings.enable_seqscan,
        };
        match &request.rehearsed {
            Some(read) => self.rehearse(connection, delivery, read, limits).await,
            None => self.insert(connection, request, limits).await,
        }
    }

    /// Takes the lock of the claim, writes nothing, and makes every later commit of the transaction fail.
    async fn rehearse(
        &self,
        connection: &mut TxConnection,
        delivery: &Delivery,
        read: &AsRead,
        limits: Limits<'_>,
    ) -> Result<Begun, NotClaimed> {
        let wait = time_until(limits.deadline);
        let locked = with_timeout(
            wait + self.timeout,
            keyed(REHEARSE, delivery)
                .bind(millis(wait))
                .bind(limits.lock_timeout)
                .bind(limits.idle_timeout)
                .fetch_one(&mut **connection),
        );
        let row = locked.await.map_err(NotClaimed::after_wait)?;
        let id: String = row.try_get(0).map_err(DatabaseError::Sqlx)?;
        let is_as_read = with_timeout(self.timeout, async {
            sqlx::raw_sql(REFUSE_COMMITS)
                .execute(&mut **connection)
                .await?;
            keyed(AS_READ, delivery)
                .bind(&read.state)
                .bind(read.takes)
                .bind(limits.enable_seqscan)
                .fetch_one(&mut **connection)
                .await?
                .try_get(0)
        });
        if !is_as_read.await? {
            return Err(NotClaimed::Superseded);
        }
        Ok(Begun {
            id: TransactionId(id.into()),
            is_reprocessed: delivery.is_reprocessed(),
            written_before: with_timeout(self.timeout, written::read(connection)).await?,
        })
    }

    /// Inserts the claim and its fingerprint. If the delivery has a kept row, deletes the row or marks it as processed.
    async fn insert(
        &self,
        connection: &mut TxConnection,
        request: &ClaimRequest,
        limits: Limits<'_>,
    ) -> Result<Begun, NotClaimed> {
        let (delivery, fingerprint) = (&request.delivery, request.fingerprint);
        let wait = time_until(limits.deadline);
        let limit = millis(self.longest_wait());
        let inserted = with_timeout(
            wait + self.timeout,
            sqlx::query_as(CLAIM)
                .bind(delivery.endpoint())
                .bind(delivery.key_tenant())
                .bind(delivery.id())
                .bind(delivery.event_type())
                .bind(fingerprint)
                .bind(millis(wait))
                .bind(&*limit)
                .bind(limits.lock_timeout)
                .bind(limits.idle_timeout)
                .bind(limits.enable_seqscan)
                .fetch_optional(&mut **connection),
        );
        let inserted: Option<(String, bool, String)> =
            inserted.await.map_err(NotClaimed::after_wait)?;
        let Some((id, may_be_kept, _)) = inserted else {
            return Err(NotClaimed::Duplicate(DuplicateOf::Id));
        };
        if let Some(digest) = fingerprint {
            // The `lock_timeout` after this statement. If the delivery may have a kept row, `end_with_claim.sql` runs
            // next: its wait for a lock needs a limit, and it then sets the handler's `lock_timeout` itself.
            let after = match may_be_kept {
                true => &*limit,
                false => limits.lock_timeout,
            };
            let inserted = self.insert_body(connection, delivery, digest, limits.deadline, after);
            if !inserted.await.map_err(NotClaimed::after_wait)? {
                // `enable_seqscan` is switched off for the same reason as in `BEGIN_CLAIM`. The setting ends with this
                // transaction, which is rolled back.
                let setting = sqlx::raw_sql("set local enable_seqscan = off");
                with_timeout(self.timeout, setting.execute(&mut **connection)).await?;
                let first = self.first_with_body(connection, delivery, digest).await?;
                return Err(NotClaimed::Duplicate(DuplicateOf::Body { first }));
            }
        }
        let ended = match may_be_kept {
            true => self
                .end_kept(connection, request, limits.lock_timeout)
                .await
                .map_err(NotClaimed::after_wait)?,
            false => None,
        };
        // If this check were missing, an attempt could commit a delivery that an operator has discarded since the
        // attempt took it.
        if request.take.is_some() && ended.is_none() {
            return Err(NotClaimed::Superseded);
        }
        Ok(Begun {
            id: TransactionId(id.into()),
            is_reprocessed: ended.unwrap_or_default(),
            written_before: None,
        })
    }

    /// Ends the kept row of the delivery. Returns whether an operator has asked to reprocess the delivery. `None` if
    /// there is no row to end, for example because another attempt has taken the delivery since.
    async fn end_kept(
        &self,
        connection: &mut TxConnection,
        request: &ClaimRequest,
        lock_timeout: &str,
    ) -> Result<Option<bool>, DatabaseError> {
        let ended = with_timeout(
            self.timeout,
            keyed(END_KEPT, &request.delivery)
                .bind(request.take)
                .bind(&*request.version)
                .bind(lock_timeout)
                .fetch_one(&mut **connection),
        );
        Ok(ended.await?.try_get(0)?)
    }

    /// Inserts the fingerprint, in the transaction of the claim. Returns `false` if it was inserted before.
    async fn insert_body(
        &self,
        connection: &mut TxConnection,
        delivery: &Delivery,
        digest: Sha256Digest,
        deadline: Instant,
        lock_timeout_after: &str,
    ) -> Result<bool, DatabaseError> {
        let wait = time_until(deadline);
        let inserted = with_timeout(
            wait + self.timeout,
            sqlx::query(REPLAY_GUARD)
                .bind(delivery.endpoint())
                .bind(delivery.key_tenant())
                .bind(digest)
                .bind(delivery.id())
                .bind(millis(wait))
                .bind(millis(self.longest_wait()))
                .bind(lock_timeout_after)
                .fetch_optional(&mut **connection),
        );
        Ok(inserted.await?.is_some())
    }

    /// The id of the delivery that was committed with this body.
    pub(super) async fn first_with_body(
        &self,
        connection: &mut PgConnection,
        delivery: &Delivery,
        digest: Sha256Digest,
    ) -> Result<Option<String>, DatabaseError> {
        with_timeout(
            self.timeout,
            sqlx::query_scalar(FIRST_WITH_BODY)
                .bind(delivery.endpoint())
                .bind(delivery.key_tenant())
                .bind(digest)
                .fetch_optional(connection),
        )
        .await
    }
}

/// The time left to wait.
pub(super) fn time_until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}
