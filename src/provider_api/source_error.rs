//! The error of a source, which reads a provider's list of events or of subscriptions: why the list could not be read.

use std::fmt;
use std::time::Duration;

use crate::tasks_and_errors::error_chain::{BoxError, ErrorChain};
use crate::tasks_and_errors::panic::{catch_panic, message};

/// The maximum length of an error's reason, in characters.
const MAX_REASON: usize = 1000;

/// Why a provider's list could not be read. Any error converts into it with `?`.
#[derive(Debug)]
pub struct SourceError {
    reason: String,
    retry_after: Option<Duration>,
    is_permanent: bool,
    is_of_key: bool,
}

impl SourceError {
    /// An error with a reason for the operator, who sees it in the log and on the dashboard. The reason must not
    /// contain a secret.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self {
            // Postgres cannot store NUL.
            reason: reason
                .to_string()
                .replace('\0', "")
                .chars()
                .take(MAX_REASON)
                .collect(),
            retry_after: None,
            is_permanent: false,
            is_of_key: false,
        }
    }

    /// Asks to repeat the request after this time, for example because of a rate limit or a temporary failure. A round
    /// of reconciliation waits for an hour at most.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// The provider would refuse the same request again. If the request was for a page, the round of reconciliation
    /// fails, and the next round starts over with the first page. If it was for a redelivery, the round leaves that
    /// delivery out.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.is_permanent = true;
        self
    }

    /// The provider refused the API key.
    #[cfg(feature = "reqwest")]
    pub(crate) fn of_key(mut self) -> Self {
        self.is_of_key = true;
        self
    }

    pub(crate) fn is_of_key(&self) -> bool {
        self.is_of_key
    }

    pub(crate) fn is_permanent(&self) -> bool {
        self.is_permanent
    }

    pub(crate) fn wait(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// The reason includes the causes of the error.
impl<E: Into<BoxError>> From<E> for SourceError {
    fn from(error: E) -> Self {
        Self::new(ErrorChain(&*error.into()))
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Runs the work of a source, and turns a panic into an error.
pub(crate) async fn caught<T>(
    work: impl Future<Output = Result<T, SourceError>>,
) -> Result<T, SourceError> {
    catch_panic(work).await.unwrap_or_else(|payload| {
        let text = message(&*payload);
        Err(SourceError::new(format_args!("it panicked: {text}")))
    })
}
