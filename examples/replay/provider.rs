//! What the kit knows how to sign, and what of it is in the body.

use std::fmt;

use clap::ValueEnum;
use idempotent_webhook::testing::TestDelivery;

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
    pub fn delivery(self, secret: &[u8]) -> TestDelivery {
        match self {
            Self::Stripe => TestDelivery::stripe(secret),
            Self::Github => TestDelivery::github(secret),
            Self::Shopify => TestDelivery::shopify(secret),
            Self::Slack => TestDelivery::slack(secret),
            Self::Linear => TestDelivery::linear(secret),
            Self::StandardWebhooks => TestDelivery::standard_webhooks(secret),
            Self::Svix => TestDelivery::svix(secret),
            Self::Awardee => TestDelivery::awardee(secret),
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

    /// Whether a secret is base64, with or without `whsec_`, of the key.
    pub fn has_base64_secrets(self) -> bool {
        matches!(self, Self::StandardWebhooks | Self::Svix)
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
