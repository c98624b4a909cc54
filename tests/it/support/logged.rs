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
    /// Where this thread's log goes.
    static LOG: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// One subscriber for all tests. With one for each, an event that another test is just
/// logging for the first time may be taken for one that nobody wants.
static SUBSCRIBER: Once = Once::new();

/// What is logged, at any level, by this crate while `work` runs.
pub async fn logged(work: impl Future<Output = ()>) -> String {
    SUBSCRIBER.call_once(|| {
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            // A test could look for the same digits.
            .without_time()
            .with_writer(|| LOG.with_borrow(|log| log.clone().unwrap_or_default()))
            .init();
    });
    let log = Log::default();
    // For this thread, which is all that the test's runtime has.
    LOG.set(Some(log.clone()));
    work.await;
    LOG.set(None);
    log.of_this_crate()
}

/// Waits until something is logged, within `logged`.
pub async fn until_logged(text: &str) {
    let log = LOG.with_borrow(|log| log.clone().unwrap());
    soon(async {
        while !log.of_this_crate().contains(text) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}
