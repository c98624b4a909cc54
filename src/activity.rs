//! What came in and with which outcome, counted for each hour in a small table.
//!
//! A request only adds to a number in memory. Every few seconds a task writes the numbers of a layer,
//! in one statement. It ends when there is nothing to write, so an idle layer costs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::transaction::{DatabaseError, Store};

/// How often the numbers of a layer are written.
const INTERVAL: Duration = Duration::from_secs(5);

/// In the order of the key, so that two processes do not wait for each other in a circle.
const ADD: &str = "
    insert into idempotent_webhook.activity as known
        (endpoint, hour, source, outcome, count, last_at)
    select $1, date_trunc('hour', now(), 'UTC'), source, outcome, count, now()
    from unnest($2::text[], $3::text[], $4::int8[]) as new (source, outcome, count)
    order by source, outcome
    on conflict (endpoint, hour, source, outcome) do update
    set count = known.count + excluded.count, last_at = excluded.last_at
";

/// Where an outcome comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A request of the provider.
    Request,
    /// An attempt at a kept delivery.
    Recovery,
}

impl Source {
    fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Recovery => "recovery",
        }
    }
}

/// The outcome of a delivery that is not run again unless an operator says so.
pub(crate) const DEAD: &str = "dead";

/// All that is counted.
const COUNTED: [(Source, &str); 14] = [
    (Source::Recovery, DEAD),
    (Source::Recovery, "duplicate"),
    (Source::Recovery, "failed"),
    (Source::Recovery, "in-flight"),
    (Source::Recovery, "kept"),
    (Source::Recovery, "processed"),
    (Source::Request, "accepted"),
    (Source::Request, "duplicate"),
    (Source::Request, "failed"),
    (Source::Request, "handshake"),
    (Source::Request, "in-flight"),
    (Source::Request, "kept"),
    (Source::Request, "processed"),
    (Source::Request, "rejected"),
];

/// The numbers of a layer that are not written yet. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Activity(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    endpoint: Arc<str>,
    counts: [AtomicU64; COUNTED.len()],
    /// Whether there is a task that writes them.
    has_writer: AtomicBool,
}

impl Activity {
    pub(crate) fn new(endpoint: Arc<str>) -> Self {
        Self(Arc::new(Counters {
            endpoint,
            counts: Default::default(),
            has_writer: AtomicBool::new(false),
        }))
    }

    /// Counts, and has it written to `store` within seconds.
    pub(crate) fn count(&self, store: &Store, source: Source, outcome: &'static str) {
        let counters = &self.0;
        let counted = COUNTED.iter().position(|known| *known == (source, outcome));
        let Some(count) = counted.and_then(|index| counters.counts.get(index)) else {
            return;
        };
        // In one order with what `has_ended` reads and writes: either the writer sees this number, or
        // this sees that there is no writer.
        count.fetch_add(1, Ordering::SeqCst);
        self.ensure_writer(store);
    }

    /// Writes what is not written yet, or leaves it for later.
    pub(crate) async fn write(&self, store: &Store) -> Result<(), DatabaseError> {
        let taken = Taken::from(&self.0);
        if taken.is_empty() {
            return Ok(());
        }
        let (mut sources, mut outcomes, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for ((source, outcome), count) in COUNTED.iter().zip(taken.counts) {
            if count > 0 {
                sources.push(source.as_str());
                outcomes.push(*outcome);
                counts.push(i64::try_from(count).unwrap_or(i64::MAX));
            }
        }
        let statement = sqlx::query(ADD)
            .bind(&*self.0.endpoint)
            .bind(sources)
            .bind(outcomes)
            .bind(counts);
        store.run(statement).await?;
        taken.forget();
        Ok(())
    }

    fn ensure_writer(&self, store: &Store) {
        let has_writer = &self.0.has_writer;
        if has_writer.load(Ordering::SeqCst) || has_writer.swap(true, Ordering::SeqCst) {
            return;
        }
        let writer = Writer {
            activity: self.clone(),
            store: store.clone(),
            is_the_one: true,
        };
        tokio::spawn(writer.run());
    }
}

/// The only task that writes the numbers of a layer.
struct Writer {
    activity: Activity,
    store: Store,
    is_the_one: bool,
}

impl Writer {
    async fn run(mut self) {
        let mut has_warned = false;
        loop {
            tokio::time::sleep(INTERVAL).await;
            if self.has_ended() {
                return;
            }
            let Err(error) = self.activity.write(&self.store).await else {
                has_warned = false;
                continue;
            };
            if self.store.pool().is_closed() {
                return;
            }
            if !std::mem::replace(&mut has_warned, true) {
                tracing::warn!(
                    endpoint = &*self.activity.0.endpoint,
                    %error,
                    "could not write the activity of a webhook endpoint; it is tried again"
                );
            }
        }
    }

    /// Ends if there is nothing to write, unless something is counted at the same moment.
    fn has_ended(&mut self) -> bool {
        let counters = &self.activity.0;
        if !counters.is_empty() {
            return false;
        }
        counters.has_writer.store(false, Ordering::SeqCst);
        self.is_the_one = !counters.is_empty() && !counters.has_writer.swap(true, Ordering::SeqCst);
        !self.is_the_one
    }
}

/// Also if its runtime shuts down.
impl Drop for Writer {
    fn drop(&mut self) {
        if self.is_the_one {
            self.activity.0.has_writer.store(false, Ordering::SeqCst);
        }
    }
}

impl Counters {
    fn is_empty(&self) -> bool {
        self.counts
            .iter()
            .all(|count| count.load(Ordering::SeqCst) == 0)
    }
}

/// Numbers that are being written. Dropped, they are given back.
struct Taken<'a> {
    counters: &'a Counters,
    counts: [u64; COUNTED.len()],
}

impl<'a> Taken<'a> {
    fn from(counters: &'a Counters) -> Self {
        let mut counts = [0; COUNTED.len()];
        for (taken, count) in counts.iter_mut().zip(&counters.counts) {
            *taken = count.swap(0, Ordering::Relaxed);
        }
        Self { counters, counts }
    }

    fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }

    fn forget(mut self) {
        self.counts = Default::default();
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        for (count, taken) in self.counters.counts.iter().zip(self.counts) {
            count.fetch_add(taken, Ordering::Relaxed);
        }
    }
}
