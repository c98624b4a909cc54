//! What may differ between a provider's retry and the previous attempt.

use std::fmt;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    request: Request,
    /// Whether the facts about retries are neither documented nor observed.
    #[serde(default)]
    likely: bool,
    #[serde(default)]
    id: Id,
    /// What else may change, in Markdown.
    changes: Option<String>,
}

/// What the provider sends again.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
enum Request {
    #[serde(rename = "unknown")]
    Unknown,
    /// The provider never retries by itself.
    #[serde(rename = "none")]
    None,
    /// Exactly the same request, including its signature and time.
    #[serde(rename = "identical")]
    Identical,
    /// The same delivery, signed again at a new time.
    #[serde(rename = "signed again")]
    SignedAnew,
}

/// The delivery id of a retry.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Id {
    #[default]
    Same,
    /// A retry has a new id, so the handler runs again.
    New,
    Unknown,
}

impl Retry {
    /// Whether it is documented or observed that a retry has a new time.
    pub fn is_signed_anew(&self) -> bool {
        self.request == Request::SignedAnew && !self.likely
    }

    /// Whether, as far as is known, a retry has the same delivery id.
    pub fn has_same_id(&self) -> bool {
        self.id == Id::Same
    }
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.request {
            Request::Unknown => "unknown",
            Request::None => "none",
            Request::Identical => "identical",
            Request::SignedAnew => "signed again",
        })?;
        if self.likely {
            f.write_str(" (likely)")?;
        }
        match self.id {
            Id::Same => {}
            Id::New => f.write_str(", **new id**")?,
            Id::Unknown => f.write_str(", id unknown")?,
        }
        match &self.changes {
            Some(several) if several.contains(" and ") => write!(f, ", {several} change"),
            Some(one) => write!(f, ", {one} changes"),
            None => Ok(()),
        }
    }
}
