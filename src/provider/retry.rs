//! What differs between a provider's retry and the attempt before.

use std::fmt;

/// What may differ between a provider's retry of a delivery and the attempt before, and how sure that is.
/// [`Provider::retry`](crate::Provider::retry) sets it. It does not change what is verified or claimed.
///
/// As text, it is the column *retry* of the [table of presets](crate::documentation::provider_table):
///
/// ```
/// use idempotent_webhook::provider::Retry;
///
/// let counted = Retry::signed_anew().likely().changes("`$.retryCount`");
/// assert_eq!(counted.to_string(), "signed anew (likely), `$.retryCount` changes");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    request: Request,
    is_likely: bool,
    id: Id,
    changes: Option<&'static str>,
}

/// What is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Unknown,
    Never,
    Identical,
    SignedAnew,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    Same,
    New,
    Unknown,
}

impl Retry {
    /// The provider does not say what a retry looks like.
    pub const fn unknown() -> Self {
        Self::of(Request::Unknown)
    }

    /// It never retries by itself.
    pub const fn none() -> Self {
        Self::of(Request::Never)
    }

    /// The very same request, its signature and time included.
    pub const fn identical() -> Self {
        Self::of(Request::Identical)
    }

    /// The same delivery, signed at a new time.
    pub const fn signed_anew() -> Self {
        Self::of(Request::SignedAnew)
    }

    const fn of(request: Request) -> Self {
        Self {
            request,
            is_likely: false,
            id: Id::Same,
            changes: None,
        }
    }

    /// It is likely, but neither documented nor seen.
    #[must_use]
    pub const fn likely(mut self) -> Self {
        self.is_likely = true;
        self
    }

    /// The delivery id is new for each retry, so that **the handler runs again**.
    #[must_use]
    pub const fn new_id(mut self) -> Self {
        self.id = Id::New;
        self
    }

    /// Nobody knows whether a retry has the same delivery id.
    #[must_use]
    pub const fn id_unknown(mut self) -> Self {
        self.id = Id::Unknown;
        self
    }

    /// What else may change, in Markdown, such as `` `$.retryCount` ``.
    #[must_use]
    pub const fn changes(mut self, what: &'static str) -> Self {
        self.changes = Some(what);
        self
    }

    /// Whether it is documented or seen that a retry has a new time.
    pub const fn is_signed_anew(self) -> bool {
        matches!(self.request, Request::SignedAnew) && !self.is_likely
    }

    /// Whether a retry has, as far as is known, the same delivery id.
    pub const fn has_same_id(self) -> bool {
        matches!(self.id, Id::Same)
    }
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.request {
            Request::Unknown => "unknown",
            Request::Never => "none",
            Request::Identical => "identical",
            Request::SignedAnew => "signed anew",
        })?;
        if self.is_likely {
            f.write_str(" (likely)")?;
        }
        match self.id {
            Id::Same => {}
            Id::New => f.write_str(", **new id**")?,
            Id::Unknown => f.write_str(", id unknown")?,
        }
        match self.changes {
            Some(what) => write!(f, ", {what} changes"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_says_what_it_may_change_and_how_sure_that_is() {
        for (retry, text) in [
            (Retry::unknown(), "unknown"),
            (Retry::none(), "none"),
            (Retry::identical().likely(), "identical (likely)"),
            (Retry::signed_anew().new_id(), "signed anew, **new id**"),
            (
                Retry::unknown().id_unknown().changes("`$.attempt`"),
                "unknown, id unknown, `$.attempt` changes",
            ),
        ] {
            assert_eq!(retry.to_string(), text);
        }
    }

    #[test]
    fn only_what_is_sure_counts_as_signed_anew() {
        assert!(Retry::signed_anew().is_signed_anew());
        assert!(!Retry::signed_anew().likely().is_signed_anew());
        assert!(!Retry::identical().is_signed_anew());
    }
}
