//! Presets: how well-known providers sign, identify and redeliver their webhooks.
//!
//! Each function takes the secrets and returns a [`Provider`], whose settings can be adjusted. Its
//! documentation says what the provider signs and where the facts come from.
//!
//! ```
//! use idempotent_webhook::{Secret, presets};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let github = presets::github(Secret::new("It's a Secret to Everybody")?);
//! assert!(!github.signs_delivery_id());
//! # Ok(())
//! # }
//! ```
//!
//! [`ALL`] lists them, and [`by_name`] finds one whose name is only known at run time.

use super::{Provider, SecretSource};

/// A preset in the list of [`ALL`].
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    name: &'static str,
    new: fn(SecretSource) -> Provider,
}

impl Preset {
    /// The name of its providers ([`Provider::name`]), such as `standard-webhooks`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The provider, as the function of the same name makes it.
    pub fn provider(&self, secrets: impl Into<SecretSource>) -> Provider {
        (self.new)(secrets.into())
    }
}

/// The preset with this name, such as `standard-webhooks`.
///
/// ```
/// use idempotent_webhook::{Secret, presets};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let preset = presets::by_name("stripe").ok_or("no such preset")?;
/// let stripe = preset.provider(Secret::new("whsec_test")?);
/// assert_eq!(stripe.name(), "stripe");
/// assert!(presets::by_name("unheard-of").is_none());
/// # Ok(())
/// # }
/// ```
pub fn by_name(name: &str) -> Option<&'static Preset> {
    ALL.iter().find(|preset| preset.name == name)
}

/// Declares the module of each preset, and puts the preset into the list.
macro_rules! presets {
    ($($(#[$attribute:meta])* $function:ident = $name:literal;)+) => {
        $(
            $(#[$attribute])*
            mod $function;
            $(#[$attribute])*
            pub use $function::$function;
        )+

        /// All presets, in the order of their names.
        pub static ALL: &[Preset] = &[
            $(
                $(#[$attribute])*
                Preset {
                    name: $name,
                    new: |secrets| $function(secrets),
                },
            )+
        ];
    };
}

presets! {
    adyen = "adyen";
    auth0_log_streams = "auth0-log-streams";
    awardee = "awardee";
    braintree = "braintree";
    chargebee = "chargebee";
    contentful = "contentful";
    figma = "figma";
    flutterwave = "flutterwave";
    github = "github";
    gitlab = "gitlab";
    hubspot = "hubspot";
    jira_connect = "jira-connect";
    kofi = "kofi";
    linear = "linear";
    mailgun = "mailgun";
    mandrill = "mandrill";
    messagebird = "messagebird";
    okta = "okta";
    plivo = "plivo";
    postmark = "postmark";
    shopify = "shopify";
    slack = "slack";
    standard_webhooks = "standard-webhooks";
    stripe = "stripe";
    sumsub = "sumsub";
    svix = "svix";
    telegram = "telegram";
    twilio = "twilio";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Secret, SecretError};

    #[test]
    fn each_preset_is_found_by_the_name_of_its_provider() -> Result<(), SecretError> {
        assert!(ALL.is_sorted_by_key(Preset::name));
        for preset in ALL {
            let provider = preset.provider(Secret::new("secret")?);
            assert_eq!(provider.name(), preset.name());
            assert!(by_name(preset.name()).is_some());
        }
        Ok(())
    }
}
