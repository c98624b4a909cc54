//! Errors of any type, and how they are logged.

use std::error::Error;
use std::fmt;

#[cfg(feature = "postgres")]
use sqlx::postgres::PgDatabaseError;

/// Any error, as tower and axum pass it on.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// An error with its causes, on one line.
///
/// A cause is left out if the error above it already contains its text, as errors of sqlx do. The line number that sqlx
/// adds to an error of Postgres is left out as well: it refers to Postgres' own source code, but looks like a line of
/// the statement.
pub(crate) struct ErrorChain<'a>(pub(crate) &'a (dyn Error + 'static));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_postgres = self.of_postgres();
        let text_of = |error: &dyn Error| match &of_postgres {
            Some((with_line, message)) => error.to_string().replace(with_line, message),
            None => error.to_string(),
        };
        let mut above = text_of(self.0);
        f.write_str(&above)?;
        for error in self.errors().skip(1) {
            let text = text_of(error);
            if !above.contains(&text) {
                write!(f, ": {text}")?;
                above = text;
            }
        }
        Ok(())
    }
}

impl<'a> ErrorChain<'a> {
    fn errors(&self) -> impl Iterator<Item = &'a (dyn Error + 'static)> + use<'a> {
        std::iter::successors(Some(self.0), |error| Error::source(*error))
    }

    /// Whether waiting for a free connection of the pool timed out.
    #[cfg(feature = "postgres")]
    pub(crate) fn waited_for_the_pool(&self) -> bool {
        let mut errors = self.errors().filter_map(sqlx_error);
        errors.any(|error| matches!(error, sqlx::Error::PoolTimedOut))
    }

    #[cfg(not(feature = "postgres"))]
    pub(crate) fn waited_for_the_pool(&self) -> bool {
        false
    }

    /// Whether the cause is temporary: the connection was lost, or another transaction was in the way.
    #[cfg(feature = "postgres")]
    pub(crate) fn is_of_the_moment(&self) -> bool {
        self.errors()
            .filter_map(sqlx_error)
            .any(super::sqlx_error::is_of_the_moment)
    }

    #[cfg(not(feature = "postgres"))]
    pub(crate) fn is_of_the_moment(&self) -> bool {
        false
    }

    /// The message of Postgres, first with the line number that sqlx adds to it, and then without.
    #[cfg(feature = "postgres")]
    fn of_postgres(&self) -> Option<(String, String)> {
        let error = self.errors().find_map(|error| {
            let error = sqlx_error(error)?.as_database_error()?;
            error.try_downcast_ref::<PgDatabaseError>()
        })?;
        let (message, line) = (error.message(), error.line()?);
        Some((format!("{message} at line {line}"), message.to_owned()))
    }

    #[cfg(not(feature = "postgres"))]
    fn of_postgres(&self) -> Option<(String, String)> {
        None
    }
}

#[cfg(feature = "postgres")]
fn sqlx_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a sqlx::Error> {
    // SeaORM does not return this error as a `source`.
    #[cfg(feature = "sea-orm")]
    if let Some(sea_orm::RuntimeErr::SqlxError(error)) = error.downcast_ref() {
        return Some(error);
    }
    error.downcast_ref()
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
