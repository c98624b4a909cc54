//! Errors of any type, and how they are logged.

use std::error::Error;
use std::fmt;

/// Any error, as tower and axum pass it on.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// An error with its causes, on one line.
pub(crate) struct ErrorChain<'a>(pub(crate) &'a (dyn Error + 'a));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
