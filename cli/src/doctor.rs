//! `webhook doctor`.

use clap::Args;
use idempotent_webhook::Secret;
use idempotent_webhook::subscriptions::{
    ExpectedSubscription, GitHubSubscriptions, Http, PaddleSubscriptions, ShopifySubscriptions,
    StripeSubscriptions, SubscriptionError, SubscriptionReport, WorkOsSubscriptions,
};

use crate::address::Address;
use crate::preset::Provider;
use crate::{Ended, Failed};

/// The environment variable with the API key, unless the user names another one.
const KEY: &str = "WEBHOOK_API_KEY";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Doctor {
    /// The provider of the subscription: github, paddle, shopify, stripe or workos
    provider: Provider,

    /// The address that the provider should call
    #[arg(long, value_name = "URL")]
    url: String,

    /// The types and groups that have a handler, as in the application's table [default: types are not compared]
    #[arg(long, value_name = "TYPE,...", value_delimiter = ',')]
    events: Vec<String>,

    /// The types and groups that the application's table ignores by name: the subscription may contain them
    #[arg(
        long,
        value_name = "TYPE,...",
        value_delimiter = ',',
        requires = "events"
    )]
    ignore: Vec<String>,

    /// The GitHub repository (octocat/hello-world) or organization, or the Shopify shop (acme.myshopify.com), whose
    /// webhooks are compared
    #[arg(long, value_name = "NAME")]
    of: Option<String>,

    /// The expected version of events [default: any]
    #[arg(long, value_name = "VERSION")]
    api_version: Option<String>,

    /// Allow several subscriptions for the address
    #[arg(long)]
    several: bool,

    /// The environment variable that contains the API key
    #[arg(long, value_name = "NAME", default_value = KEY)]
    key_env: String,

    /// The address of the API, for a sandbox or your own server: https://, or http:// on this machine [default: the
    /// provider's API]
    #[arg(long, value_name = "URL")]
    api: Option<Address>,
}

const AFTER_HELP: &str = "The command reads the subscriptions from the provider, and compares them with what the \
application expects. It changes nothing. The API key needs the right to read webhooks; it is not the secret that signs \
them.

Examples:
  read -rs WEBHOOK_API_KEY; export WEBHOOK_API_KEY
  webhook doctor stripe --url https://example.com/webhooks/stripe --events 'invoice.paid,customer.*'
  webhook doctor github --of octocat/hello-world --url https://example.com/webhooks/github --events push
  webhook doctor paddle --api https://sandbox-api.paddle.com --url https://example.com/webhooks/paddle

Exit status: 0 if there are no errors (there may be hints); 1 if there are errors; 2 for wrong usage, or if the \
provider has refused the key or does not know what was asked for; 3 if the provider could not be asked this time.";

impl Doctor {
    pub fn run(self) -> Result<Ended, Failed> {
        let expected = self.expected()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let report = runtime.block_on(self.ask(&expected))?;
        let report = report.map_err(|error| self.failed(&error))?;
        let mut text = report.to_string();
        if self.events.is_empty() {
            text +=
                "hint: types were not compared: name the types that have a handler with --events\n";
        }
        Ok(Ended {
            text,
            is_right: !report.has_errors(),
        })
    }

    fn expected(&self) -> Result<ExpectedSubscription, String> {
        // A secret is required, but nothing is signed here.
        let unused = Secret::new("unused").map_err(|error| error.to_string())?;
        let provider = self.provider.with(unused);
        let expected = ExpectedSubscription::new(&provider, &self.url)
            .map_err(|error| format!("--url: {error}"))?;
        let events = names("--events", &self.events)?;
        let ignored = names("--ignore", &self.ignore)?;
        let expected = match events.is_empty() {
            true => expected,
            false => expected
                .event_types(events)
                .map_err(|error| format!("--events: {error}"))?,
        };
        let expected = expected
            .ignored(ignored)
            .map_err(|error| format!("--ignore: {error}"))?;
        let expected = match &self.api_version {
            Some(version) => expected.api_version(version.as_str()),
            None => expected,
        };
        Ok(match self.several {
            true => expected.several(),
            false => expected,
        })
    }

    async fn ask(
        &self,
        expected: &ExpectedSubscription,
    ) -> Result<Result<SubscriptionReport, SubscriptionError>, String> {
        let http = match &self.api {
            Some(address) => Http::new().base(address.as_str()),
            None => Http::new(),
        };
        let provider = self.provider.name();
        let of = |what: &str| {
            let named = self.of.as_deref();
            named.ok_or_else(|| format!("{provider} needs --of with {what}"))
        };
        match provider {
            "github" => {
                let of = of("a repository or an organization")?;
                let hooks = match of.contains('/') {
                    true => GitHubSubscriptions::repository(self.key()?, of),
                    false => GitHubSubscriptions::organization(self.key()?, of),
                };
                Ok(expected.compare(&hooks.http(http)).await)
            }
            "shopify" => {
                let shop = ShopifySubscriptions::new(of("a shop")?, self.key()?);
                Ok(expected.compare(&shop.http(http)).await)
            }
            _ if self.of.is_some() => Err(format!("--of is not for {provider}")),
            "paddle" => {
                let paddle = PaddleSubscriptions::new(self.key()?);
                Ok(expected.compare(&paddle.http(http)).await)
            }
            "stripe" => {
                let stripe = StripeSubscriptions::new(self.key()?);
                Ok(expected.compare(&stripe.http(http)).await)
            }
            "workos" => {
                let workos = WorkOsSubscriptions::new(self.key()?);
                Ok(expected.compare(&workos.http(http)).await)
            }
            _ => Err(format!(
                "the subscriptions of {provider} cannot be read: only those of github, paddle, shopify, stripe \
                 and workos"
            )),
        }
    }

    fn failed(&self, error: &SubscriptionError) -> Failed {
        let name = &self.key_env;
        match error {
            SubscriptionError::Key(error) => Failed::Usage(format!(
                "the provider has refused the API key of {name}: it is wrong, has expired, lacks the right to read \
                 webhooks, or is the secret that signs them: {error}"
            )),
            error if error.may_pass() => Failed::NotNow(error.to_string()),
            error => Failed::Usage(error.to_string()),
        }
    }

    fn key(&self) -> Result<Secret, String> {
        let name = &self.key_env;
        let key = std::env::var_os(name).ok_or_else(|| {
            format!("the API key is missing: give it in the environment variable {name}")
        })?;
        let key = Secret::new(key.into_encoded_bytes());
        key.map_err(|error| format!("the API key of {name} cannot be used: {}", error.reason()))
    }
}

/// The types in the list of an option, without the spaces that people often write after a comma. No type of these
/// providers contains a space.
fn names<'a>(option: &str, all: &'a [String]) -> Result<Vec<&'a str>, String> {
    let names = all.iter().map(|name| {
        let name = name.trim();
        match name.contains(char::is_whitespace) {
            true => Err(format!(
                "{option}: {name:?} is not a type: types are separated by commas"
            )),
            false => Ok(name),
        }
    });
    names.collect()
}
