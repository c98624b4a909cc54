//! What the kit knows how to sign, and what of it is in the body.

use std::fmt;

use clap::ValueEnum;
use idempotent_webhook::{Secret, presets};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Provider {
    Stripe,
    Github,
    Shopify,
    Slack,
    Linear,
    StandardWebhooks,
    Svix,
    Awardee,
}

impl Provider {
    pub fn preset(self, secret: Secret) -> idempotent_webhook::Provider {
        match self {
            Self::Stripe => presets::stripe(secret),
            Self::Github => presets::github(secret),
            Self::Shopify => presets::shopify(secret),
            Self::Slack => presets::slack(secret),
            Self::Linear => presets::linear(secret),
            Self::StandardWebhooks => presets::standard_webhooks(secret),
            Self::Svix => presets::svix(secret),
            Self::Awardee => presets::awardee(secret),
        }
    }

    /// The member of the body that is the delivery id, where it is not in a header.
    pub fn id_member(self) -> Option<&'static str> {
        match self {
            Self::Stripe => Some("id"),
            Self::Slack => Some("event_id"),
            _ => None,
        }
    }

    /// Whether the body says the event type, and no header.
    pub fn says_type_in_body(self) -> bool {
        matches!(
            self,
            Self::Stripe | Self::Slack | Self::StandardWebhooks | Self::Svix
        )
    }

    /// Whether the time that is signed is in the body.
    pub fn says_time_in_body(self) -> bool {
        self == Self::Linear
    }

    /// Whether a signature grows old.
    pub fn signs_time(self) -> bool {
        !matches!(self, Self::Github | Self::Shopify)
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_possible_value() {
            Some(value) => f.write_str(value.get_name()),
            None => Ok(()),
        }
    }
}
