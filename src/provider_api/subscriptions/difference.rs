//! The differences between a subscription and the expected one.

use std::fmt;

/// The maximum number of names that are shown of a list.
const SHOWN: usize = 5;

/// A difference between a subscription and the expected one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// No subscription has the expected address, nor an address with the same path and another host, scheme or port.
    #[non_exhaustive]
    NotThere {
        /// The expected address.
        address: String,
        /// The other addresses. An address at another host is shown without its path.
        others: Vec<String>,
        /// What the API [does not list](super::SubscriptionSource::leaves_out).
        not_listed: Option<&'static str>,
    },
    /// No subscription has the expected address, but one has an address with the same path. The host, the scheme or the
    /// port differs, or only one of the two addresses ends with a slash.
    #[non_exhaustive]
    OtherAddress {
        /// The expected address.
        address: String,
        /// The addresses that have the same path.
        found: Vec<String>,
    },
    /// The subscription is switched off, and no other subscription with the expected address is on.
    #[non_exhaustive]
    SwitchedOff {
        /// The id of the subscription.
        id: String,
    },
    /// A type or a group has a handler, but no subscription with the address includes it.
    #[non_exhaustive]
    NotSubscribed {
        /// The name of the type or group that has the handler.
        event_type: String,
    },
    /// A type or a group has a handler, but the API [does not list](super::SubscriptionSource::types_not_listed)
    /// whether it is subscribed. This is a hint, not an error.
    #[non_exhaustive]
    NotListed {
        /// The name of the type or group that has the handler.
        event_type: String,
    },
    /// A group has a handler, but only some of its types are subscribed. Events of its other types do not arrive. This
    /// is a hint, not an error.
    #[non_exhaustive]
    PartlySubscribed {
        /// The name of the type or group that has the handler.
        event_type: String,
        /// The subscribed names in the group, as the provider writes them.
        subscribed: Vec<String>,
    },
    /// A type is subscribed, but the layer ignores it. This is a hint, not an error.
    #[non_exhaustive]
    NotHandled {
        /// The name, as the provider writes it.
        event_type: String,
    },
    /// Several subscriptions with the address are on and have a type in common.
    #[non_exhaustive]
    Several {
        /// The ids of the subscriptions.
        ids: Vec<String>,
    },
    /// Events arrive in an API version that is not expected.
    #[non_exhaustive]
    OtherVersion {
        /// The ids of the subscriptions with that version.
        ids: Vec<String>,
        /// The expected version, or several with "or" between them.
        expected: String,
        /// The version that was found. `None` for the account's default version, which may change.
        found: Option<String>,
    },
    /// According to the provider, the endpoint's last answer was not a 2xx. This is a hint, not an error.
    #[non_exhaustive]
    LastAnswer {
        /// The id of the subscription.
        id: String,
        /// The status of that answer.
        status: u16,
    },
}

impl Difference {
    /// Whether the difference may be intended. A difference that is not a hint is an error.
    pub fn is_hint(&self) -> bool {
        matches!(
            self,
            Self::NotListed { .. }
                | Self::PartlySubscribed { .. }
                | Self::NotHandled { .. }
                | Self::LastAnswer { .. }
        )
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotThere {
                address,
                others,
                not_listed,
            } => {
                write!(f, "no subscription has the address {address}")?;
                match &**others {
                    [] => f.write_str(", and there is no other subscription")?,
                    others => write!(f, "; there are others at {}", Names(others))?,
                }
                match not_listed {
                    Some(not_listed) => write!(f, " (the API does not list {not_listed})"),
                    None => Ok(()),
                }
            }
            Self::OtherAddress { address, found } => write!(
                f,
                "no subscription has the address {address}; the same path is subscribed at {}",
                Names(found)
            ),
            Self::SwitchedOff { id } => write!(f, "the subscription {id} is switched off"),
            Self::NotSubscribed { event_type } => {
                write!(f, "{event_type} has a handler and is not subscribed")
            }
            Self::NotListed { event_type } => write!(
                f,
                "{event_type} has a handler, and the API does not say whether it is subscribed"
            ),
            Self::PartlySubscribed {
                event_type,
                subscribed,
            } => write!(
                f,
                "{event_type} has a handler, but only some of its types are subscribed: {}",
                Names(subscribed)
            ),
            Self::NotHandled { event_type } if event_type == "*" => {
                f.write_str("all types are subscribed, and those without a handler are ignored")
            }
            Self::NotHandled { event_type } => {
                write!(f, "{event_type} is subscribed and has no handler")
            }
            Self::Several { ids } => write!(
                f,
                "several subscriptions have the address and a type in common: {}",
                Names(ids)
            ),
            Self::OtherVersion {
                ids,
                expected,
                found: Some(found),
            } => write!(
                f,
                "events come in the version {found}, and {expected} is expected: {}",
                Names(ids)
            ),
            Self::OtherVersion {
                ids,
                expected,
                found: None,
            } => write!(
                f,
                "events come in the default version of the account, which may change, and {expected} is expected: {}",
                Names(ids)
            ),
            Self::LastAnswer { id, status } => {
                write!(f, "the last answer to the subscription {id} was {status}")
            }
        }
    }
}

/// The first few names of a list.
struct Names<'a>(&'a [String]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shown, left) = self.0.split_at(self.0.len().min(SHOWN));
        f.write_str(&shown.join(", "))?;
        match left.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// The differences that a comparison found. `Display` writes a line for each, the errors first, or says that nothing
/// differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionReport {
    pub(super) differences: Vec<Difference>,
}

impl SubscriptionReport {
    /// Whether any difference is an error: events are lost, arrive twice, or have another form.
    pub fn has_errors(&self) -> bool {
        self.errors().next().is_some()
    }

    /// The differences that are errors.
    pub fn errors(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|one| !one.is_hint())
    }

    /// The differences that may be intended.
    pub fn hints(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|one| one.is_hint())
    }
}

impl fmt::Display for SubscriptionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.differences.is_empty() {
            return f.write_str("The subscription is as expected.\n");
        }
        for error in self.errors() {
            writeln!(f, "error: {error}")?;
        }
        for hint in self.hints() {
            writeln!(f, "hint: {hint}")?;
        }
        Ok(())
    }
}
