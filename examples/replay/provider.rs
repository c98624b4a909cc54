//! What the kit knows how to sign, and what of it is in the body.

use std::fmt;
use std::str::FromStr;

use idempotent_webhook::presets::{self, Preset};
use idempotent_webhook::{Secret, Source};

/// One of the presets.
#[derive(Clone, Copy)]
pub struct Provider(&'static Preset);

impl Provider {
    pub fn preset(self, secret: Secret) -> idempotent_webhook::Provider {
        self.0.provider(secret)
    }
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match presets::by_name(name) {
            Ok(preset) => Ok(Self(preset)),
            Err(error) if !error.features().is_empty() => Err(error.to_string()),
            Err(_) => {
                let names: Vec<_> = presets::ALL.iter().map(Preset::name).collect();
                Err(format!("not one of {}", names.join(", ")))
            }
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

/// The JSON pointer to what a source reads first, if that is in the body.
pub fn pointer(source: &Source) -> Option<String> {
    let text = source.to_string();
    let path = text.split(' ').next()?.strip_prefix('$')?;
    Some(path.replace(['.', '['], "/").replace(']', ""))
}

/// Whether a source reads a value that can be written, and not a digest.
pub fn has_place(source: &Source) -> bool {
    pointer(source).is_some() || source.to_string().starts_with("header ")
}
