//! What may differ between a provider's retry and the attempt before.

use std::fmt;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    request: Request,
    /// Neither documented nor seen.
    #[serde(default)]
    likely: bool,
    #[serde(default)]
    id: Id,
    /// What else may change, in Markdown.
    changes: Option<String>,
}

/// What is sent again.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
enum Request {
    #[serde(rename = "unknown")]
    Unknown,
    /// It never retries by itself.
    #[serde(rename = "none")]
    None,
    /// The very same request, its signature and time included.
    #[serde(rename = "identical")]
    Identical,
    /// The same delivery, signed at a new time.
    #[serde(rename = "signed again")]
    SignedAnew,
}

/// The delivery id of a retry.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Id {
    #[default]
    Same,
    /// The handler runs again.
    New,
    Unknown,
}

impl Retry {
    /// Whether it is documented or seen that a retry has a new time.
    pub fn is_signed_anew(&self) -> bool {
        self.request == Request::SignedAnew && !self.likely
    }

    /// Whether a retry has, as far as is known, the same delivery id.
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
            Some(what) => write!(f, ", {what} changes"),
            None => Ok(()),
        }
    }
}
