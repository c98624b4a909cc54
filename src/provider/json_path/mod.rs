//! Singular JSON paths, and reading and writing the values they name.

mod elements;
mod parse;
mod read;
pub(crate) mod unescape;
mod write;

use std::fmt;

pub(crate) use elements::read_elements;
pub(crate) use read::{Match, ReadError, Reader};

/// A singular query of [RFC 9535](https://www.rfc-editor.org/rfc/rfc9535), which names at most
/// one value in a document.
///
/// `$.id`, `$.data.object.id`, `$.events[0].id` and `$['event-id']` are such paths. Negative
/// indices, which the RFC allows, are refused: they cannot be read in one pass.
///
/// ```
/// use idempotent_webhook::JsonPath;
///
/// let path: JsonPath = "$.data.object.id".parse()?;
/// assert!("$..id".parse::<JsonPath>().is_err());
/// # Ok::<(), idempotent_webhook::provider::JsonPathError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath {
    text: Box<str>,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(Box<str>),
    Element(usize),
}

/// The error for a text that is not a singular JSON path.
#[derive(Clone, Debug)]
pub struct JsonPathError {
    position: usize,
    expected: &'static str,
}

impl fmt::Display for JsonPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "not a singular JSON path: {} expected at byte {}",
            self.expected, self.position
        )
    }
}

impl std::error::Error for JsonPathError {}

impl JsonPath {
    /// This path, written as a JSON pointer of [RFC 6901](https://www.rfc-editor.org/rfc/rfc6901).
    ///
    /// ```
    /// use idempotent_webhook::JsonPath;
    ///
    /// let path: JsonPath = "$.events[0]['event/id']".parse()?;
    /// assert_eq!(path.pointer(), "/events/0/event~1id");
    /// # Ok::<(), idempotent_webhook::provider::JsonPathError>(())
    /// ```
    pub fn pointer(&self) -> String {
        let steps = self.steps.iter().map(|step| match step {
            Step::Member(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
            Step::Element(index) => format!("/{index}"),
        });
        steps.collect()
    }

    /// The path to a member of the top-level object, for names without special characters.
    pub(crate) fn member(name: &str) -> Self {
        Self {
            text: format!("$.{name}").into(),
            steps: vec![Step::Member(name.into())],
        }
    }

    /// The path to a member of the object at this path, for names without special characters.
    pub(crate) fn then(mut self, name: &str) -> Self {
        self.text = format!("{}.{name}", self.text).into();
        self.steps.push(Step::Member(name.into()));
        self
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
