//! Errors of any type, and how they are logged.

use std::error::Error;
use std::fmt;

/// Any error, as tower and axum pass it on.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// An error with its causes, on one line.
///
/// A cause is left out if the error above it has its text already, as with sqlx's.
pub(crate) struct ErrorChain<'a>(pub(crate) &'a (dyn Error + 'a));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut above = self.0.to_string();
        f.write_str(&above)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !above.contains(&text) {
                write!(f, ": {text}")?;
                above = text;
            }
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Level(&'static str, Option<Box<Self>>);

    impl fmt::Display for Level {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Level {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_ref().map(|cause| &**cause as _)
        }
    }

    #[test]
    fn causes_are_named_once() {
        let third = Level("disk full", None);
        let second = Level("no row", Some(Box::new(third)));
        let first = Level("database: no row", Some(Box::new(second)));
        assert_eq!(
            ErrorChain(&first).to_string(),
            "database: no row: disk full"
        );
    }
}
