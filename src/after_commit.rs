//! Work that a handler leaves to be done once its transaction is committed.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use tracing::Instrument;

use crate::error::Chain;
use crate::in_flight::Busy;
use crate::panic::{self, catch_drop, catch_panic};

type BoxError = Box<dyn Error + Send + Sync>;
type Work = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;

/// What work after the commit ends with: nothing, or a `Result` whose error is logged.
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

/// What is to be done after the commit, in this order. Dropping it drops the work.
#[derive(Default)]
pub(crate) struct AfterCommit(Vec<Work>);

impl AfterCommit {
    pub(crate) fn push(&mut self, work: impl Future<Output: WorkResult> + Send + 'static) {
        self.0.push(Box::pin(async { work.await.into_result() }));
    }

    /// Does it in a task, one piece after the other and each for at most `time`. Nothing
    /// that goes wrong in one has an influence on the next.
    pub(crate) fn spawn(mut self, time: Duration, busy: Busy) {
        if self.0.is_empty() {
            return;
        }
        let pieces = std::mem::take(&mut self.0);
        let all = async move {
            for mut work in pieces {
                match tokio::time::timeout(time, catch_panic(work.as_mut())).await {
                    Ok(Ok(Ok(()))) => {}
                    Ok(Ok(Err(error))) => warn(Chain(&*error)),
                    Ok(Err(payload)) => warn_of_panic(&*payload),
                    Err(_) => warn(format_args!("it took longer than {time:?}")),
                }
                if let Err(payload) = catch_drop(work) {
                    warn_of_panic(&*payload);
                }
            }
            drop(busy);
        };
        tokio::spawn(all.in_current_span());
    }
}

/// Without a commit, nothing is done.
impl Drop for AfterCommit {
    fn drop(&mut self) {
        for work in self.0.drain(..) {
            if let Err(payload) = catch_drop(work) {
                warn_of_panic(&*payload);
            }
        }
    }
}

fn warn_of_panic(payload: &(dyn Any + Send)) {
    warn(format_args!("it panicked: {}", panic::message(payload)));
}

fn warn(reason: impl fmt::Display) {
    tracing::warn!(%reason, "work after the commit of a webhook failed");
}
