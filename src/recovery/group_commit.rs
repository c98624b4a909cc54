//! Group commit: small writes that wait for the same database share a transaction.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::PgConnection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

use crate::transaction::{Autocommit, DatabaseError, ShortTx, Store, with_timeout};

/// The most writes of one transaction, and after how many bytes it takes no more.
const MAX_WRITES: usize = 64;
const MAX_BYTES: usize = 1024 * 1024;

/// After a group, a writer that keeps its connection waits for so long at most until as many wait
/// again: whoever has been answered may send the next write at once.
const GATHER: Duration = Duration::from_millis(1);

/// How many transactions are under way at once: one, and more only if it cannot take all that wait.
const MAX_WRITERS: usize = 4;

/// For how long it keeps its connection at most, so that whoever waits for the pool gets a turn, even if
/// there is always another write.
const MAX_KEPT: Duration = Duration::from_millis(100);

/// A write that can share a transaction with others of its kind. It is written again if the connection was
/// lost, also if that was after the commit.
pub(super) trait GroupWrite: Sized + Send + Sync + 'static {
    type Result: Send + 'static;

    /// Whether a writer keeps its connection for the next group, which is then written without
    /// `begin` and `commit`: two round trips less. For what is written by one statement: further ones
    /// are transactions of their own.
    const AUTOCOMMIT: bool = false;

    /// How long a writer waits for others, without a connection, where nobody waits for it.
    const LINGER: Duration = Duration::ZERO;

    /// About how many bytes are sent.
    fn size(&self) -> usize;

    /// Writes them, and returns the result of each. `None` for one that has to be written alone, since it
    /// may wait, or fail, while others are in the group.
    fn write(
        connection: &mut PgConnection,
        group: &[&Self],
    ) -> impl Future<Output = sqlx::Result<Vec<Option<Self::Result>>>> + Send;

    /// Writes one alone, in a transaction of its own. It may wait, and holds up nothing else but those
    /// that are written alone, too.
    fn write_alone(
        connection: &mut PgConnection,
        one: &Self,
    ) -> impl Future<Output = sqlx::Result<Self::Result>> + Send {
        async move {
            let mut results = Self::write(connection, &[one]).await?;
            results.pop().flatten().ok_or(sqlx::Error::RowNotFound)
        }
    }
}

/// Writes that arrive while a transaction is under way share the next one, and for a moment after a
/// group others may join the next one. A lone write does not wait. Clones share the queue.
pub(super) struct GroupCommit<W: GroupWrite>(Arc<Mutex<Queue<W>>>);

struct Queue<W: GroupWrite> {
    waiting: Vec<Waiting<W>>,
    writers: usize,
    /// Those that are written alone, one after the other, by the task that has the permit.
    alone: VecDeque<Waiting<W>>,
    writes_alone: Arc<Semaphore>,
    /// A writer that waits until so many wait.
    gathering: Option<(usize, oneshot::Sender<()>)>,
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
            queue.wake_writer();
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

    /// Writes each in a transaction of its own, in another task.
    fn write_each_alone(&self, store: &Store, group: impl IntoIterator<Item = Waiting<W>>) {
        let mut queue = self.lock();
        queue.alone.extend(group);
        if !queue.alone.is_empty()
            && let Ok(permit) = queue.writes_alone.clone().try_acquire_owned()
        {
            tokio::spawn(self.clone().run_alone(store.clone(), permit));
        }
    }

    async fn run_alone(self, store: Store, permit: OwnedSemaphorePermit) {
        let mut permit = Some(permit);
        while let Some(waiting) = self.next_alone(&mut permit) {
            match Connection::begin(&store).await {
                Ok(begun) => {
                    let group = Group {
                        waiting: vec![waiting],
                        alone: true,
                    };
                    if let Some(kept) = group.write(&self, &store, begun).await {
                        kept.release();
                    }
                }
                Err(error) => fail([waiting], error),
            }
        }
    }

    /// The next one for whom somebody waits. If there is none, the permit is free before one can come.
    fn next_alone(&self, permit: &mut Option<OwnedSemaphorePermit>) -> Option<Waiting<W>> {
        let mut queue = self.lock();
        queue.alone.retain(|waiting| !waiting.written.is_closed());
        let next = queue.alone.pop_front();
        if next.is_none() {
            *permit = None;
        }
        next
    }

    fn lock(&self) -> MutexGuard<'_, Queue<W>> {
        // Nothing panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: GroupWrite> Queue<W> {
    fn wake_writer(&mut self) {
        let waiting = self.waiting.len();
        if let Some((_, writer)) = self.gathering.take_if(|(wanted, _)| *wanted <= waiting) {
            let _ = writer.send(());
        }
    }

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
        let mut kept: Option<Autocommit> = None;
        let mut last = 0;
        let mut begun_at = Instant::now();
        loop {
            if kept.is_some() {
                self.gather(last).await;
            }
            let goes_on = self.goes_on();
            if let Some(connection) = kept.take_if(|_| !goes_on || begun_at.elapsed() > MAX_KEPT) {
                connection.release();
            }
            if !goes_on {
                return;
            }
            if !W::LINGER.is_zero() {
                tokio::time::sleep(W::LINGER).await;
            }
            let connection = match kept.take() {
                Some(kept) => Ok(Connection::Kept(kept)),
                None => {
                    begun_at = Instant::now();
                    Connection::begin(&store).await
                }
            };
            // Those that have come meanwhile belong to the group.
            let group = self.group_commit.lock().next_group();
            last = group.len();
            match connection {
                Ok(connection) => {
                    let to_write = Group {
                        waiting: group,
                        alone: false,
                    };
                    kept = to_write.write(&self.group_commit, &store, connection).await;
                }
                Err(error) => fail(group, error),
            }
        }
    }

    /// Waits for a moment until so many wait.
    async fn gather(&self, wanted: usize) {
        let (wake, enough) = oneshot::channel();
        {
            let mut queue = self.group_commit.lock();
            if queue.waiting.len() >= wanted {
                return;
            }
            queue.gathering = Some((wanted, wake));
        }
        let _ = tokio::time::timeout(GATHER, enough).await;
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

/// Where a group is written.
enum Connection {
    /// In a transaction: what the pool returns may have been left in one, and is not used then.
    Begun(ShortTx),
    /// That of the last group.
    Kept(Autocommit),
}

impl Connection {
    async fn begin(store: &Store) -> Result<Self, DatabaseError> {
        let tx = store.begin_short().await?;
        Ok(Self::Begun(tx))
    }

    /// For the next group, unless it has to return to the pool.
    async fn keep(self, store: &Store) -> Option<Autocommit> {
        match self {
            Self::Begun(tx) if store.keeps_connections() => {
                with_timeout(store.timeout, tx.keep()).await.ok().flatten()
            }
            Self::Begun(_) => {
                self.release();
                None
            }
            Self::Kept(connection) => Some(connection),
        }
    }

    /// Returns it to the pool, with nothing done since the last group.
    fn release(self) {
        match self {
            Self::Begun(tx) => tx.end().release(),
            Self::Kept(connection) => connection.release(),
        }
    }
}

/// Writes that share a transaction, or one that has it alone.
struct Group<W: GroupWrite> {
    waiting: Vec<Waiting<W>>,
    alone: bool,
}

impl<W: GroupWrite> Group<W> {
    /// Writes them. Returns the connection if it is to be kept.
    async fn write(
        self,
        group_commit: &GroupCommit<W>,
        store: &Store,
        mut connection: Connection,
    ) -> Option<Autocommit> {
        let is_kept = matches!(connection, Connection::Kept(_));
        // A connection may have been lost, or left with other settings: another isolation level, say.
        let mut connections_left = 1 + usize::from(is_kept);
        let error = loop {
            let error = match self.try_write(store, connection).await {
                Ok((results, connection)) => {
                    let mut left = Vec::new();
                    for (waiting, result) in self.waiting.into_iter().zip(results) {
                        match result {
                            // If nobody waits any more, it is written nevertheless.
                            Some(result) => drop(waiting.written.send(Ok(result))),
                            None => left.push(waiting),
                        }
                    }
                    group_commit.write_each_alone(store, left);
                    return connection?.keep(store).await;
                }
                Err(error) => error,
            };
            if connections_left == 0 || !error.may_be_the_connection() {
                break error;
            }
            connections_left -= 1;
            tracing::debug!(%error, "writing kept webhooks again, on another connection");
            if is_kept && error.is_statement_lost() {
                store.keep_no_connections();
            }
            connection = match Connection::begin(store).await {
                Ok(begun) => begun,
                Err(error) => break error,
            };
        };
        if self.waiting.len() > 1 && error.is_reported_by_postgres() {
            // One of them may be what Postgres refuses.
            group_commit.write_each_alone(store, self.waiting);
        } else {
            fail(self.waiting, error);
        }
        None
    }

    /// Writes them, and commits. Returns the connection if it may be kept.
    async fn try_write(
        &self,
        store: &Store,
        mut connection: Connection,
    ) -> Result<(Vec<Option<W::Result>>, Option<Connection>), DatabaseError> {
        let writes: Vec<&W> = self.waiting.iter().map(|waiting| &waiting.write).collect();
        with_timeout(store.timeout, async {
            let on = match &mut connection {
                Connection::Begun(tx) => tx.connection(),
                Connection::Kept(connection) => connection.connection(),
            };
            let results = match &*writes {
                [] => Vec::new(),
                [one] if self.alone => vec![Some(W::write_alone(on, one).await?)],
                group => W::write(on, group).await?,
            };
            let connection = match connection {
                Connection::Begun(tx) if W::AUTOCOMMIT => {
                    Some(Connection::Begun(tx.commit_and_begin().await?))
                }
                Connection::Begun(tx) => {
                    tx.commit().await?;
                    None
                }
                kept @ Connection::Kept(_) => Some(kept),
            };
            Ok((results, connection))
        })
        .await
    }
}

fn fail<W: GroupWrite>(group: impl IntoIterator<Item = Waiting<W>>, error: DatabaseError) {
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
            writers: 0,
            alone: VecDeque::new(),
            writes_alone: Arc::new(Semaphore::new(1)),
            gathering: None,
        })))
    }
}

impl<W: GroupWrite> fmt::Debug for GroupCommit<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCommit").finish_non_exhaustive()
    }
}
