//! What a signature covers.

use std::borrow::Cow;

/// What an HMAC covers, part by part.
///
/// ```
/// use idempotent_webhook::signature::SignedContent;
///
/// // v0:<timestamp>:<body>
/// let slack = SignedContent::new().text("v0:").timestamp().text(":").body();
/// ```
#[derive(Clone, Debug, Default)]
pub struct SignedContent {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(Cow<'static, str>),
    Timestamp,
    Id,
    Body,
}

impl SignedContent {
    /// No content yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A constant text.
    #[must_use]
    pub fn text(self, text: impl Into<Cow<'static, str>>) -> Self {
        self.with(Part::Text(text.into()))
    }

    /// The time of signing, as it is written in the request.
    #[must_use]
    pub fn timestamp(self) -> Self {
        self.with(Part::Timestamp)
    }

    /// The delivery id, as it is written in its header.
    #[must_use]
    pub fn id(self) -> Self {
        self.with(Part::Id)
    }

    /// The raw body.
    #[must_use]
    pub fn body(self) -> Self {
        self.with(Part::Body)
    }

    fn with(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub(super) fn has(&self, part: &Part) -> bool {
        self.parts.contains(part)
    }
}
