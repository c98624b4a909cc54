use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts how many of something exist now, and the most that existed at once.
#[derive(Clone, Default)]
pub struct Gauge {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    all: Arc<AtomicUsize>,
}

impl Gauge {
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.all.fetch_add(1, Ordering::SeqCst);
        let done = work.await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        done
    }

    pub fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    pub fn all(&self) -> usize {
        self.all.load(Ordering::SeqCst)
    }
}
