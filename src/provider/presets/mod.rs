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

mod adyen;
mod airtable;
mod airwallex;
mod alchemy;
mod anthropic;
#[cfg(feature = "x509")]
mod apple_app_store;
mod asana;
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
mod buildkite;
mod cal;
mod calendly;
mod cashfree;
mod chargebee;
mod checkout;
#[cfg(feature = "p256")]
mod circle;
mod circleci;
mod clerk;
mod clickup;
mod cloudevents;
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
mod square;
mod squarespace;
mod standard_webhooks;
mod stripe;
mod sumsub;
mod supabase_auth;
mod svix;
mod telegram;
#[cfg(feature = "ed25519")]
mod telnyx;
mod terraform_cloud;
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

/// Exports each preset, and puts it into the list.
macro_rules! presets {
    ($($(#[$attribute:meta])* $function:ident = $name:literal;)+) => {
        $(
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
    airtable = "airtable";
    airwallex = "airwallex";
    alchemy = "alchemy";
    anthropic = "anthropic";
    #[cfg(feature = "x509")]
    apple_app_store = "apple-app-store";
    asana = "asana";
    auth0_log_streams = "auth0-log-streams";
    authorize_net = "authorize-net";
    awardee = "awardee";
    #[cfg(feature = "x509")]
    aws_sns = "aws-sns";
    azure_event_grid = "azure-event-grid";
    bigcommerce = "bigcommerce";
    bitbucket = "bitbucket";
    box_com = "box";
    #[cfg(feature = "sha1")]
    braintree = "braintree";
    brevo = "brevo";
    brex = "brex";
    buildkite = "buildkite";
    cal = "cal";
    calendly = "calendly";
    cashfree = "cashfree";
    chargebee = "chargebee";
    checkout = "checkout";
    #[cfg(feature = "p256")]
    circle = "circle";
    circleci = "circleci";
    clerk = "clerk";
    clickup = "clickup";
    cloudevents = "cloudevents";
    cloudflare_stream = "cloudflare-stream";
    #[cfg(feature = "sha1")]
    cloudinary = "cloudinary";
    coinbase = "coinbase";
    coinbase_commerce = "coinbase-commerce";
    contentful = "contentful";
    customerio = "customerio";
    #[cfg(feature = "ed25519")]
    discord = "discord";
    documenso = "documenso";
    docuseal = "docuseal";
    docusign = "docusign";
    dropbox = "dropbox";
    dropbox_sign = "dropbox-sign";
    dwolla = "dwolla";
    easypost = "easypost";
    #[cfg(all(feature = "p256", feature = "sha1"))]
    ebay = "ebay";
    ecwid = "ecwid";
    elevenlabs = "elevenlabs";
    #[cfg(feature = "ed25519")]
    fal = "fal";
    figma = "figma";
    #[cfg(feature = "rsa")]
    fireblocks = "fireblocks";
    flutterwave = "flutterwave";
    forgejo = "forgejo";
    front = "front";
    gitea = "gitea";
    github = "github";
    #[cfg(feature = "p256")]
    github_secret_scanning = "github-secret-scanning";
    gitlab = "gitlab";
    gocardless = "gocardless";
    #[cfg(feature = "rsa")]
    google_pubsub = "google-pubsub";
    #[cfg(feature = "sha1")]
    help_scout = "help-scout";
    heroku = "heroku";
    hook0 = "hook0";
    hubspot = "hubspot";
    increase = "increase";
    #[cfg(feature = "sha1")]
    intercom = "intercom";
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
    livekit = "livekit";
    mailgun = "mailgun";
    #[cfg(feature = "sha1")]
    mandrill = "mandrill";
    maxio = "maxio";
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
    #[cfg(feature = "md5")]
    patreon = "patreon";
    #[cfg(feature = "rsa")]
    paypal = "paypal";
    paystack = "paystack";
    persona = "persona";
    #[cfg(feature = "p256")]
    plaid = "plaid";
    #[cfg(feature = "sha1")]
    plivo = "plivo";
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
    #[cfg(feature = "sha1")]
    segment = "segment";
    #[cfg(feature = "p256")]
    sendgrid = "sendgrid";
    sentry = "sentry";
    shippo = "shippo";
    shopify = "shopify";
    shopware = "shopware";
    slack = "slack";
    square = "square";
    squarespace = "squarespace";
    standard_webhooks = "standard-webhooks";
    stripe = "stripe";
    sumsub = "sumsub";
    supabase_auth = "supabase-auth";
    svix = "svix";
    telegram = "telegram";
    #[cfg(feature = "ed25519")]
    telnyx = "telnyx";
    terraform_cloud = "terraform-cloud";
    #[cfg(feature = "sha1")]
    trello = "trello";
    #[cfg(feature = "sha1")]
    twilio = "twilio";
    twitch = "twitch";
    typeform = "typeform";
    vapi = "vapi";
    #[cfg(feature = "sha1")]
    vercel = "vercel";
    veriff = "veriff";
    vonage = "vonage";
    webflow = "webflow";
    websub = "websub";
    #[cfg(feature = "rsa")]
    wise = "wise";
    #[cfg(feature = "rsa")]
    wix = "wix";
    woocommerce = "woocommerce";
    workos = "workos";
    x = "x";
    xendit = "xendit";
    xero = "xero";
    zendesk = "zendesk";
    zoom = "zoom";
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
