//! Writes acceptances: requests that are kept before their handlers run. With `Keep::accepted` they are written
//! in batches: what arrives during one commit shares the next transaction. Where Postgres is behind a network
//! or a disk that syncs, that is several times as fast.

use std::fmt;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

use super::kept::{self, Acceptance, Accepted};
use crate::background::{guarded, spawn_once};
use crate::transaction::{DatabaseError, ShortTx, Store, first_within, with_timeout};

const NAME: &str = "acceptances";

/// The largest batch, in requests.
const GROUP: usize = 64;

/// The most bytes of bodies in a batch, unless one body alone has more. Postgres takes no message over 1 GiB, and no
/// sender should wait for many large bodies of other senders.
const GROUP_BYTES: usize = 4 * 1024 * 1024;

/// A request, and where its sender waits for the result.
type Waiting = (Acceptance, oneshot::Sender<Result<Accepted, DatabaseError>>);

/// The result for each request of a batch, and the next transaction.
type Written = Result<(Vec<Accepted>, ShortTx), DatabaseError>;

/// The queue of a layer.
#[derive(Default)]
pub(super) struct Acceptances(Mutex<Option<mpsc::UnboundedSender<Waiting>>>);

impl Acceptances {
    /// Writes a request with the next batch. It waits for no transaction that changes a row, only for one that inserts a row
    /// of the same key.
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
                // Its runtime has shut down.
                Err(error) => waiting = error.0,
            }
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        // Its receiver is there.
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

/// The one task that writes for a layer. It ends with the layer.
struct Writer {
    store: Store,
    receiver: mpsc::UnboundedReceiver<Waiting>,
}

impl Writer {
    async fn run(mut self) {
        let mut group = Vec::with_capacity(GROUP);
        // Begun while there is more to write. That saves a round trip, and the way of the connection through the pool.
        let mut begun: Option<ShortTx> = None;
        while self.receiver.recv_many(&mut group, GROUP).await > 0 {
            loop {
                // A request that has waited for too long has been answered, and is not kept any more.
                group.retain(|(_, reply)| !reply.is_closed());
                if group.is_empty() {
                    break;
                }
                let batch: Vec<_> = group.drain(..batch_of(&group)).collect();
                // A panic fails the batch, and not what waits behind it.
                let written = guarded(NAME, self.write_batch(begun, batch)).await;
                begun = written.flatten();
            }
            if self.receiver.is_empty()
                && let Some(tx) = begun.take()
            {
                tx.end();
            }
        }
    }

    /// Writes a batch, and tells each request its result. Returns the transaction that is begun, if there is more to write.
    async fn write_batch(&self, begun: Option<ShortTx>, batch: Vec<Waiting>) -> Option<ShortTx> {
        match self.write(begun, &batch).await {
            // One by one, so that a fault of one request does not fail the rest.
            Err(error) if batch.len() > 1 && error.is_about_the_data() => {
                let mut begun = None;
                for one in batch {
                    let written = self.write(begun.take(), slice::from_ref(&one)).await;
                    begun = self.reply([one], written);
                }
                begun
            }
            written => self.reply(batch, written),
        }
    }

    async fn write(&self, begun: Option<ShortTx>, group: &[Waiting]) -> Written {
        let requests: Vec<_> = group.iter().map(|(request, _)| request).collect();
        write(&self.store, begun, &requests, true).await
    }

    /// Tells each request its result. Returns the transaction that is begun, if there is more to write.
    fn reply(&self, group: impl IntoIterator<Item = Waiting>, written: Written) -> Option<ShortTx> {
        match written {
            Ok((accepted, tx)) => {
                for ((_, reply), accepted) in group.into_iter().zip(accepted) {
                    let _ = reply.send(Ok(accepted));
                }
                // A queue that requests keep filling is never empty. A handler may need the connection, and
                // `PgPool::close` waits for each.
                let is_wanted = self.store.is_pool_in_use() || self.store.pool().is_closed();
                if !self.receiver.is_empty() && !is_wanted {
                    return Some(tx);
                }
                tx.end();
            }
            Err(error) => {
                let error = Arc::new(error);
                for (_, reply) in group {
                    let _ = reply.send(Err(DatabaseError::Shared(error.clone())));
                }
            }
        }
        None
    }
}

/// How many of these, in their order, are written together: one at least.
fn batch_of(group: &[Waiting]) -> usize {
    let sizes = group
        .iter()
        .map(|(acceptance, _)| acceptance.request.body.len());
    first_within(GROUP_BYTES, sizes)
}

/// Writes a request whose handler runs before the answer, whether its endpoint is paused or not. It does not
/// join the queue, where it would also wait for the transaction before its own.
pub(super) async fn write_now(
    store: &Store,
    acceptance: Acceptance,
) -> Result<Accepted, DatabaseError> {
    let written = with_timeout(store.timeout, async {
        Ok(write(store, None, &[&acceptance], false).await)
    });
    let (accepted, tx) = written.await??;
    tx.end();
    Ok(accepted
        .into_iter()
        .next()
        .ok_or(sqlx::Error::RowNotFound)?)
}

/// Writes requests that no sender waits for.
pub(super) async fn write_group(
    store: &Store,
    group: &[Acceptance],
) -> Result<Vec<Accepted>, DatabaseError> {
    let requests: Vec<_> = group.iter().collect();
    let (accepted, tx) = write(store, None, &requests, true).await?;
    tx.end();
    Ok(accepted)
}

/// Writes, with a second try if the connection may have failed, or if the wait for a row was over: another process may
/// have kept a delivery of the group after the statement began, and be ending it. If the first try was committed
/// although its answer was lost, the requests are known by then. They are free once the other attempts under their
/// number have ended.
async fn write(
    store: &Store,
    begun: Option<ShortTx>,
    requests: &[&Acceptance],
    waits_while_paused: bool,
) -> Written {
    match try_write(store, begun, requests, waits_while_paused).await {
        Err(error) if error.may_be_the_connection() => {
            try_write(store, None, requests, waits_while_paused).await
        }
        written => written,
    }
}

/// Writes and commits, and begins the next transaction.
async fn try_write(
    store: &Store,
    begun: Option<ShortTx>,
    requests: &[&Acceptance],
    waits_while_paused: bool,
) -> Written {
    let mut tx = match begun {
        Some(begun) => begun,
        None => store.begin_short().await?,
    };
    with_timeout(store.timeout, async {
        let accepted = kept::accept(&mut tx, requests, waits_while_paused).await?;
        Ok((accepted, store.commit_and_begin_short(tx).await?))
    })
    .await
}
