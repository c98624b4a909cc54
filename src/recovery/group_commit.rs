//! Group commit: small writes that wait for the same database share a transaction.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use crate::transaction::{DatabaseError, ShortTx, Store, with_timeout};

/// The most writes of one transaction, and after how many bytes it takes no more.
const MAX_WRITES: usize = 64;
const MAX_BYTES: usize = 1024 * 1024;

/// After a group, a writer waits for so long at most until as many wait again: whoever has been answered
/// may send the next write at once. It keeps its connection meanwhile, with the next transaction begun.
const GATHER: Duration = Duration::from_millis(1);

/// How many transactions are under way at once: one, and more only if it cannot take all that wait.
const MAX_WRITERS: usize = 4;

/// A write that can share a transaction with others of its kind.
pub(super) trait GroupWrite: Sized + Send + Sync + 'static {
    type Result: Send + 'static;

    /// How long a writer waits for others, without a connection, where nobody waits for it.
    const LINGER: Duration = Duration::ZERO;

    /// About how many bytes are sent.
    fn size(&self) -> usize;

    /// Writes all of them, and returns the result of each.
    fn write(
        tx: &mut ShortTx,
        group: &[&Self],
    ) -> impl Future<Output = sqlx::Result<Vec<Self::Result>>> + Send;
}

/// Writes that arrive while a transaction is under way share the next one, and for a moment after a
/// group others may join the next one. A lone write does not wait. Clones share the queue.
pub(super) struct GroupCommit<W: GroupWrite>(Arc<Mutex<Queue<W>>>);

struct Queue<W: GroupWrite> {
    waiting: Vec<Waiting<W>>,
    /// Notified with each write, if a writer waits for one.
    arrived: Arc<Notify>,
    writers: usize,
}

struct Waiting<W: GroupWrite> {
    write: W,
    written: oneshot::Sender<Result<W::Result, DatabaseError>>,
}

impl<W: GroupWrite> GroupCommit<W> {
    /// Writes, and returns once it is committed.
    pub(super) async fn write(&self, store: &Store, write: W) -> Result<W::Result, DatabaseError> {
        let (written, result) = oneshot::channel();
        let writer = {
            let mut queue = self.lock();
            queue.waiting.push(Waiting { write, written });
            queue.arrived.notify_waiters();
            queue.needs_writer().then(|| Writer::new(self))
        };
        if let Some(writer) = writer {
            // In a task, since it also writes what others wait for.
            tokio::spawn(writer.run(store.clone()));
        }
        match tokio::time::timeout(store.timeout, result).await {
            Ok(Ok(result)) => result,
            // The writer has panicked, or the runtime is shutting down.
            Ok(Err(_)) | Err(_) => Err(DatabaseError::TimedOut),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue<W>> {
        // Nothing panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: GroupWrite> Queue<W> {
    fn needs_writer(&mut self) -> bool {
        let needed = match self.writers {
            0 => true,
            // It takes all that wait. More would only make the groups smaller.
            _ if self.group_len() == self.waiting.len() => false,
            writers => writers < MAX_WRITERS,
        };
        self.writers += usize::from(needed);
        needed
    }

    /// Those that fit into a transaction, in the order in which they came.
    fn next_group(&mut self) -> Vec<Waiting<W>> {
        self.waiting.retain(|waiting| !waiting.written.is_closed());
        let len = self.group_len();
        self.waiting.drain(..len).collect()
    }

    fn group_len(&self) -> usize {
        let mut bytes = 0_usize;
        let fits = |waiting: &&Waiting<W>| {
            let fits = bytes < MAX_BYTES;
            bytes = bytes.saturating_add(waiting.write.size());
            fits
        };
        let waiting = self.waiting.iter().take(MAX_WRITES);
        waiting.take_while(fits).count()
    }
}

/// Writes until nothing waits.
struct Writer<W: GroupWrite> {
    group_commit: GroupCommit<W>,
    is_counted: bool,
}

impl<W: GroupWrite> Writer<W> {
    /// Of a writer that the queue has counted.
    fn new(group_commit: &GroupCommit<W>) -> Self {
        Self {
            group_commit: group_commit.clone(),
            is_counted: true,
        }
    }

    async fn run(mut self, store: Store) {
        let mut begun: Option<ShortTx> = None;
        let mut last = 0;
        loop {
            if last > 0 {
                let _ = tokio::time::timeout(GATHER, self.gather(last)).await;
            }
            if !self.goes_on() {
                if let Some(empty) = begun {
                    empty.end();
                }
                return;
            }
            if !W::LINGER.is_zero() {
                tokio::time::sleep(W::LINGER).await;
            }
            let tx = match begun.take() {
                Some(tx) => Ok(tx),
                None => with_timeout(store.timeout, store.begin_short()).await,
            };
            // Those that have come meanwhile belong to the group.
            let group = self.group_commit.lock().next_group();
            last = group.len();
            match tx {
                Ok(tx) => begun = write_group(&store, tx, group).await,
                Err(error) => fail(group, error),
            }
        }
    }

    /// Waits until so many wait.
    async fn gather(&self, wanted: usize) {
        let arrived = self.group_commit.lock().arrived.clone();
        loop {
            let mut another = std::pin::pin!(arrived.notified());
            another.as_mut().enable();
            if self.group_commit.lock().waiting.len() >= wanted {
                return;
            }
            another.await;
        }
    }

    /// Whether anything waits. Otherwise the writer ends, and a write that comes afterwards starts
    /// another one.
    fn goes_on(&mut self) -> bool {
        let mut queue = self.group_commit.lock();
        let goes_on = !queue.waiting.is_empty();
        if !goes_on {
            queue.writers -= 1;
            self.is_counted = false;
        }
        goes_on
    }
}

impl<W: GroupWrite> Drop for Writer<W> {
    fn drop(&mut self) {
        // It has panicked, or the runtime is shutting down.
        if self.is_counted {
            self.group_commit.lock().writers -= 1;
        }
    }
}

/// Writes a group. Returns the next transaction, begun with the commit, unless the writer lingers.
async fn write_group<W: GroupWrite>(
    store: &Store,
    tx: ShortTx,
    group: Vec<Waiting<W>>,
) -> Option<ShortTx> {
    match write_all(store, tx, &group).await {
        Ok((results, next)) => {
            for (waiting, result) in group.into_iter().zip(results) {
                // If nobody waits any more, it is written nevertheless.
                let _ = waiting.written.send(Ok(result));
            }
            return next;
        }
        // One of them may be what Postgres refuses, or in the way of another transaction.
        Err(error) if group.len() > 1 && error.is_reported_by_postgres() => {
            let mut next = None;
            for waiting in group {
                let alone = vec![waiting];
                let tx = match next.take() {
                    Some(tx) => Ok(tx),
                    None => with_timeout(store.timeout, store.begin_short()).await,
                };
                match tx {
                    Ok(tx) => next = Box::pin(write_group(store, tx, alone)).await,
                    Err(error) => fail(alone, error),
                }
            }
            return next;
        }
        Err(error) => fail(group, error),
    }
    None
}

async fn write_all<W: GroupWrite>(
    store: &Store,
    mut tx: ShortTx,
    group: &[Waiting<W>],
) -> Result<(Vec<W::Result>, Option<ShortTx>), DatabaseError> {
    let writes: Vec<&W> = group.iter().map(|waiting| &waiting.write).collect();
    with_timeout(store.timeout, async {
        let results = match writes.is_empty() {
            true => Vec::new(),
            false => W::write(&mut tx, &writes).await?,
        };
        let next = match W::LINGER.is_zero() {
            true => Some(tx.commit_and_begin().await?),
            false => {
                tx.commit().await?;
                None
            }
        };
        Ok((results, next))
    })
    .await
}

fn fail<W: GroupWrite>(group: Vec<Waiting<W>>, error: DatabaseError) {
    let error = Arc::new(error);
    for waiting in group {
        let error = DatabaseError::Shared(error.clone());
        let _ = waiting.written.send(Err(error));
    }
}

impl<W: GroupWrite> Clone for GroupCommit<W> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<W: GroupWrite> Default for GroupCommit<W> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Queue {
            waiting: Vec::new(),
            arrived: Arc::default(),
            writers: 0,
        })))
    }
}

impl<W: GroupWrite> fmt::Debug for GroupCommit<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCommit").finish_non_exhaustive()
    }
}
