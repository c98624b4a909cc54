//! Work that a handler has registered with `DedupeTx::after_commit`.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use tracing::Instrument;

use super::in_flight::TaskGuard;
use crate::tasks_and_errors::error_chain::{BoxError, ErrorChain};
use crate::tasks_and_errors::panic::{self, catch_drop, catch_panic};

type Work = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;

/// The output of work after the commit: `()`, or a `Result<(), E>` whose error is logged.
pub trait WorkResult: sealed::Sealed {
    #[doc(hidden)]
    fn into_result(self) -> Result<(), BoxError>;
}

mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for () {}

impl WorkResult for () {
    fn into_result(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<E: Into<BoxError>> sealed::Sealed for Result<(), E> {}

impl<E: Into<BoxError>> WorkResult for Result<(), E> {
    fn into_result(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}

/// The work to do after the commit, in order. If this is dropped, the work is not done.
#[derive(Default)]
pub(crate) struct AfterCommit(Vec<Work>);

impl AfterCommit {
    pub(crate) fn push(&mut self, work: impl Future<Output: WorkResult> + Send + 'static) {
        self.0.push(Box::pin(async { work.await.into_result() }));
    }

    /// Runs the work in a background task, one piece after the other, each for at most `timeout`.
    /// If a piece fails, the next piece still runs.
    pub(crate) fn spawn(mut self, timeout: Duration, task: impl FnOnce() -> TaskGuard) {
        if self.0.is_empty() {
            return;
        }
        let pieces = std::mem::take(&mut self.0);
        let task = task();
        let all = async move {
            for mut work in pieces {
                let done = tokio::time::timeout(timeout, catch_panic(work.as_mut())).await;
                match done {
                    Ok(Ok(Ok(()))) => {}
                    Ok(Ok(Err(error))) => warn(ErrorChain(&*error)),
                    Ok(Err(payload)) => warn_of_panic(&*payload),
                    Err(_) => warn(format_args!("it took longer than {timeout:?}")),
                }
                drop_work(work);
            }
            drop(task);
        };
        tokio::spawn(all.in_current_span());
    }
}

/// Without a commit, the work is dropped and not done.
impl Drop for AfterCommit {
    fn drop(&mut self) {
        self.0.drain(..).for_each(drop_work);
    }
}

/// Drops a piece of work. Its destructor may panic: the panic is caught and logged.
fn drop_work(work: Work) {
    if let Err(payload) = catch_drop(work) {
        warn_of_panic(&*payload);
    }
}

fn warn_of_panic(payload: &(dyn Any + Send)) {
    warn(format_args!("it panicked: {}", panic::message(payload)));
}

fn warn(reason: impl fmt::Display) {
    tracing::warn!(%reason, "work after the commit of a webhook failed");
}
