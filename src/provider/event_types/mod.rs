//! Names of event types, and groups of them with `*`. `wanted_events.rs` decides which events are ignored, and
//! `forms.rs` decides which names a provider's events can have.

mod forms;
mod wanted_events;

pub(crate) use forms::NameForms;
pub(crate) use wanted_events::{Ignored, Matched, Wanted, WantedEvents, add};

/// Whether the character is inside a part of a name: in a word of the part, or between two words. Any other character
/// separates parts, and a group such as `invoice.*` ends after such a separator.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || ['_', '-', '*', ' '].contains(&c)
}

/// Names of event types, as the provider writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventTypes(Vec<String>);

impl EventTypes {
    pub(crate) fn new<T: Into<String>>(types: impl IntoIterator<Item = T>) -> Self {
        Self(types.into_iter().map(Into::into).collect())
    }

    pub(crate) fn push(&mut self, name: String) {
        self.0.push(name);
    }

    /// Whether a listed name or group covers the type. `*` covers all types, and `invoice.*` all that start with
    /// `invoice.`.
    #[cfg(any(feature = "reqwest", test))]
    pub(crate) fn have(&self, event_type: &str) -> bool {
        self.find(event_type).is_some()
    }

    #[cfg(any(feature = "reqwest", test))]
    pub(crate) fn are_all(&self) -> bool {
        self.0.iter().any(|known| known == "*")
    }

    /// The position of the name or, if it is not listed, of the longest group that covers it.
    pub(crate) fn find(&self, event_type: &str) -> Option<usize> {
        self.find_exact(event_type)
            .or_else(|| self.find_group(event_type))
    }

    /// The position of the longest group that covers the name.
    pub(crate) fn find_group(&self, event_type: &str) -> Option<usize> {
        let groups = self.0.iter().enumerate().filter_map(|(place, known)| {
            let prefix = known.strip_suffix('*')?;
            event_type
                .starts_with(prefix)
                .then_some((prefix.len(), place))
        });
        groups.max().map(|(_, place)| place)
    }

    /// The position of the name itself.
    pub(crate) fn find_exact(&self, event_type: &str) -> Option<usize> {
        self.0.iter().position(|known| known == event_type)
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_the_types_that_begin_with_its_name() {
        let types = EventTypes::new(["invoice.*", "charge.refunded"]);
        assert!(types.have("invoice.paid"));
        assert!(types.have("charge.refunded"));
        assert!(!types.have("charge.refunded.late"));
        assert!(!types.have("invoiceitem.created"));
        assert!(EventTypes::new(["*"]).have("anything"));
        assert!(!EventTypes::new(Vec::<String>::new()).have("anything"));
    }

    #[test]
    fn e3_the_name_comes_before_the_longest_group() {
        let types = EventTypes::new(["customer.*", "customer.subscription.*", "customer.created"]);
        let find = |name| {
            let place = types.find(name)?;
            types.names().get(place).map(String::as_str)
        };
        assert_eq!(find("customer.created"), Some("customer.created"));
        assert_eq!(find("customer.deleted"), Some("customer.*"));
        assert_eq!(
            find("customer.subscription.paused"),
            Some("customer.subscription.*")
        );
        assert_eq!(find("customer.subscription"), Some("customer.*"));
        assert_eq!(find("customer"), None);
        assert_eq!(find("Customer.created"), None);
    }
}
