//! The types of events to which an endpoint is subscribed.

/// Names of event types, as a provider has them.
#[derive(Clone, Debug)]
pub(super) struct EventTypes(Vec<String>);

impl EventTypes {
    pub(super) fn new<T: Into<String>>(types: impl IntoIterator<Item = T>) -> Self {
        Self(types.into_iter().map(Into::into).collect())
    }

    /// `*` is all types, and `invoice.*` all that begin with `invoice.`.
    pub(super) fn have(&self, event_type: &str) -> bool {
        self.0.iter().any(|known| match known.strip_suffix('*') {
            Some(prefix) => event_type.starts_with(prefix),
            None => known == event_type,
        })
    }

    /// The names, if each is that of a type and there are no more than a list can filter by.
    pub(super) fn exact(&self, most: usize) -> Option<&[String]> {
        let has_groups = self.0.iter().any(|known| known.ends_with('*'));
        (self.0.len() <= most && !has_groups).then_some(&*self.0)
    }

    pub(super) fn names(&self) -> &[String] {
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
    fn a_list_filters_by_a_few_exact_names() {
        assert_eq!(EventTypes::new(["a", "b"]).exact(1), None);
        assert_eq!(EventTypes::new(["a*"]).exact(1), None);
        assert!(EventTypes::new(["a", "b"]).exact(2).is_some());
    }
}
