//! The providers, by name.

use std::fmt;
use std::str::FromStr;

use idempotent_webhook::Secret;
use idempotent_webhook::presets::{self, Preset};

/// One of the presets.
#[derive(Clone, Copy)]
pub struct Provider(&'static Preset);

impl Provider {
    pub fn all() -> impl Iterator<Item = Self> {
        presets::ALL.iter().map(Self)
    }

    pub fn name(self) -> &'static str {
        self.0.name()
    }

    pub fn with(self, secret: Secret) -> idempotent_webhook::Provider {
        self.0.provider(secret)
    }
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if let Ok(preset) = presets::by_name(name) {
            return Ok(Self(preset));
        }
        let likeness = |known: &Preset| strsim::jaro_winkler(&name.to_lowercase(), known.name());
        let nearest = presets::ALL
            .iter()
            .max_by(|one, other| likeness(one).total_cmp(&likeness(other)))
            .filter(|known| likeness(known) > 0.7)
            .map_or(String::new(), |known| format!("is it {}? ", known.name()));
        Err(format!("{nearest}\"webhook providers\" lists all names"))
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
