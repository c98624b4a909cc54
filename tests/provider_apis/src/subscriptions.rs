//! The subscription sources of `idempotent_webhook`, each pointed at its imitated API in this
//! crate.

use std::net::SocketAddr;

use idempotent_webhook::Secret;
use idempotent_webhook::subscriptions::{
    GitHubSubscriptions, Http, PaddleSubscriptions, ShopifySubscriptions, SourceError,
    StripeSubscriptions, Subscription, SubscriptionSource, WorkOsSubscriptions,
};

use super::{Api, Refused, bad_request};

/// The providers whose subscriptions can be listed.
pub const SUBSCRIPTIONS: [&str; 5] = ["github", "paddle", "shopify", "stripe", "workos"];

/// A signing secret. Some APIs include one in their answers.
pub(super) const SIGNING_SECRET: &str = "a_signing_secret_of_the_provider";

/// A subscription of a provider.
#[derive(Clone, Debug)]
pub struct Hook {
    pub number: u64,
    pub url: String,
    pub is_on: bool,
    pub types: Vec<String>,
    /// The version of the payload. `None` is the default version.
    pub version: Option<&'static str>,
    /// The status of the last answer to a delivery, for GitHub.
    pub last_status: Option<u16>,
}

impl Hook {
    /// An active subscription.
    pub fn new(number: u64, url: &str, types: &[&str]) -> Self {
        Self {
            number,
            url: url.to_owned(),
            is_on: true,
            types: types.iter().map(|&name| name.to_owned()).collect(),
            version: None,
            last_status: None,
        }
    }
}

/// The subscriptions behind a cursor, and whether there are more.
pub(super) fn page(
    api: &Api,
    cursor: Option<&str>,
    prefix: &str,
    limit: u64,
) -> Result<(Vec<Hook>, bool), Refused> {
    let mut hooks = api.hooks();
    if let Some(cursor) = cursor {
        let number = cursor.strip_prefix(prefix).and_then(|id| id.parse().ok());
        let place = hooks.iter().position(|hook| Some(hook.number) == number);
        let place = place.ok_or_else(|| bad_request("no such cursor"))?;
        hooks.drain(..=place);
    }
    let has_more = hooks.len() as u64 > limit;
    hooks.truncate(limit.try_into().unwrap());
    Ok((hooks, has_more))
}

/// The subscription source of any of the providers.
pub enum AnySubscriptions {
    GitHub(GitHubSubscriptions),
    Paddle(PaddleSubscriptions),
    Shopify(ShopifySubscriptions),
    Stripe(StripeSubscriptions),
    WorkOs(WorkOsSubscriptions),
}

/// The subscription source of a provider at this address, with this API key.
pub fn subscriptions(provider: &str, http: Http, key: &str) -> AnySubscriptions {
    let key = Secret::new(key).unwrap();
    match provider {
        "github" => AnySubscriptions::GitHub(
            GitHubSubscriptions::repository(key, "octocat/hello-world").http(http),
        ),
        "paddle" => AnySubscriptions::Paddle(PaddleSubscriptions::new(key).http(http)),
        "shopify" => AnySubscriptions::Shopify(
            ShopifySubscriptions::new("acme.myshopify.com", key).http(http),
        ),
        "stripe" => AnySubscriptions::Stripe(StripeSubscriptions::new(key).http(http)),
        _ => AnySubscriptions::WorkOs(WorkOsSubscriptions::new(key).http(http)),
    }
}

/// The HTTP client that calls an API at this address.
pub fn at(address: SocketAddr) -> Http {
    Http::new().base(format!("http://{address}"))
}

impl SubscriptionSource for AnySubscriptions {
    fn name(&self) -> String {
        match self {
            Self::GitHub(source) => source.name(),
            Self::Paddle(source) => source.name(),
            Self::Shopify(source) => source.name(),
            Self::Stripe(source) => source.name(),
            Self::WorkOs(source) => source.name(),
        }
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, SourceError> {
        match self {
            Self::GitHub(source) => source.subscriptions().await,
            Self::Paddle(source) => source.subscriptions().await,
            Self::Shopify(source) => source.subscriptions().await,
            Self::Stripe(source) => source.subscriptions().await,
            Self::WorkOs(source) => source.subscriptions().await,
        }
    }

    fn leaves_out(&self) -> Option<&'static str> {
        match self {
            Self::GitHub(source) => source.leaves_out(),
            Self::Paddle(source) => source.leaves_out(),
            Self::Shopify(source) => source.leaves_out(),
            Self::Stripe(source) => source.leaves_out(),
            Self::WorkOs(source) => source.leaves_out(),
        }
    }

    fn types_not_listed(&self) -> &'static [&'static str] {
        match self {
            Self::GitHub(source) => source.types_not_listed(),
            Self::Paddle(source) => source.types_not_listed(),
            Self::Shopify(source) => source.types_not_listed(),
            Self::Stripe(source) => source.types_not_listed(),
            Self::WorkOs(source) => source.types_not_listed(),
        }
    }
}
