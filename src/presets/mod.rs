//! Presets: how well-known providers sign, identify and redeliver their webhooks.
//!
//! Each function takes the secrets and returns a [`Provider`] whose settings you can adjust. The
//! documentation of each function says what the provider signs and where the facts come from.
//! *Likely* and *not confirmed* mark what no source confirms; *second-hand* marks what only third
//! parties describe. If it is not certain that a retry carries a new timestamp, the tolerance is as
//! long as the redelivery window, so that no retry is refused for its age.
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
//! # What is not a secret
//!
//! Some providers need something other than a signing secret, or something in addition to it: a topic's ARN, a
//! pair of keys or a public key. The presets for them take their own type instead of a secret. Passing a
//! [`Secret`](crate::Secret) to such a preset does not compile:
//!
//! ```
//! use idempotent_webhook::presets::{self, LiveKitKey};
//! use idempotent_webhook::Secret;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let livekit = presets::livekit(LiveKitKey::new("APIkey", Secret::new("a secret")?)?);
//! # Ok(())
//! # }
//! ```
//!
//! ```compile_fail,E0277
//! use idempotent_webhook::presets;
//! use idempotent_webhook::Secret;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let livekit = presets::livekit(Secret::new("a secret")?);
//! # Ok(())
//! # }
//! ```
//!
//! Each such type has a text form, such as `<API key>:<API secret>`, for an environment variable or a database:
//! [`parse`](str::parse) reads it, and `Secret::from` writes it. Pass several values, or the values of tenants, in
//! the same way as secrets: with [`Secrets`](crate::Secrets) and [`TenantSecrets`](crate::TenantSecrets).
//!
//! # By name
//!
//! [`ALL`] lists the presets, and [`by_name`] finds a preset whose name is only known at run time. A preset whose
//! signatures need an additional algorithm is only available with the feature for that algorithm, which is shown
//! next to its name below. The feature `all-presets` enables all presets.

#[cfg(feature = "postgres")]
mod redelivers;
#[cfg(feature = "postgres")]
mod switched_off;

mod adyen;
mod airtable;
mod airwallex;
mod alchemy;
mod anthropic;
#[cfg(feature = "x509")]
mod apple_app_store;
mod asana;
mod attio;
mod auth0_log_streams;
mod authorize_net;
mod awardee;
#[cfg(feature = "x509")]
mod aws_sns;
mod azure_event_grid;
mod bigcommerce;
mod bitbucket;
mod box_com;
#[cfg(feature = "sha1")]
mod braintree;
mod brevo;
mod brex;
mod btcpay;
mod buildkite;
mod cal;
mod calendly;
mod cashfree;
mod chargebee;
mod chatwoot;
mod checkout;
#[cfg(feature = "p256")]
mod circle;
mod circleci;
mod clerk;
mod clickup;
mod cloudevents;
mod cloudflare_notifications;
mod cloudflare_stream;
#[cfg(feature = "sha1")]
mod cloudinary;
mod coinbase;
mod coinbase_commerce;
mod contentful;
mod customerio;
#[cfg(feature = "ed25519")]
mod discord;
mod documenso;
mod docuseal;
mod docusign;
mod dropbox;
mod dropbox_sign;
mod dwolla;
mod easypost;
#[cfg(all(feature = "p256", feature = "sha1"))]
mod ebay;
mod ecwid;
mod elevenlabs;
#[cfg(feature = "ed25519")]
mod fal;
mod figma;
#[cfg(feature = "rsa")]
mod fireblocks;
mod flutterwave;
mod forgejo;
mod front;
mod gemini;
mod ghost;
mod gitea;
mod github;
#[cfg(feature = "p256")]
mod github_secret_scanning;
mod gitlab;
mod gocardless;
#[cfg(feature = "rsa")]
mod google_pubsub;
#[cfg(feature = "sha1")]
mod help_scout;
mod heroku;
mod hook0;
mod hubspot;
mod hugging_face;
mod increase;
#[cfg(feature = "sha1")]
mod intercom;
mod jira;
mod jira_connect;
mod klaviyo;
mod knock;
mod kofi;
mod launchdarkly;
mod lemonsqueezy;
mod line;
mod linear;
mod lithic;
mod livekit;
mod mailgun;
#[cfg(feature = "sha1")]
mod mandrill;
mod maxio;
mod mcp_events;
mod mercadopago;
mod messagebird;
mod meta;
mod microsoft_graph;
mod modern_treasury;
mod mollie;
mod monday;
mod mux;
mod netlify;
mod notion;
mod npm_hooks;
mod nylas;
mod okta;
mod onfido;
mod openai;
mod paddle;
mod pagerduty;
#[cfg(feature = "md5")]
mod patreon;
#[cfg(feature = "rsa")]
mod paypal;
mod paystack;
mod persona;
#[cfg(feature = "p256")]
mod plaid;
#[cfg(feature = "sha1")]
mod plivo;
mod polar;
mod postmark;
#[cfg(any(feature = "ed25519", feature = "p256", feature = "rsa"))]
mod public_key;
mod pusher;
mod quickbooks;
mod razorpay;
mod recurly;
mod render;
mod replicate;
mod resend;
mod retell;
mod revenuecat;
mod revolut;
mod sanity;
#[cfg(feature = "sha1")]
mod segment;
#[cfg(feature = "p256")]
mod sendgrid;
mod sentry;
mod shippo;
mod shopify;
mod shopware;
mod slack;
mod sonarqube;
mod square;
mod squarespace;
mod standard_webhooks;
mod stripe;
mod sumsub;
mod supabase_auth;
mod svix;
mod tally;
mod telegram;
#[cfg(feature = "ed25519")]
mod telnyx;
mod terraform_cloud;
mod todoist;
#[cfg(feature = "sha1")]
mod trello;
#[cfg(feature = "sha1")]
mod twilio;
mod twitch;
mod typeform;
mod vapi;
#[cfg(feature = "sha1")]
mod vercel;
mod veriff;
mod viber;
mod vonage;
mod webflow;
mod websub;
#[cfg(feature = "rsa")]
mod wise;
#[cfg(feature = "rsa")]
mod wix;
mod woocommerce;
mod workos;
mod x;
mod xendit;
mod xero;
mod zendesk;
mod zoom;

use std::fmt;

use crate::provider::{Provider, SecretSource};

#[cfg(feature = "postgres")]
pub(crate) use redelivers::redelivers;
#[cfg(feature = "postgres")]
pub(crate) use switched_off::switched_off;

#[cfg(any(feature = "ed25519", feature = "p256", feature = "rsa"))]
pub use public_key::PublicKey;

/// A preset in the list [`ALL`].
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    name: &'static str,
    new: fn(SecretSource) -> Provider,
}

impl Preset {
    /// The name of the providers that this preset makes ([`Provider::name`]), such as
    /// `standard-webhooks`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The provider, made with these secrets by the function of the same name. If that function takes its own type
    /// instead of a [`Secret`](crate::Secret), pass the text form of that type as the secret;
    /// [`check_secrets`](Provider::check_secrets) checks it.
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
/// let stripe = presets::by_name("stripe")?.provider(Secret::new("whsec_test")?);
/// assert_eq!(stripe.name(), "stripe");
/// assert!(presets::by_name("unheard-of").is_err());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`NoPreset`] if no preset has this name, or if the preset needs a feature that is off.
pub fn by_name(name: &str) -> Result<&'static Preset, NoPreset> {
    let preset = ALL.iter().find(|preset| preset.name == name);
    preset.ok_or_else(|| NoPreset::of(name))
}

/// The reason why [`by_name`] found no preset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoPreset {
    name: String,
    /// Empty if no preset has this name.
    features: &'static [&'static str],
}

impl NoPreset {
    fn of(name: &str) -> Self {
        let needing = FEATURES.iter().find(|(known, _)| *known == name);
        Self {
            name: name.to_owned(),
            features: needing.map_or(&[], |(_, features)| features),
        }
    }

    /// The features that the preset needs. Empty if no preset has this name.
    pub fn features(&self) -> &'static [&'static str] {
        self.features
    }
}

impl fmt::Display for NoPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.features {
            [] => write!(f, "there is no preset `{name}`"),
            [feature] => write!(f, "the preset `{name}` needs the feature `{feature}`"),
            features => write!(
                f,
                "the preset `{name}` needs the features `{}`",
                features.join("`, `")
            ),
        }
    }
}

impl std::error::Error for NoPreset {}

/// Exports each preset whose features are on, together with its own secret type if it has one, and adds it to the
/// list.
macro_rules! presets {
    ($($function:ident $(of $value:ident)? = $name:literal $(, needs $($feature:literal)+)?;)+) => {
        $(
            #[cfg(all($($(feature = $feature),+)?))]
            pub use $function::{$function $(, $value)?};
        )+

        /// All presets whose features are on, in the order of their names.
        pub static ALL: &[Preset] = &[
            $(
                #[cfg(all($($(feature = $feature),+)?))]
                Preset {
                    name: $name,
                    new: |secrets| $function(secrets.cast()),
                },
            )+
        ];

        /// The features that each preset needs, including those that are off.
        const FEATURES: &[(&str, &[&str])] = &[$(($name, &[$($($feature),+)?])),+];
    };
}

presets! {
    adyen = "adyen";
    airtable = "airtable";
    airwallex = "airwallex";
    alchemy = "alchemy";
    anthropic = "anthropic";
    apple_app_store of AppStoreApp = "apple-app-store", needs "x509";
    asana = "asana";
    attio = "attio";
    auth0_log_streams = "auth0-log-streams";
    authorize_net = "authorize-net";
    awardee = "awardee";
    aws_sns of SnsTopic = "aws-sns", needs "x509";
    azure_event_grid = "azure-event-grid";
    bigcommerce = "bigcommerce";
    bitbucket = "bitbucket";
    box_com = "box";
    braintree of BraintreeKeys = "braintree", needs "sha1";
    brevo = "brevo";
    brex = "brex";
    btcpay = "btcpay";
    buildkite = "buildkite";
    cal = "cal";
    calendly = "calendly";
    cashfree = "cashfree";
    chargebee = "chargebee";
    chatwoot = "chatwoot";
    checkout = "checkout";
    circle of CircleKeys = "circle", needs "p256";
    circleci = "circleci";
    clerk = "clerk";
    clickup = "clickup";
    cloudevents = "cloudevents";
    cloudflare_notifications = "cloudflare-notifications";
    cloudflare_stream = "cloudflare-stream";
    cloudinary = "cloudinary", needs "sha1";
    coinbase = "coinbase";
    coinbase_commerce = "coinbase-commerce";
    contentful = "contentful";
    customerio = "customerio";
    discord = "discord", needs "ed25519";
    documenso = "documenso";
    docuseal = "docuseal";
    docusign = "docusign";
    dropbox = "dropbox";
    dropbox_sign = "dropbox-sign";
    dwolla = "dwolla";
    easypost = "easypost";
    ebay of EbayEndpoint = "ebay", needs "p256" "sha1";
    ecwid = "ecwid";
    elevenlabs = "elevenlabs";
    fal of FalUser = "fal", needs "ed25519";
    figma = "figma";
    fireblocks of FireblocksKeys = "fireblocks", needs "rsa";
    flutterwave = "flutterwave";
    forgejo = "forgejo";
    front = "front";
    gemini = "gemini";
    ghost = "ghost";
    gitea = "gitea";
    github = "github";
    github_secret_scanning = "github-secret-scanning", needs "p256";
    gitlab = "gitlab";
    gocardless = "gocardless";
    google_pubsub of PubSub = "google-pubsub", needs "rsa";
    help_scout = "help-scout", needs "sha1";
    heroku = "heroku";
    hook0 = "hook0";
    hubspot = "hubspot";
    hugging_face = "hugging-face";
    increase = "increase";
    intercom = "intercom", needs "sha1";
    jira = "jira";
    jira_connect = "jira-connect";
    klaviyo = "klaviyo";
    knock = "knock";
    kofi = "kofi";
    launchdarkly = "launchdarkly";
    lemonsqueezy = "lemonsqueezy";
    line = "line";
    linear = "linear";
    lithic = "lithic";
    livekit of LiveKitKey = "livekit";
    mailgun = "mailgun";
    mandrill = "mandrill", needs "sha1";
    maxio = "maxio";
    mcp_events = "mcp-events";
    mercadopago = "mercadopago";
    messagebird = "messagebird";
    meta = "meta";
    microsoft_graph = "microsoft-graph";
    modern_treasury = "modern-treasury";
    mollie = "mollie";
    monday = "monday";
    mux = "mux";
    netlify = "netlify";
    notion = "notion";
    npm_hooks = "npm-hooks";
    nylas = "nylas";
    okta = "okta";
    onfido = "onfido";
    openai = "openai";
    paddle = "paddle";
    pagerduty = "pagerduty";
    patreon = "patreon", needs "md5";
    paypal of PayPalWebhook = "paypal", needs "rsa";
    paystack = "paystack";
    persona = "persona";
    plaid of PlaidKeys = "plaid", needs "p256";
    plivo = "plivo", needs "sha1";
    polar = "polar";
    postmark = "postmark";
    pusher = "pusher";
    quickbooks = "quickbooks";
    razorpay = "razorpay";
    recurly = "recurly";
    render = "render";
    replicate = "replicate";
    resend = "resend";
    retell = "retell";
    revenuecat = "revenuecat";
    revolut = "revolut";
    sanity = "sanity";
    segment = "segment", needs "sha1";
    sendgrid = "sendgrid", needs "p256";
    sentry = "sentry";
    shippo = "shippo";
    shopify = "shopify";
    shopware = "shopware";
    slack = "slack";
    sonarqube = "sonarqube";
    square = "square";
    squarespace = "squarespace";
    standard_webhooks = "standard-webhooks";
    stripe = "stripe";
    sumsub = "sumsub";
    supabase_auth = "supabase-auth";
    svix = "svix";
    tally = "tally";
    telegram = "telegram";
    telnyx = "telnyx", needs "ed25519";
    terraform_cloud = "terraform-cloud";
    todoist = "todoist";
    trello = "trello", needs "sha1";
    twilio = "twilio", needs "sha1";
    twitch = "twitch";
    typeform = "typeform";
    vapi = "vapi";
    vercel = "vercel", needs "sha1";
    veriff = "veriff";
    viber = "viber";
    vonage = "vonage";
    webflow = "webflow";
    websub = "websub";
    wise = "wise", needs "rsa";
    wix = "wix", needs "rsa";
    woocommerce = "woocommerce";
    workos = "workos";
    x = "x";
    xendit = "xendit";
    xero = "xero";
    zendesk = "zendesk";
    zoom = "zoom";
}

/// Checks that `all-presets` turns on every feature that a preset needs. This is not a test, because tests run with all
/// features on.
#[cfg(feature = "all-presets")]
const _: () = assert!(
    ALL.len() == FEATURES.len(),
    "`all-presets` lacks the feature of a preset"
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Secret, SecretError, Secrets};

    #[test]
    fn where_keys_are_fetched_the_secret_of_an_unknown_tenant_is_of_the_right_kind()
    -> Result<(), SecretError> {
        for preset in ALL {
            let provider = preset.provider(Secret::new("secret")?);
            let scheme = provider.scheme();
            let nobodys = Secrets::new(scheme.dummy_secret());
            if scheme.needs_keys(&nobodys) {
                for secret in nobodys.iter() {
                    let checked = scheme.check_secret(secret);
                    assert!(checked.is_ok(), "{}: {checked:?}", preset.name());
                }
            }
        }
        Ok(())
    }

    #[test]
    fn each_preset_is_found_by_the_name_of_its_provider() -> Result<(), SecretError> {
        assert!(ALL.is_sorted_by_key(Preset::name));
        for preset in ALL {
            let provider = preset.provider(Secret::new("secret")?);
            assert_eq!(provider.name(), preset.name());
            assert_eq!(by_name(preset.name()).map(Preset::name), Ok(preset.name()));
        }
        Ok(())
    }

    #[test]
    fn the_table_of_features_has_each_preset_beside_its_features() {
        let front_page = include_str!("../lib.rs");
        for (name, features) in FEATURES {
            for feature in *features {
                let mut rows = front_page.lines();
                let row = rows.find(|line| line.starts_with(&format!("//! | `{feature}` |")));
                let has_it = row.is_some_and(|row| row.contains(&format!("`{name}`")));
                assert!(has_it, "{feature}: {name}");
            }
        }
    }

    /// The error of `by_name` if a feature is off. It is made directly here, because tests run with
    /// all features on.
    #[test]
    fn a_preset_that_is_not_there_names_its_features() {
        for (name, text) in [
            ("twilio", "the preset `twilio` needs the feature `sha1`"),
            (
                "ebay",
                "the preset `ebay` needs the features `p256`, `sha1`",
            ),
            ("unheard-of", "there is no preset `unheard-of`"),
        ] {
            assert_eq!(NoPreset::of(name).to_string(), text);
        }
        let error = by_name("unheard-of").map(Preset::name);
        assert_eq!(error, Err(NoPreset::of("unheard-of")));
    }
}
