//! `Subscriptions`: the comparison for a layer, with its settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::compare::ExpectedSubscription;
use super::difference::SubscriptionReport;
use super::error::SubscriptionError;
use super::source::SubscriptionSource;
use crate::layer::idempotent_webhook::IdempotentWebhook;
use crate::layer::settings::Settings;

const HOUR: Duration = Duration::from_secs(60 * 60);
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Compares the provider's subscription of an endpoint with the layer: its address, whether it is switched on, the types
/// of events and the version.
///
/// An event type that is not subscribed never comes, and nothing fails. The expected types are in the layer's table:
/// [`Events`](crate::Events) or [`only`](IdempotentWebhook::only). Without a table, types are not compared.
///
/// ```no_run
/// use idempotent_webhook::subscriptions::{StripeSubscriptions, Subscriptions};
/// use idempotent_webhook::{IdempotentWebhook, Secret, presets};
///
/// # async fn main_(pool: sqlx::PgPool, secret: Secret, api_key: Secret) -> Result<(), Box<dyn std::error::Error>> {
/// let stripe = IdempotentWebhook::new(pool, "billing", presets::stripe(secret))
///     .only(["invoice.paid"]);
/// let subscriptions = Subscriptions::new(
///     &stripe,
///     StripeSubscriptions::new(api_key),
///     "https://example.com/webhooks/stripe",
/// )?;
///
/// // Before a deploy.
/// let report = subscriptions.compare().await?;
/// print!("{report}");
/// if report.has_errors() {
///     std::process::exit(1);
/// }
///
/// // In each process.
/// let subscriptions = subscriptions.spawn();
/// # Ok(())
/// # }
/// ```
///
/// It only reads from the provider. If the provider cannot be asked, the last findings stay. After a day, that is a
/// problem of its own.
#[must_use = "nothing is compared until it is spawned or asked for"]
pub struct Subscriptions<S> {
    pub(super) settings: Settings,
    pub(super) source: S,
    pub(super) expected: ExpectedSubscription,
    pub(super) every: Duration,
    pub(super) name: String,
}

impl<S: SubscriptionSource> Subscriptions<S> {
    /// Compares the subscription of a layer's endpoint. `address` is what the provider calls, such as
    /// `https://example.com/webhooks/stripe`: see [`ExpectedSubscription::new`].
    ///
    /// The table of the layer is read with each comparison, so `Events::layer` may come before or after.
    ///
    /// # Errors
    ///
    /// [`SubscriptionError::NotAnAddress`] if it is not an HTTP URL.
    pub fn new(
        layer: &IdempotentWebhook,
        source: S,
        address: &str,
    ) -> Result<Self, SubscriptionError> {
        let settings = layer.settings().clone();
        Ok(Self {
            expected: ExpectedSubscription::new(&settings.verification.provider, address)?,
            settings,
            name: source.name(),
            source,
            every: HOUR,
        })
    }

    /// The version of the API in which events should come, instead of the versions that the layer's provider is
    /// expected to send: see [`ExpectedSubscription::api_version`].
    pub fn api_version(mut self, version: impl Into<Arc<str>>) -> Self {
        self.expected = self.expected.api_version(version);
        self
    }

    /// Several subscriptions of the address are intended: see [`ExpectedSubscription::several`].
    pub fn several(mut self) -> Self {
        self.expected = self.expected.several();
        self
    }

    /// The time from one comparison to the next, over all processes, plus up to a tenth at random. At least a second,
    /// and at most a year. Default: an hour.
    pub fn every(mut self, interval: Duration) -> Self {
        self.every = interval.clamp(Duration::from_secs(1), YEAR);
        self
    }

    /// Another name for the list, if an endpoint has several with one address, such as for two accounts. The last
    /// findings are stored under it. Default: the name of the [source](SubscriptionSource::name).
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Asks the provider now, and compares. It changes no table.
    ///
    /// # Errors
    ///
    /// [`SubscriptionError::Key`] if the provider has refused the API key, and [`SubscriptionError::Source`] if it could
    /// not be asked, or has given no answer in 2 minutes. Nothing is known then.
    pub async fn compare(&self) -> Result<SubscriptionReport, SubscriptionError> {
        let table = self.settings.verification.listed_events();
        let expected = self.expected.clone();
        expected
            .with_table(table.map(|table| (**table).clone()))
            .compare(&self.source)
            .await
    }
}

impl<S> fmt::Debug for Subscriptions<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriptions")
            .field("endpoint", &self.settings.verification.endpoint)
            .field("address", &self.expected.address())
            .field("every", &self.every)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
