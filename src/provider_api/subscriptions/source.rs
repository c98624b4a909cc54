//! `SubscriptionSource`: a provider's subscriptions, read from its API.

use super::address::Address;
use crate::provider_api::source_error::SourceError;

/// The maximum length of a provider's text that is shown, in characters.
const MAX_TEXT: usize = 200;

/// A provider's subscriptions, read from its API. A source only reads.
///
/// A source for an API of your own:
///
/// ```
/// use idempotent_webhook::subscriptions::{SourceError, Subscription, SubscriptionSource};
///
/// struct Orders(reqwest::Client);
///
/// #[derive(serde::Deserialize)]
/// struct Hook {
///     id: String,
///     url: String,
///     paused: bool,
///     types: Vec<String>,
/// }
///
/// impl SubscriptionSource for Orders {
///     fn name(&self) -> String {
///         "orders".to_owned()
///     }
///
///     async fn subscriptions(&self) -> Result<Vec<Subscription>, SourceError> {
///         let request = self.0.get("https://api.example.com/hooks");
///         let hooks: Vec<Hook> = request.send().await?.error_for_status()?.json().await?;
///         let read = |hook: Hook| {
///             let subscription = Subscription::new(hook.id, hook.url).event_types(hook.types);
///             if hook.paused { subscription.switched_off() } else { subscription }
///         };
///         Ok(hooks.into_iter().map(read).collect())
///     }
/// }
/// ```
pub trait SubscriptionSource: Send + Sync + 'static {
    /// The name of the list, such as `stripe`. It must not change and must not depend on a key, because the last
    /// findings are stored under it.
    fn name(&self) -> String;

    /// All subscriptions of the account, including subscriptions with another address. Return all of them or an error:
    /// a subscription that is left out would be reported as missing.
    ///
    /// The call is cancelled after 2 minutes.
    fn subscriptions(&self) -> impl Future<Output = Result<Vec<Subscription>, SourceError>> + Send;

    /// Describes subscriptions that the API does not list, such as "subscriptions of other apps". If no subscription
    /// has the expected address or the same path, the report adds "the API does not list", followed by this text.
    /// Default: `None`.
    fn leaves_out(&self) -> Option<&'static str> {
        None
    }

    /// Event types that the API does not list, because they are subscribed in another way. If one of them has a
    /// handler, this is reported as a [hint](super::Difference::NotListed), and not as a missing subscription. Default:
    /// none.
    fn types_not_listed(&self) -> &'static [&'static str] {
        &[]
    }
}

/// A subscription at a provider.
#[derive(Clone, Debug)]
pub struct Subscription {
    pub(super) id: String,
    /// `None` if it is not an HTTP URL.
    pub(super) address: Option<Address>,
    pub(super) is_on: bool,
    /// `None` for all types.
    pub(super) types: Option<Vec<String>>,
    /// Whether the provider writes types in capitals, with `_` between words, such as `ORDERS_CREATE` for
    /// `orders/create`.
    pub(crate) are_types_in_capitals: bool,
    pub(super) version: Version,
    pub(super) last_status: Option<u16>,
}

/// The API version in which a subscription gets events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// The provider has no versions, or does not show the version.
    Unknown,
    /// The account's default version, which may change.
    Default,
    Of(String),
}

impl Subscription {
    /// A subscription that is switched on, for all event types. `id` is the provider's id of the subscription. If the
    /// address is not an HTTP URL, such as a queue, the subscription is left out of the comparison.
    pub fn new(id: impl Into<String>, address: impl AsRef<str>) -> Self {
        Self {
            id: clean(&id.into()),
            address: Address::read(address.as_ref()),
            is_on: true,
            types: None,
            are_types_in_capitals: false,
            version: Version::Unknown,
            last_status: None,
        }
    }

    /// Sets the event types, such as `invoice.paid`, groups such as `invoice.*`, or `*` for all.
    #[must_use]
    pub fn event_types<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.types = Some(types.into_iter().map(|name| clean(&name.into())).collect());
        self
    }

    /// Marks the subscription as switched off, by an operator or by the provider. The provider sends nothing.
    #[must_use]
    pub fn switched_off(mut self) -> Self {
        self.is_on = false;
        self
    }

    /// Sets the API version in which the subscription gets events.
    #[must_use]
    pub fn api_version(mut self, version: impl Into<String>) -> Self {
        self.version = Version::Of(clean(&version.into()));
        self
    }

    /// The subscription has no version of its own, so it gets events in the account's default version.
    #[must_use]
    pub fn default_api_version(mut self) -> Self {
        self.version = Version::Default;
        self
    }

    /// Sets the status of the last answer that the provider got from the endpoint.
    #[must_use]
    pub fn last_status(mut self, status: u16) -> Self {
        self.last_status = Some(status);
        self
    }
}

/// A provider's text, as it is stored and shown.
fn clean(text: &str) -> String {
    let visible = text.chars().filter(|char| !char.is_control());
    visible.take(MAX_TEXT).collect()
}
