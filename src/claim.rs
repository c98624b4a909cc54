//! The claim of a delivery and the transaction around it: all SQL of a request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::{AssertSqlSafe, PgPool, Row, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::crypto::Sha256Digest;
use crate::database::{DatabaseError, Manager, is_unusable, read_what_is_left, within};
use crate::delivery::Delivery;
use crate::failures::FailedAttempt;
use crate::random::random;
use crate::savepoint::CLAIM_DEPTH;
use crate::tx::InTransaction;

/// Begins a transaction, or fails on a connection that is already in one.
///
/// A plain `begin` in an open transaction is only a warning to Postgres, and the commit
/// would then be that of somebody else's work as well. `not deferrable` is what a
/// transaction is anyway, but saying so is an error once it has run a query.
const BEGIN: &str = "begin not deferrable";

/// Inserts the claim; returns a row if it is ours.
///
/// All attempts at a delivery queue for one lock, which is held to the end of the
/// transaction. `lock_timeout` bounds the wait in the queue as a whole. Without the queue each
/// would wait for the transaction that has inserted the row, and if that one fails, for the
/// next that inserts it, with a new `lock_timeout` each time.
///
/// `lock_timeout` is set along with the values, which is before the wait, and put back along
/// with what is returned, which is before the handler's own statements. A statement of its own
/// for either, or for the lock, would cost more.
const CLAIM: &str = "
    insert into idempotent_webhook.deliveries
        (endpoint, tenant, delivery_id, event_type, digest)
    values
        ($1, $2, $3,
        case when set_config('lock_timeout', $6, true) is not null then
            case when pg_advisory_xact_lock(
                hashtextextended($3, hashtextextended($2, hashtextextended($1, 0)))
            ) is not null then $4 end
        end,
        $5)
    on conflict do nothing
    returning pg_current_xact_id()::text, set_config('lock_timeout', $7, true)
";

/// The same for what the delivery says, where no other may say the same.
const CLAIM_BODY: &str = "
    insert into idempotent_webhook.bodies (endpoint, tenant, digest, delivery_id)
    values
        ($1, $2, $3,
        case when set_config('lock_timeout', $5, true) is not null then
            case when pg_advisory_xact_lock(
                hashtextextended(
                    encode($3, 'hex'),
                    hashtextextended($2, hashtextextended($1, 1))
                )
            ) is not null then $4 end
        end)
    on conflict do nothing
    returning set_config('lock_timeout', $6, true)
";

const FIRST_DIGEST: &str = "
    select digest
    from idempotent_webhook.deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
";

const FIRST_WITH_BODY: &str = "
    select delivery_id
    from idempotent_webhook.bodies
    where endpoint = $1 and tenant = $2 and digest = $3
";

/// The transaction, which should still be the one of the claim, with a nonce. Fails in an
/// aborted one, whose `commit` Postgres would answer with a rollback and no error.
///
/// The nonce tells that the answer is the one to this very question: after a `COPY` that failed
/// or was broken off, sqlx takes the answers to earlier statements for those to later ones.
///
/// In one message with the commit this would save a round trip. But a message of two statements
/// cannot be prepared, and to parse and plan the first costs Postgres more.
const CURRENT_TRANSACTION: &str = "select pg_current_xact_id_if_assigned()::text || $1::text";

/// Commits. The next transaction, which is empty, begins with the same statement: Postgres sends
/// no notifications in it, which sqlx would take for a broken protocol.
const COMMIT: &str = "commit and chain";

/// Rolls back, and returns the nonce. The next transaction begins, as with `COMMIT`.
fn roll_back_and_return(nonce: &Nonce) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!("rollback and chain; select '{}'", nonce.0))
}

/// What no statement of a handler returns.
struct Nonce(String);

impl Nonce {
    fn new() -> Self {
        Self(format!("/{:016x}", random()))
    }
}

/// Makes room for the registration of this process's redelivery window. Other windows of the
/// endpoint go once no process has registered them for a day: a rolling deploy is over by then.
const OUTDATED_REDELIVERY_WINDOWS: &str = "
    delete from idempotent_webhook.redelivery_windows
    where endpoint = $1
        and (
            redelivery_window = make_interval(secs => $2)
                and registered_at < now() - interval '30 minutes'
            or registered_at < now() - interval '1 day'
        )
";

const REGISTER_REDELIVERY_WINDOW: &str = "
    insert into idempotent_webhook.redelivery_windows (endpoint, redelivery_window)
    values ($1, make_interval(secs => $2))
    on conflict do nothing
";

/// How often a process that claims deliveries registers its redelivery window.
const REGISTRATION_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// How often a claim is tried again that only failed for its isolation level.
const MAX_CONFLICTS: usize = 10;

/// On how many connections a claim is tried.
const MAX_CONNECTIONS: usize = 2;

/// Where deliveries are claimed. Clones share what is counted and remembered.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pool: PgPool,
    pub(crate) timeout: Duration,
    permits: Option<Arc<Semaphore>>,
    registration: Arc<Mutex<Option<Registration>>>,
}

/// That this process has registered the redelivery window of its endpoint.
#[derive(Debug)]
struct Registration {
    registered_at: Instant,
    /// What `lock_timeout` is on the connections of the pool, outside of claims.
    lock_timeout: Arc<str>,
}

/// What is to be claimed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) delivery: &'a Delivery,
    pub(crate) content: Option<Content>,
    pub(crate) redelivery_window: Duration,
    /// Until when to wait for another process that is at it.
    pub(crate) deadline: Instant,
}

impl Wanted<'_> {
    /// How long there is still to wait for another process.
    fn wait(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// What came of a claim.
pub(crate) enum Claim {
    /// It is ours, in this transaction.
    Claimed(InTransaction, TransactionId),
    /// It was committed before.
    Duplicate(Repeat),
    /// Another process was still at it when the time was up.
    InFlight,
}

/// What came of a claim, in its transaction.
enum ClaimIn {
    Claimed(TransactionId),
    Duplicate(Repeat),
    WaitIsOver,
}

/// In what a duplicate repeats a delivery that was committed before.
pub(crate) enum Repeat {
    /// In its id, and in its body as far as that was looked at.
    Id,
    /// In its id, but not in its body.
    IdOnly {
        first: Sha256Digest,
        now: Sha256Digest,
    },
    /// In its body, but not in its id. The id of the first, if it is known.
    BodyOnly { first: Option<String> },
}

/// What a delivery says, beside its id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    pub(crate) digest: Sha256Digest,
    /// Whether no other delivery may say the same.
    pub(crate) guarded: bool,
}

/// Postgres' id of the transaction of a claim, as text: sqlx would look up the type `xid8`
/// on every new connection.
pub(crate) struct TransactionId(String);

/// Why what the handler did is not committed, or not known to be.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// A statement had failed, which the handler ignored.
    Aborted,
    /// The handler had ended the transaction, or left a savepoint open.
    NotOurs,
    Database(DatabaseError),
}

impl Store {
    pub(crate) fn new(pool: PgPool, timeout: Duration) -> Self {
        Self {
            pool,
            timeout,
            permits: None,
            registration: Arc::default(),
        }
    }

    /// Holds at most so many connections at once.
    pub(crate) fn limit_connections(&mut self, connections: usize) {
        let permits = connections.clamp(1, Semaphore::MAX_PERMITS);
        self.permits = Some(Arc::new(Semaphore::new(permits)));
    }

    pub(crate) async fn claim(&self, wanted: Wanted<'_>) -> Result<Claim, DatabaseError> {
        let mut conflicts = 0;
        let mut connections = 1;
        loop {
            let error = match self.try_claim(wanted).await {
                Ok(claim) => return Ok(claim),
                Err(error) => error,
            };
            if error.is_conflict() && conflicts < MAX_CONFLICTS {
                // Under `repeatable read` and `serializable`, a claim that has waited for
                // another one fails if that was committed: to a new snapshot it is a duplicate.
                conflicts += 1;
            } else if error.may_be_the_connection() && connections < MAX_CONNECTIONS {
                // The handler has not run yet, so nothing can happen twice.
                connections += 1;
            } else {
                return Err(error);
            }
        }
    }

    async fn try_claim(&self, wanted: Wanted<'_>) -> Result<Claim, DatabaseError> {
        let mut connection = self.begin().await?;
        match self.claim_in(&mut connection, wanted).await {
            Ok(ClaimIn::Claimed(id)) => Ok(Claim::Claimed(connection, id)),
            Ok(ClaimIn::Duplicate(repeat)) => {
                // Nothing will stay and nobody needs to wait for the rollback: it is sent
                // while the connection goes back to the pool.
                Manager::start_rollback(&mut connection);
                connection.release();
                Ok(Claim::Duplicate(repeat))
            }
            Ok(ClaimIn::WaitIsOver) => {
                self.roll_back(connection).await;
                Ok(Claim::InFlight)
            }
            Err(error) if error.is_conflict() => {
                self.roll_back(connection).await;
                Err(error)
            }
            // In the midst of a statement, or not fit for the next delivery either: dropping
            // the connection closes it.
            Err(error) => Err(error),
        }
    }

    /// Claims in a transaction.
    async fn claim_in(
        &self,
        connection: &mut InTransaction,
        wanted: Wanted<'_>,
    ) -> Result<ClaimIn, DatabaseError> {
        let Wanted {
            delivery, content, ..
        } = wanted;
        let lock_timeout = match self.registered() {
            Some(lock_timeout) => lock_timeout,
            None => self.register(connection, wanted).await?,
        };
        let wait = wanted.wait();
        let claimed = within(
            wait + self.timeout,
            sqlx::query_scalar(CLAIM)
                .bind(delivery.endpoint())
                .bind(delivery.key_tenant())
                .bind(delivery.id().as_str())
                .bind(delivery.event_type())
                .bind(content.map(|content| content.digest))
                .bind(millis(wait))
                .bind(&*lock_timeout)
                .fetch_optional(&mut **connection),
        );
        let id = match claimed.await {
            Ok(Some(id)) => id,
            Ok(None) => {
                let repeat = self.repeated_id(connection, delivery, content).await?;
                return Ok(ClaimIn::Duplicate(repeat));
            }
            Err(error) if error.is_wait_over() => return Ok(ClaimIn::WaitIsOver),
            Err(error) => return Err(error),
        };
        if let Some(Content {
            digest,
            guarded: true,
        }) = content
        {
            let claimed = self.claim_body(connection, wanted, digest, &lock_timeout);
            match claimed.await {
                Ok(true) => {}
                Ok(false) => {
                    let repeat = self.repeated_body(connection, delivery, digest).await?;
                    return Ok(ClaimIn::Duplicate(repeat));
                }
                Err(error) if error.is_wait_over() => return Ok(ClaimIn::WaitIsOver),
                Err(error) => return Err(error),
            }
        }
        Ok(ClaimIn::Claimed(TransactionId(id)))
    }

    /// Claims what the delivery says, in the transaction in which its id has been claimed.
    /// Returns whether it was left to claim.
    async fn claim_body(
        &self,
        connection: &mut InTransaction,
        wanted: Wanted<'_>,
        digest: Sha256Digest,
        lock_timeout: &str,
    ) -> Result<bool, DatabaseError> {
        let wait = wanted.wait();
        let claimed = within(
            wait + self.timeout,
            sqlx::query(CLAIM_BODY)
                .bind(wanted.delivery.endpoint())
                .bind(wanted.delivery.key_tenant())
                .bind(digest)
                .bind(wanted.delivery.id().as_str())
                .bind(millis(wait))
                .bind(lock_timeout)
                .fetch_optional(&mut **connection),
        );
        Ok(claimed.await?.is_some())
    }

    /// Finds out whether a delivery that was committed before has the same body, as far as
    /// bodies are looked at.
    async fn repeated_id(
        &self,
        connection: &mut InTransaction,
        delivery: &Delivery,
        content: Option<Content>,
    ) -> Result<Repeat, DatabaseError> {
        let Some(Content { digest: now, .. }) = content else {
            return Ok(Repeat::Id);
        };
        let first: Option<Option<Vec<u8>>> = within(
            self.timeout,
            sqlx::query_scalar(FIRST_DIGEST)
                .bind(delivery.endpoint())
                .bind(delivery.key_tenant())
                .bind(delivery.id().as_str())
                .fetch_optional(&mut **connection),
        )
        .await?;
        Ok(
            match first.flatten().and_then(|digest| digest.try_into().ok()) {
                Some(first) if first != now => Repeat::IdOnly { first, now },
                // Of one that was claimed before digests were kept, nothing is known, and
                // neither of one that has been pruned meanwhile.
                Some(_) | None => Repeat::Id,
            },
        )
    }

    /// Finds out under which id a body was committed before.
    async fn repeated_body(
        &self,
        connection: &mut InTransaction,
        delivery: &Delivery,
        digest: Sha256Digest,
    ) -> Result<Repeat, DatabaseError> {
        let first = within(
            self.timeout,
            sqlx::query_scalar(FIRST_WITH_BODY)
                .bind(delivery.endpoint())
                .bind(delivery.key_tenant())
                .bind(digest)
                .fetch_optional(&mut **connection),
        )
        .await?;
        Ok(Repeat::BodyOnly { first })
    }

    /// Begins a transaction on a connection that is in none.
    async fn begin(&self) -> Result<InTransaction, DatabaseError> {
        within(self.timeout, self.begin_unbounded()).await
    }

    async fn begin_unbounded(&self) -> sqlx::Result<InTransaction> {
        let permit = match &self.permits {
            None => None,
            // Never closed, so there is always one.
            Some(permits) => permits.clone().acquire_owned().await.ok(),
        };
        let mut connections_left = self.pool.options().get_max_connections();
        loop {
            // Boxed, since it is by far the largest of all that a delivery waits for.
            let connection = Box::pin(self.pool.acquire()).await?;
            let mut connection = InTransaction::new(connection);
            match Manager::begin(&mut connection, Some(BEGIN.into_sql_str())).await {
                Ok(()) => return Ok(connection.holding(permit)),
                Err(error) if connections_left > 0 && is_unusable(&error) => {
                    connections_left -= 1;
                    tracing::debug!(%error, "closing an unusable connection of the pool");
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Commits, unless what would be committed is not what was claimed.
    pub(crate) async fn commit(
        &self,
        mut connection: InTransaction,
        id: TransactionId,
    ) -> Result<(), CommitError> {
        if Manager::get_transaction_depth(&connection) != CLAIM_DEPTH {
            self.roll_back(connection).await;
            return Err(CommitError::NotOurs);
        }
        let nonce = Nonce::new();
        let committed = within(self.timeout, async {
            read_what_is_left(&mut connection).await?;
            let current: Option<String> = sqlx::query_scalar(CURRENT_TRANSACTION)
                .bind(&nonce.0)
                .fetch_one(&mut *connection)
                .await?;
            let still_ours = current == Some(id.0 + &nonce.0);
            if still_ours {
                sqlx::raw_sql(COMMIT).execute(&mut *connection).await?;
            }
            Ok(still_ours)
        });
        match committed.await {
            Ok(true) => {
                // The empty transaction. This is sent while the connection goes back to the
                // pool.
                Manager::start_rollback(&mut connection);
                connection.release();
                Ok(())
            }
            Ok(false) => {
                self.roll_back(connection).await;
                Err(CommitError::NotOurs)
            }
            Err(error) if error.is_aborted_transaction() => {
                self.roll_back(connection).await;
                Err(CommitError::Aborted)
            }
            Err(error) => Err(CommitError::Database(error)),
        }
    }

    /// Rolls back and waits for it, so that the next attempt can claim the delivery at once.
    ///
    /// A connection that cannot be rolled back is closed, which has the same effect a
    /// little later. So is one that is out of step, or on which sqlx counts something else than
    /// the transaction: a savepoint that was left open, or a transaction that it has given up.
    pub(crate) async fn roll_back(&self, mut connection: InTransaction) {
        let intact = Manager::get_transaction_depth(&connection) == CLAIM_DEPTH;
        let nonce = Nonce::new();
        let rolled_back = within(self.timeout, async {
            read_what_is_left(&mut connection).await?;
            let row = sqlx::raw_sql(roll_back_and_return(&nonce))
                .fetch_one(&mut *connection)
                .await?;
            row.try_get::<String, _>(0)
        });
        match rolled_back.await {
            Ok(returned) if intact && returned == nonce.0 => {
                Manager::start_rollback(&mut connection);
                connection.release();
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "could not roll back, closing the connection"),
        }
    }

    /// Puts down that an attempt has failed, once it has been rolled back.
    pub(crate) async fn record(
        &self,
        attempt: &FailedAttempt,
        delivery: &Delivery,
    ) -> Result<(), DatabaseError> {
        let mut connection = self.begin().await?;
        within(self.timeout, async {
            attempt.record(&mut connection, delivery).await?;
            Manager::commit(&mut connection).await
        })
        .await?;
        connection.release();
        Ok(())
    }

    /// The pool's own `lock_timeout`, if this process need not register its window now. Where it
    /// has to do so again, one delivery does it, and the others go on.
    fn registered(&self) -> Option<Arc<str>> {
        let mut registration = self.registration();
        let known = registration.as_mut()?;
        if known.registered_at.elapsed() < REGISTRATION_INTERVAL {
            return Some(known.lock_timeout.clone());
        }
        known.registered_at = Instant::now();
        None
    }

    /// Registers for how long the provider may deliver again, and reads the `lock_timeout` to
    /// restore after a claim.
    ///
    /// It ends the transaction and begins another, so that deliveries do not wait for one
    /// another on this row.
    async fn register(
        &self,
        connection: &mut InTransaction,
        wanted: Wanted<'_>,
    ) -> Result<Arc<str>, DatabaseError> {
        let registered = within(self.timeout, async {
            for statement in [OUTDATED_REDELIVERY_WINDOWS, REGISTER_REDELIVERY_WINDOW] {
                sqlx::query(statement)
                    .bind(wanted.delivery.endpoint())
                    .bind(wanted.redelivery_window.as_secs_f64())
                    .execute(&mut **connection)
                    .await?;
            }
            Manager::commit(connection).await?;
            let row = sqlx::raw_sql("show lock_timeout")
                .fetch_one(&mut **connection)
                .await?;
            Manager::begin(connection, Some(BEGIN.into_sql_str())).await?;
            row.try_get::<String, _>(0)
        })
        .await;
        let mut registration = self.registration();
        match registered {
            Ok(lock_timeout) => {
                let lock_timeout: Arc<str> = lock_timeout.into();
                *registration = Some(Registration {
                    registered_at: Instant::now(),
                    lock_timeout: lock_timeout.clone(),
                });
                Ok(lock_timeout)
            }
            Err(error) => {
                *registration = None;
                Err(error)
            }
        }
    }

    fn registration(&self) -> MutexGuard<'_, Option<Registration>> {
        // Nothing panics while it holds the lock.
        self.registration
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// As `lock_timeout` takes it, to which zero would mean for ever.
fn millis(time: Duration) -> String {
    time.as_millis().max(1).to_string()
}
