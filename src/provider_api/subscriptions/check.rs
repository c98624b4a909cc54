//! `Subscriptions`: the settings of the comparison for a layer's endpoint, and the comparison itself.

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

/// Compares the provider's subscription for an endpoint with the layer: its address, whether it is switched on, its
/// event types and its version.
///
/// Events of a type that is not subscribed never arrive, and nothing fails. The expected types come from the layer's
/// table of event types, which [`Events`](crate::Events) or [`only`](IdempotentWebhook::only) sets. Without a table,
/// types are not compared.
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
/// It only reads from the provider. If the provider cannot be asked, the last findings stay. If the provider cannot be
/// asked for a day, the endpoint has the problem [`NotCompared`](crate::recovery::Problem::NotCompared).
#[must_use = "nothing is compared until it is spawned or asked for"]
pub struct Subscriptions<S> {
    pub(super) settings: Settings,
    pub(super) source: S,
    pub(super) expected: ExpectedSubscription,
    pub(super) every: Duration,
    pub(super) name: String,
}

impl<S: SubscriptionSource> Subscriptions<S> {
    /// Compares the subscription of a layer's endpoint. `address` is the address that the provider calls, such as
    /// `https://example.com/webhooks/stripe`: see [`ExpectedSubscription::new`].
    ///
    /// Each comparison reads the layer's table, so you may call `Events::layer` before or after this.
    ///
    /// # Errors
    ///
    /// [`SubscriptionError::NotAnAddress`] if `address` is not an HTTP URL.
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

    /// Sets the API version in which events should arrive. It replaces the versions that the layer's provider is
    /// expected to send: see [`ExpectedSubscription::api_version`].
    pub fn api_version(mut self, version: impl Into<Arc<str>>) -> Self {
        self.expected = self.expected.api_version(version);
        self
    }

    /// Allows several subscriptions with this address: see [`ExpectedSubscription::several`].
    pub fn several(mut self) -> Self {
        self.expected = self.expected.several();
        self
    }

    /// Sets the time from one comparison to the next, counted over all processes. Up to a tenth is added at random. At
    /// least a second, and at most a year. Default: an hour.
    pub fn every(mut self, interval: Duration) -> Self {
        self.every = interval.clamp(Duration::from_secs(1), YEAR);
        self
    }

    /// Sets another name for the list. The last findings are stored under this name. If an endpoint has several lists
    /// with one address, such as for two accounts, each list needs its own name. Default: the name of the
    /// [source](SubscriptionSource::name).
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Asks the provider now, and compares. This changes no table.
    ///
    /// # Errors
    ///
    /// [`SubscriptionError::Key`] if the provider refused the API key. [`SubscriptionError::Source`] if the provider
    /// could not be asked, or gave no answer within 2 minutes. Neither error says anything about the subscription.
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
