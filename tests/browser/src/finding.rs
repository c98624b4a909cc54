use std::fmt;

/// Something that must not happen on a clean page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// `console.error`, `console.warn` or a failed `console.assert`.
    Console(String),
    /// An exception or a rejection that nobody caught.
    Exception(String),
    /// A violation of the Content Security Policy or of another security rule.
    Violation(String),
    /// Another error or warning of the browser, such as a resource that failed to load, or a
    /// deprecation.
    Log(String),
    /// An alert, a confirmation or a prompt. The harness has dismissed it.
    Dialog(String),
    /// The URL of a request to an origin that the test has not visited.
    ForeignRequest(String),
    /// A message that the client of the DevTools protocol could not parse. The message may have
    /// contained any of the other findings.
    NotUnderstood(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Console(text) => write!(f, "console: {text}"),
            Self::Exception(text) => write!(f, "exception: {text}"),
            Self::Violation(text) => write!(f, "violation: {text}"),
            Self::Log(text) => write!(f, "log: {text}"),
            Self::Dialog(text) => write!(f, "dialog: {text}"),
            Self::ForeignRequest(url) => write!(f, "request to another origin: {url}"),
            Self::NotUnderstood(text) => write!(f, "message not understood: {text}"),
        }
    }
}
