//! Writes *acceptances*: requests that are kept before their handlers run. With `Keep::accepted`, they are written in
//! batches. Requests that arrive while the statement of one batch runs share the next transaction. The statement of
//! that transaction runs while the batch before it commits. If Postgres is reached over a network, or its disk syncs
//! each commit, writing batches is several times as fast as writing single requests.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::kept::{self, Acceptance, Accepted};
use crate::tasks_and_errors::background::spawn_once;
use crate::transaction::{DatabaseError, Store, first_within, with_timeout};

const NAME: &str = "acceptances";

/// The largest batch, in requests.
const GROUP: usize = 64;

/// The maximum total size of the bodies in a batch, in bytes. A request with a larger body is a batch of its own.
/// Postgres accepts no message over 1 GiB, and no sender should wait for many large bodies of other senders.
const GROUP_BYTES: usize = 4 * 1024 * 1024;

/// How many batches of a layer are written at once, each on its own connection: one batch whose statement runs, and
/// others that commit.
const BATCHES: usize = 3;

/// A request, and the channel on which its sender waits for the result.
type Waiting = (Acceptance, oneshot::Sender<Result<Accepted, DatabaseError>>);

/// The queue of a layer.
#[derive(Default)]
pub(super) struct Acceptances(Mutex<Option<mpsc::UnboundedSender<Waiting>>>);

impl Acceptances {
    /// Writes a request with the next batch. The write does not wait for a transaction that changes a row. It waits
    /// only for a transaction that inserts a row with the key of this request.
    pub(super) async fn write(
        &self,
        store: &Store,
        acceptance: Acceptance,
    ) -> Result<Accepted, DatabaseError> {
        let (reply, result) = oneshot::channel();
        self.send(store, (acceptance, reply));
        match tokio::time::timeout(store.timeout, result).await {
            Ok(Ok(result)) => result,
            // The runtime is shutting down, or the write has panicked.
            Ok(Err(_)) | Err(_) => Err(DatabaseError::TimedOut),
        }
    }

    fn send(&self, store: &Store, mut waiting: Waiting) {
        // Nothing panics while it holds the lock.
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = &*queue {
            match open.send(waiting) {
                Ok(()) => return,
                // The runtime of the queue has shut down.
                Err(error) => waiting = error.0,
            }
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        // The receiver still exists.
        let _ = sender.send(waiting);
        *queue = Some(sender);
        let store = store.clone();
        spawn_once(NAME, Writer { store, receiver }.run());
    }
}

impl fmt::Debug for Acceptances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptances").finish_non_exhaustive()
    }
}

/// The one task that forms the batches of a layer. It ends with the layer.
struct Writer {
    store: Store,
    receiver: mpsc::UnboundedReceiver<Waiting>,
}

/// The permits with which a batch is written.
struct Turn {
    /// The permit to run a statement. Released before the commit, so that the next batch follows, with all requests
    /// that have come meanwhile.
    statement: Option<OwnedSemaphorePermit>,
    /// One of [`BATCHES`] permits. Held until the batch is committed.
    _batch: OwnedSemaphorePermit,
}

impl Writer {
    async fn run(mut self) {
        let (statements, batches) = (
            Arc::new(Semaphore::new(1)),
            Arc::new(Semaphore::new(BATCHES)),
        );
        let mut group = Vec::with_capacity(GROUP);
        while !group.is_empty() || self.receiver.recv_many(&mut group, GROUP).await > 0 {
            // Neither semaphore is ever closed.
            let (Ok(batch), Ok(statement)) = (
                batches.clone().acquire_owned().await,
                statements.clone().acquire_owned().await,
            ) else {
                return;
            };
            let turn = Turn {
                statement: Some(statement),
                _batch: batch,
            };
            while group.len() < GROUP
                && let Ok(waiting) = self.receiver.try_recv()
            {
                group.push(waiting);
            }
            // A request that has waited for too long has been answered, and is no longer kept.
            group.retain(|(_, reply)| !reply.is_closed());
            if !group.is_empty() {
                let batch = group.drain(..batch_of(&group)).collect();
                // A panic fails this batch, and not the requests behind it.
                spawn_once(NAME, write_batch(self.store.clone(), batch, turn));
            }
        }
    }
}

/// Writes a batch, and sends each request its result.
async fn write_batch(store: Store, batch: Vec<Waiting>, mut turn: Turn) {
    let requests: Vec<_> = batch.iter().map(|(request, _)| request).collect();
    match write(&store, &requests, true, &mut turn.statement).await {
        Ok(accepted) => {
            for ((_, reply), accepted) in batch.into_iter().zip(accepted) {
                let _ = reply.send(Ok(accepted));
            }
        }
        // Requests are written one by one, so that a fault of one request does not make the others fail.
        Err(error) if batch.len() > 1 && error.is_about_the_data() => {
            for (request, reply) in batch {
                let _ = reply.send(write_one(&store, &request, true).await);
            }
        }
        Err(error) => {
            let error = Arc::new(error);
            for (_, reply) in batch {
                let _ = reply.send(Err(DatabaseError::Shared(error.clone())));
            }
        }
    }
}

/// How many of these requests, from the first one on, are written together: at least one.
fn batch_of(group: &[Waiting]) -> usize {
    let sizes = group
        .iter()
        .map(|(acceptance, _)| acceptance.request.body.len());
    first_within(GROUP_BYTES, sizes)
}

/// Writes a request whose handler runs before the answer, whether or not its endpoint is paused. The request does not
/// join the queue, because there it would also wait for the transaction of the batch before it.
pub(super) async fn write_now(
    store: &Store,
    acceptance: Acceptance,
) -> Result<Accepted, DatabaseError> {
    let written = with_timeout(store.timeout, async {
        Ok(write_one(store, &acceptance, false).await)
    });
    written.await?
}

/// Writes requests for which no sender waits.
pub(super) async fn write_group(
    store: &Store,
    group: &[Acceptance],
) -> Result<Vec<Accepted>, DatabaseError> {
    let requests: Vec<_> = group.iter().collect();
    write(store, &requests, true, &mut None).await
}

async fn write_one(
    store: &Store,
    acceptance: &Acceptance,
    waits_while_paused: bool,
) -> Result<Accepted, DatabaseError> {
    let accepted = write(store, &[acceptance], waits_while_paused, &mut None).await?;
    Ok(accepted
        .into_iter()
        .next()
        .ok_or(sqlx::Error::RowNotFound)?)
}

/// Writes requests. It tries a second time if the connection may have failed, or if the wait for a row has timed out.
/// Such a wait can be over soon: another process may have kept a delivery of the group after the statement started, and
/// may be about to delete or archive its row.
///
/// If the first try was committed although its answer was lost, the second try finds that the deliveries are known.
/// Recovery can run them once this process gives up the number under which they were taken (`liveness/mod.rs`).
async fn write(
    store: &Store,
    requests: &[&Acceptance],
    waits_while_paused: bool,
    statement: &mut Option<OwnedSemaphorePermit>,
) -> Result<Vec<Accepted>, DatabaseError> {
    match try_write(store, requests, waits_while_paused, statement).await {
        Err(error) if error.may_be_the_connection() => {
            try_write(store, requests, waits_while_paused, statement).await
        }
        written => written,
    }
}

/// Writes and commits. The permit for the statement is released before the commit.
async fn try_write(
    store: &Store,
    requests: &[&Acceptance],
    waits_while_paused: bool,
    statement: &mut Option<OwnedSemaphorePermit>,
) -> Result<Vec<Accepted>, DatabaseError> {
    let mut tx = store.begin_short().await?;
    let environment = store.environment().name();
    with_timeout(store.timeout, async {
        let accepted = kept::accept(
            &mut tx,
            requests,
            waits_while_paused,
            environment.as_deref(),
        )
        .await?;
        drop(statement.take());
        // A connection that listens receives notifications right after a commit, and sqlx takes these for an error.
        // While the next transaction is open, no notifications arrive.
        store.commit_and_begin_short(tx).await?.end();
        Ok(accepted)
    })
    .await
}
