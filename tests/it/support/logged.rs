use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use super::soon;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn of_this_crate(&self) -> String {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines()
            .filter(|line| line.contains("idempotent_webhook"))
            .map(|line| format!("{line}\n"))
            .collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

thread_local! {
    /// The log that the events of this thread are written to.
    static LOG: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// Sets the subscriber that all tests share. If each test set its own, and another test logged an
/// event for the first time in between, `tracing` could mark the event as one that nobody wants.
static SUBSCRIBER: Once = Once::new();

/// Everything that this crate logs, at any level, while `work` runs.
pub async fn logged(work: impl Future<Output = ()>) -> String {
    SUBSCRIBER.call_once(|| {
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            // Times could contain the digits that a test looks for.
            .without_time()
            .with_writer(|| LOG.with_borrow(|log| log.clone().unwrap_or_default()))
            .init();
    });
    let log = Log::default();
    // The log is set for this thread, which is the only thread of the test's runtime.
    LOG.set(Some(log.clone()));
    work.await;
    LOG.set(None);
    log.of_this_crate()
}

/// Waits until this text is logged. Works only within `logged`.
pub async fn until_logged(text: &str) {
    let log = LOG.with_borrow(|log| log.clone().unwrap());
    soon(async {
        while !log.of_this_crate().contains(text) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}
