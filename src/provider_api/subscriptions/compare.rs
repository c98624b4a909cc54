//! The expected subscription, and its comparison with the provider's subscriptions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::address::Address;
use super::difference::{Difference, SubscriptionReport};
use super::error::SubscriptionError;
use super::source::{Subscription, SubscriptionSource, Version};
use crate::provider::Provider;
use crate::provider::event_types::{EventTypes, WantedEvents, add};
use crate::provider_api::source_error::{SourceError, caught};

/// How long reading all pages may take.
const TIMEOUT: Duration = Duration::from_secs(2 * 60);

/// The subscription that an endpoint should have.
///
/// With a layer that uses Postgres, [`Subscriptions`](super::Subscriptions) takes the expected subscription from the
/// layer. Use this type directly with [`VerifiedWebhook`](crate::VerifiedWebhook), and in programs outside of the
/// application:
///
/// ```no_run
/// use idempotent_webhook::subscriptions::{ExpectedSubscription, StripeSubscriptions};
/// use idempotent_webhook::{Secret, presets};
///
/// # async fn main_(secret: Secret, api_key: Secret) -> Result<(), Box<dyn std::error::Error>> {
/// let expected = ExpectedSubscription::new(
///     &presets::stripe(secret),
///     "https://example.com/webhooks/stripe",
/// )?;
/// let report = expected
///     .event_types(["invoice.paid", "customer.subscription.*"])?
///     .compare(&StripeSubscriptions::new(api_key))
///     .await?;
/// print!("{report}");
/// assert!(!report.has_errors());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ExpectedSubscription {
    address: Address,
    provider: Provider,
    /// `None` if the layer has no table of event types: every type has a handler.
    wanted: Option<WantedEvents>,
    /// If empty, any version is accepted.
    versions: Vec<Arc<str>>,
    may_be_several: bool,
}

impl ExpectedSubscription {
    /// The subscription of an endpoint. `address` is the address that the provider calls, such as
    /// `https://example.com/webhooks/stripe`.
    ///
    /// The scheme, the host, the port and the path are compared. A user, a password and a query are neither compared
    /// nor shown, because they may be secrets.
    ///
    /// # Errors
    ///
    /// [`SubscriptionError::NotAnAddress`] if `address` is not an HTTP URL.
    pub fn new(provider: &Provider, address: &str) -> Result<Self, SubscriptionError> {
        let address = Address::read(address).ok_or(SubscriptionError::NotAnAddress)?;
        Ok(Self {
            address,
            provider: provider.clone(),
            wanted: None,
            versions: provider.expected_payload_versions().to_vec(),
            may_be_several: false,
        })
    }

    /// Sets the event types and groups that have a handler, in the form that [`Events::on`](crate::Events::on) takes.
    /// All other types are ignored. Default: every type has a handler, so types are not compared.
    ///
    /// # Errors
    ///
    /// [`SubscriptionError::EventType`] if no event of the provider can have one of the names, or if a name is given
    /// twice.
    pub fn event_types<T: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = T>,
    ) -> Result<Self, SubscriptionError> {
        let none = EventTypes::new(Vec::<String>::new());
        let types = self.types_of(names, &none)?;
        self.wanted = Some(WantedEvents::new(types, &none, true));
        Ok(self)
    }

    /// Sets the event types and groups that are ignored by name, in the form that
    /// [`Events::ignore`](crate::Events::ignore) takes. A subscription to one of them is intended, so it is not
    /// reported as a hint. This has no effect unless [`event_types`](Self::event_types) was called before.
    ///
    /// # Errors
    ///
    /// [`SubscriptionError::EventType`] if no event of the provider can have one of the names, or if a name is given
    /// twice or has a handler.
    pub fn ignored<T: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = T>,
    ) -> Result<Self, SubscriptionError> {
        if let Some(handled) = self.wanted.as_ref().and_then(WantedEvents::types) {
            let ignored = self.types_of(names, handled)?;
            self.wanted = Some(WantedEvents::new(handled.clone(), &ignored, true));
        }
        Ok(self)
    }

    /// The types with these names. None of them may be in `others`.
    fn types_of<T: Into<String>>(
        &self,
        names: impl IntoIterator<Item = T>,
        others: &EventTypes,
    ) -> Result<EventTypes, SubscriptionError> {
        let mut types = EventTypes::new(Vec::<String>::new());
        for name in names {
            let name = name.into();
            let refused = |reason: &dyn fmt::Display| {
                SubscriptionError::EventType(format!(
                    "{name:?} is not the name of an event: {reason}"
                ))
            };
            if let Some(reason) = self.provider.never_matches(&name) {
                return Err(refused(&reason));
            }
            add(&mut types, others, name.clone()).map_err(|error| refused(&error))?;
        }
        Ok(types)
    }

    /// Sets the API version in which events should arrive. It replaces the versions that the provider is
    /// [expected](Provider::expect_version) to send. Paddle needs this, because its requests do not give their version.
    /// Default: the expected versions, or any version if there are none. GitHub and WorkOS have no versions, so nothing
    /// is compared for them.
    #[must_use]
    pub fn api_version(mut self, version: impl Into<Arc<str>>) -> Self {
        self.versions = vec![version.into()];
        self
    }

    /// Allows several subscriptions with this address, such as Stripe's for an account and for its connected accounts.
    /// Default: several subscriptions are an error, because an event arrives once for each of them.
    #[must_use]
    pub fn several(mut self) -> Self {
        self.may_be_several = true;
        self
    }

    /// Takes the event types from a layer's table.
    pub(super) fn with_table(mut self, wanted: Option<WantedEvents>) -> Self {
        self.wanted = wanted;
        self
    }

    pub(super) fn address(&self) -> String {
        self.address.to_string()
    }

    /// The path of the address.
    #[cfg(feature = "postgres")]
    pub(super) fn path(&self) -> &str {
        self.address.path()
    }

    /// Asks the provider, and compares. This only reads, and changes no table.
    ///
    /// # Errors
    ///
    /// [`SubscriptionError::Key`] if the provider refused the API key. [`SubscriptionError::Source`] if the provider
    /// could not be asked, or gave no answer within 2 minutes. Neither error says anything about the subscription.
    pub async fn compare<S: SubscriptionSource>(
        &self,
        source: &S,
    ) -> Result<SubscriptionReport, SubscriptionError> {
        let listed = tokio::time::timeout(TIMEOUT, caught(source.subscriptions()));
        let listed = listed
            .await
            .unwrap_or_else(|_| Err(SourceError::new("it took longer than 2 minutes")))
            .map_err(|error| match error.is_of_key() {
                true => SubscriptionError::Key(error),
                false => SubscriptionError::Source(error),
            })?;
        Ok(SubscriptionReport {
            differences: self.differences(&listed, source),
        })
    }

    fn differences(
        &self,
        listed: &[Subscription],
        source: &impl SubscriptionSource,
    ) -> Vec<Difference> {
        let is_here = |one: &&Subscription| one.address.as_ref() == Some(&self.address);
        let here: Vec<_> = listed.iter().filter(is_here).collect();
        if here.is_empty() {
            return vec![self.nothing_here(listed, source.leaves_out())];
        }
        let mut differences = Vec::new();
        let on: Vec<_> = here.iter().copied().filter(|one| one.is_on).collect();
        // If a subscription is on, it may have replaced the subscriptions that are off, so they are not compared.
        let compared = if on.is_empty() {
            differences.extend(
                here.iter()
                    .map(|one| Difference::SwitchedOff { id: one.id.clone() }),
            );
            here
        } else {
            on
        };
        if let Some(wanted) = &self.wanted {
            let not_listed = source.types_not_listed();
            differences.extend(self.not_subscribed(wanted, &compared, not_listed));
            differences.extend(self.not_handled(wanted, &compared));
        }
        if !self.may_be_several {
            let several = several(&compared);
            differences.extend(several.map(|ids| Difference::Several { ids }));
        }
        self.compare_versions(&compared, &mut differences);
        for one in compared {
            let status = one
                .last_status
                .filter(|status| !(200..300).contains(status));
            differences.extend(status.map(|status| Difference::LastAnswer {
                id: one.id.clone(),
                status,
            }));
        }
        differences
    }

    fn nothing_here(
        &self,
        listed: &[Subscription],
        not_listed: Option<&'static str>,
    ) -> Difference {
        let others = listed.iter().filter_map(|one| one.address.as_ref());
        let shown = |others: Vec<&Address>| {
            let shown = others
                .into_iter()
                .map(|one| one.shown_beside(&self.address));
            let mut shown: Vec<_> = shown.collect();
            shown.sort();
            shown.dedup();
            shown
        };
        let address = self.address();
        let (moved, foreign): (Vec<_>, Vec<_>) =
            others.partition(|other| other.has_path_of(&self.address));
        match moved.is_empty() {
            true => Difference::NotThere {
                address,
                others: shown(foreign),
                not_listed,
            },
            false => Difference::OtherAddress {
                address,
                found: shown(moved),
            },
        }
    }

    /// The handled types that are not subscribed, or only partly.
    fn not_subscribed(
        &self,
        wanted: &WantedEvents,
        compared: &[&Subscription],
        not_listed: &[&str],
    ) -> Vec<Difference> {
        let has_actions = self.provider.has_event_action();
        let mut differences = Vec::new();
        for name in wanted.handled() {
            let (mut subscribed, mut is_whole) = (BTreeSet::new(), false);
            for one in compared {
                let handled = spelt(name, one);
                let found = types(one).iter();
                for found in found.filter(|found| overlap(&handled, found, has_actions)) {
                    is_whole |= !is_part(found, &handled);
                    subscribed.insert(found);
                }
            }
            if is_whole {
                continue;
            }
            let event_type = name.clone();
            let mut not_listed = not_listed.iter();
            differences.push(if !subscribed.is_empty() {
                Difference::PartlySubscribed {
                    event_type,
                    subscribed: subscribed.into_iter().cloned().collect(),
                }
            } else if not_listed.any(|other| overlap(name, other, has_actions)) {
                Difference::NotListed { event_type }
            } else {
                Difference::NotSubscribed { event_type }
            });
        }
        differences
    }

    /// The subscribed types without a handler, except types that the application has chosen to ignore
    /// ([`ignored`](Self::ignored)).
    fn not_handled(&self, wanted: &WantedEvents, compared: &[&Subscription]) -> Vec<Difference> {
        if wanted.types().is_none() {
            return Vec::new();
        }
        let has_actions = self.provider.has_event_action();
        let mut unhandled = BTreeSet::new();
        for one in compared {
            // The names include the ignored types: a subscription to one of them is intended.
            let spelt: Vec<_> = wanted.names().iter().map(|name| spelt(name, one)).collect();
            let has_handler = |subscribed: &str| {
                let mut names = spelt.iter();
                subscribed != "*" && names.any(|name| overlap(name, subscribed, has_actions))
            };
            unhandled.extend(
                types(one)
                    .iter()
                    .filter(|subscribed| !has_handler(subscribed)),
            );
        }
        let difference = |name: &String| Difference::NotHandled {
            event_type: name.clone(),
        };
        unhandled.into_iter().map(difference).collect()
    }

    fn compare_versions(&self, compared: &[&Subscription], differences: &mut Vec<Difference>) {
        if self.versions.is_empty() {
            return;
        }
        let is_expected = |version: &str| self.versions.iter().any(|one| **one == *version);
        let mut differing = BTreeMap::<_, Vec<String>>::new();
        for one in compared {
            let found = match &one.version {
                Version::Unknown => continue,
                Version::Default => None,
                Version::Of(version) if is_expected(version) => continue,
                Version::Of(version) => Some(version.clone()),
            };
            differing.entry(found).or_default().push(one.id.clone());
        }
        differences.extend(
            differing
                .into_iter()
                .map(|(found, ids)| Difference::OtherVersion {
                    ids,
                    expected: self.versions.join(" or "),
                    found,
                }),
        );
    }
}

/// The types of a subscription. A subscription without types gets all types.
fn types(subscription: &Subscription) -> &[String] {
    static ALL: std::sync::LazyLock<[String; 1]> = std::sync::LazyLock::new(|| ["*".to_owned()]);
    subscription.types.as_deref().unwrap_or(&*ALL)
}

/// The name of a handled type, as the subscription spells it.
fn spelt(name: &str, subscription: &Subscription) -> String {
    if !subscription.are_types_in_capitals {
        return name.to_owned();
    }
    let capital = |char: char| match char {
        '*' => '*',
        char if char.is_alphanumeric() => char.to_ascii_uppercase(),
        _ => '_',
    };
    name.chars().map(capital).collect()
}

/// Whether an event can match both names, each of which may be a group. A handled name may include an action, such as
/// `pull_request.opened`, which cannot be subscribed separately.
fn overlap(handled: &str, subscribed: &str, has_actions: bool) -> bool {
    let is_qualified = || {
        let action = handled.strip_prefix(subscribed);
        action.is_some_and(|action| action.starts_with('.'))
    };
    let is_same = match (handled.strip_suffix('*'), subscribed.strip_suffix('*')) {
        (Some(one), Some(other)) => one.starts_with(other) || other.starts_with(one),
        (Some(group), None) => subscribed.starts_with(group),
        (None, Some(group)) => handled.starts_with(group),
        (None, None) => handled == subscribed,
    };
    is_same || has_actions && is_qualified()
}

/// Whether a subscribed name covers only a part of a handled group that it overlaps with.
fn is_part(subscribed: &str, handled: &str) -> bool {
    let group = handled.strip_suffix('*');
    subscribed != handled && group.is_some_and(|group| subscribed.starts_with(group))
}

/// The ids of the subscriptions that share an event type with another one. `None` if there are none.
fn several(compared: &[&Subscription]) -> Option<Vec<String>> {
    let share = |one: &Subscription, other: &Subscription| {
        let mut pairs = types(one)
            .iter()
            .flat_map(|name| types(other).iter().map(move |other| (name, other)));
        pairs.any(|(name, other)| overlap(name, other, false))
    };
    let is_one_of_several = |(place, one): &(usize, &&Subscription)| {
        let mut others = compared.iter().enumerate();
        one.is_on && others.any(|(other, two)| other != *place && share(one, two))
    };
    let ids = compared.iter().enumerate().filter(is_one_of_several);
    let ids: Vec<_> = ids.map(|(_, one)| one.id.clone()).collect();
    (!ids.is_empty()).then_some(ids)
}
