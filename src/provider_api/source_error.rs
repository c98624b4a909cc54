//! Why a list of a provider could not be read.

use std::fmt;
use std::time::Duration;

use crate::tasks_and_errors::error_chain::{BoxError, ErrorChain};
use crate::tasks_and_errors::panic::{catch_panic, message};

/// The longest reason of an error, in characters.
const MAX_REASON: usize = 1000;

/// Why a list could not be read. Any error converts into it with `?`.
#[derive(Debug)]
pub struct SourceError {
    reason: String,
    retry_after: Option<Duration>,
    is_permanent: bool,
    is_of_key: bool,
}

impl SourceError {
    /// An error with a reason for the operator, who sees it in the log and in the dashboard. It must not
    /// have a secret.
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

    /// The round asks for the same page again after this time, because of a rate limit or a failure that passes. It
    /// waits up to an hour.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// The same request would be refused again. If it was for a page, the round starts over with the first page. If it
    /// was for a redelivery, that delivery is left out.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.is_permanent = true;
        self
    }

    /// The API key was refused.
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

/// With the causes of the error.
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

/// Turns a panic of a source into its error.
pub(crate) async fn caught<T>(
    work: impl Future<Output = Result<T, SourceError>>,
) -> Result<T, SourceError> {
    catch_panic(work).await.unwrap_or_else(|payload| {
        let text = message(&*payload);
        Err(SourceError::new(format_args!("it panicked: {text}")))
    })
}
