//! `SubscriptionSource`: a provider's subscriptions, read by its API.

use super::address::Address;
use crate::provider_api::source_error::SourceError;

/// The longest text of a provider that is shown, in characters.
const MAX_TEXT: usize = 200;

/// A provider's subscriptions, read by its API. It only reads.
///
/// This is one for an API of your own:
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
    /// The name of the list, such as `stripe`. It must not change, and must not depend on a key: the last findings are
    /// stored under it.
    fn name(&self) -> String;

    /// All subscriptions of the account, also those with another address. All or an error: if one were left out, it
    /// would be reported as missing.
    ///
    /// It is given up after 2 minutes.
    fn subscriptions(&self) -> impl Future<Output = Result<Vec<Subscription>, SourceError>> + Send;

    /// Subscriptions that the API does not list, in a few words that follow "not listed are". An operator sees them if
    /// none is found. Default: `None`.
    fn leaves_out(&self) -> Option<&'static str> {
        None
    }

    /// Types of events that the API does not list, because they are subscribed in another way. If one of them has a
    /// handler, it is a [hint](super::Difference::NotListed), and not reported as missing. Default: none.
    fn types_not_listed(&self) -> &'static [&'static str] {
        &[]
    }
}

/// A subscription, as a provider has it.
#[derive(Clone, Debug)]
pub struct Subscription {
    pub(super) id: String,
    /// `None` if it is not an HTTP URL.
    pub(super) address: Option<Address>,
    pub(super) is_on: bool,
    /// If empty, it is for all types.
    pub(super) types: Option<Vec<String>>,
    /// Whether types are in capitals, with `_` between words, as in `ORDERS_CREATE` for `orders/create`.
    pub(crate) are_types_in_capitals: bool,
    pub(super) version: Version,
    pub(super) last_status: Option<u16>,
}

/// The version of the API in which a subscription gets events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// The provider has none, or does not say it.
    Unknown,
    /// The version of the account, which may change.
    Default,
    Of(String),
}

impl Subscription {
    /// A subscription that is switched on, for all types of events. `id` is the provider's name for it. An address that
    /// is not an HTTP URL, such as a queue, is left out of the comparison.
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

    /// The types of events, such as `invoice.paid`, groups such as `invoice.*`, or `*` for all.
    #[must_use]
    pub fn event_types<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.types = Some(types.into_iter().map(|name| clean(&name.into())).collect());
        self
    }

    /// The provider sends nothing, because the subscription was switched off by an operator or by the provider.
    #[must_use]
    pub fn switched_off(mut self) -> Self {
        self.is_on = false;
        self
    }

    /// The version of the API in which it gets events.
    #[must_use]
    pub fn api_version(mut self, version: impl Into<String>) -> Self {
        self.version = Version::Of(clean(&version.into()));
        self
    }

    /// It has no version of its own, so it gets events in the version of the account.
    #[must_use]
    pub fn default_api_version(mut self) -> Self {
        self.version = Version::Default;
        self
    }

    /// The status of the last answer that the provider had from the endpoint.
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
