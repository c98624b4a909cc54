//! Which events a layer lets through. This is decided by the layer's table of event types: the
//! names that it handles, the names that it ignores, and whether it ignores all other types.

use std::fmt;

use super::{EventTypes, is_of_word};

/// The event types that a layer handles, and what happens to all other types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedEvents {
    handled: EventTypes,
    /// The handled names, followed by the names to ignore.
    all: EventTypes,
    ignores_others: bool,
}

/// What an event type matched in the table of event types. The layer puts this value into the
/// extensions of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matched {
    Type(usize),
    /// No name in the table matches, but the event is handled.
    Other,
}

/// What a layer with a table of event types does with an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Yes(Matched),
    Ignored(Ignored),
}

/// An event that is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ignored {
    /// This name in the table says that the event is ignored.
    Named(String),
    /// No name in the table matches the event type. The text includes the qualifier if the table
    /// distinguishes events of this type by it.
    Other(String),
}

impl Ignored {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Named(name) | Self::Other(name) => name,
        }
    }
}

impl WantedEvents {
    /// No name may be both in `handled` and in `ignored`.
    pub(crate) fn new(handled: EventTypes, ignored: &EventTypes, ignores_others: bool) -> Self {
        let all = handled.names().iter().chain(ignored.names()).cloned();
        Self {
            all: EventTypes::new(all),
            handled,
            ignores_others,
        }
    }

    /// Decides about an event. `qualified` is the type with its qualifier, such as
    /// `pull_request.opened`, if there is one.
    pub(crate) fn check(&self, event_type: &str, qualified: Option<&str>) -> Wanted {
        let qualified = qualified.unwrap_or(event_type);
        let of_this_type = |place: &usize| {
            let name = self.names().get(*place);
            name.is_some_and(|name| is_within(name, event_type))
        };
        let place = self
            .all
            .find_exact(qualified)
            .or_else(|| self.all.find_group(qualified).filter(of_this_type))
            .or_else(|| self.all.find(event_type));
        match place {
            Some(place) if place < self.handled().len() => Wanted::Yes(Matched::Type(place)),
            Some(place) => {
                let name = self.names().get(place).cloned();
                Wanted::Ignored(Ignored::Named(name.unwrap_or_default()))
            }
            None if self.ignores_others => {
                let is_told_apart = self.qualify(event_type);
                let name = if is_told_apart { qualified } else { event_type };
                Wanted::Ignored(Ignored::Other(name.to_owned()))
            }
            None => Wanted::Yes(Matched::Other),
        }
    }

    /// Whether the qualifier of the type makes a difference in this table.
    pub(crate) fn qualify(&self, event_type: &str) -> bool {
        let mut names = self.names().iter();
        names.any(|name| is_within(name, event_type))
    }

    /// Whether an event of the type would be ignored with any qualifier.
    pub(crate) fn ignore_all_of(&self, event_type: &str) -> bool {
        let is_ignored = matches!(self.check(event_type, None), Wanted::Ignored(_));
        is_ignored && !self.qualify(event_type)
    }

    /// The name in the table that differs from this type only in case and separators.
    pub(crate) fn similar_to(&self, event_type: &str) -> Option<&str> {
        let (found, found_words) = (letters(event_type), words(event_type));
        let is_similar = |name: &&String| match name.strip_suffix('*') {
            // `invoiceitem.created` is not in `invoice.*`.
            Some(group) => found_words.starts_with(&words(group)),
            None => found == letters(name),
        };
        let names = self.names().iter();
        names
            .filter(|_| !found.is_empty())
            .find(is_similar)
            .map(String::as_str)
    }

    /// All names: the handled ones, and then the ignored ones.
    pub(crate) fn names(&self) -> &[String] {
        self.all.names()
    }

    /// The handled names, in the order of their positions.
    pub(crate) fn handled(&self) -> &[String] {
        self.handled.names()
    }

    pub(crate) fn ignored(&self) -> &[String] {
        let ignored = self.names().get(self.handled().len()..);
        ignored.unwrap_or_default()
    }

    /// The handled names, if all other types are ignored.
    pub(crate) fn types(&self) -> Option<&EventTypes> {
        self.ignores_others.then_some(&self.handled)
    }
}

/// Whether a name matches qualified events of the type: `pull_request.opened`, `pull_request.*`.
fn is_within(name: &str, event_type: &str) -> bool {
    let rest = name.strip_prefix(event_type);
    rest.is_some_and(|rest| rest.starts_with('.'))
}

/// The letters and digits of a name, in lower case.
fn letters(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// The name in lower case, with a dot in place of each character between its words.
fn words(name: &str) -> String {
    let words = name
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { '.' });
    words.flat_map(char::to_lowercase).collect()
}

/// Why a name of an event type is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameError {
    Empty,
    /// It would match all types.
    All,
    /// `*` is not at the end after a separator.
    Group,
    Twice,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "it is empty",
            Self::All => "`*` would match all types: use `otherwise`, or no `only`",
            Self::Group => "`*` is only allowed at the end, after a dot or another separator, as in `invoice.*`",
            Self::Twice => "it is there twice",
        })
    }
}

/// Whether `*` occurs once in the name: at its end, after a word and a separator.
fn is_group(name: &str) -> bool {
    let words = name.strip_suffix('*').and_then(|words| {
        let separator = words.chars().last()?;
        (!is_of_word(separator)).then(|| words.trim_end_matches(separator))
    });
    words.is_some_and(|words| !words.is_empty() && !words.contains('*'))
}

/// Adds a name, if it is valid and not listed yet.
pub(crate) fn add(
    types: &mut EventTypes,
    others: &EventTypes,
    name: String,
) -> Result<(), NameError> {
    let star = name.find('*');
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name == "*" {
        return Err(NameError::All);
    }
    if star.is_some() && !is_group(&name) {
        return Err(NameError::Group);
    }
    if types
        .find_exact(&name)
        .or(others.find_exact(&name))
        .is_some()
    {
        return Err(NameError::Twice);
    }
    types.push(name);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(names: &[&str]) -> WantedEvents {
        with_ignored(names, &[])
    }

    fn with_ignored(names: &[&str], ignored: &[&str]) -> WantedEvents {
        let types = |names: &[&str]| EventTypes::new(names.iter().copied());
        WantedEvents::new(types(names), &types(ignored), true)
    }

    fn other(name: &str) -> Wanted {
        Wanted::Ignored(Ignored::Other(name.to_owned()))
    }

    fn named(name: &str) -> Wanted {
        Wanted::Ignored(Ignored::Named(name.to_owned()))
    }

    #[test]
    fn e3_what_qualifies_a_type_can_be_written() {
        let events = wanted(&["pull_request", "pull_request.opened", "issues.*", "push"]);
        let check = |event_type, action: &str| {
            let qualified = format!("{event_type}.{action}");
            events.check(event_type, Some(&qualified))
        };
        let place = |place| Wanted::Yes(Matched::Type(place));
        assert_eq!(check("pull_request", "opened"), place(1));
        assert_eq!(check("pull_request", "closed"), place(0));
        assert_eq!(check("issues", "opened"), place(2));
        assert_eq!(events.check("push", None), place(3));
        assert_eq!(events.check("issues", None), other("issues"));
        assert_eq!(check("star", "created"), other("star"));
        assert!(events.ignore_all_of("star"));
        for some in ["pull_request", "issues", "push"] {
            assert!(!events.ignore_all_of(some), "{some}");
        }
        assert!(!wanted(&["pull_request.opened"]).ignore_all_of("pull_request"));
        assert!(!wanted(&["customer.*"]).ignore_all_of("customer.subscription"));
    }

    #[test]
    fn y1_what_is_ignored_by_name_is_matched_as_what_is_handled() {
        let events = with_ignored(
            &["invoice.*", "pull_request.opened"],
            &[
                "invoice.created",
                "customer.*",
                "pull_request.closed",
                "star",
            ],
        );
        let place = |place| Wanted::Yes(Matched::Type(place));
        assert_eq!(events.check("invoice.paid", None), place(0));
        assert_eq!(
            events.check("invoice.created", None),
            named("invoice.created")
        );
        assert_eq!(events.check("customer.deleted", None), named("customer.*"));
        assert_eq!(events.check("charge.failed", None), other("charge.failed"));
        let check = |event_type, action: &str| {
            let qualified = format!("{event_type}.{action}");
            events.check(event_type, Some(&qualified))
        };
        assert_eq!(check("pull_request", "opened"), place(1));
        assert_eq!(
            check("pull_request", "closed"),
            named("pull_request.closed")
        );
        assert_eq!(
            check("pull_request", "locked"),
            other("pull_request.locked")
        );
        assert_eq!(check("star", "created"), named("star"));
        assert_eq!(events.handled(), ["invoice.*", "pull_request.opened"]);
        assert_eq!(events.ignored().len(), 4);
    }

    #[test]
    fn a_name_that_is_spelt_in_another_way_is_found() {
        let events = wanted(&["ORDERS_CREATE", "customer.subscription.*", "invoice.paid"]);
        for (event_type, similar) in [
            ("orders/create", Some("ORDERS_CREATE")),
            ("Invoice_Paid", Some("invoice.paid")),
            (
                "customer-subscription-created",
                Some("customer.subscription.*"),
            ),
            ("orders/created", None),
            ("invoice.paid.late", None),
            ("customer.subscriptions.created", None),
            ("", None),
            ("/", None),
        ] {
            assert_eq!(events.similar_to(event_type), similar, "{event_type}");
        }
    }

    #[test]
    fn e3_a_group_within_a_type_comes_before_the_type() {
        let events = wanted(&[
            "pull_request",
            "pull_request.*",
            "invoice.*",
            "invoice.paid",
        ]);
        let place = |place| Wanted::Yes(Matched::Type(place));
        let opened = events.check("pull_request", Some("pull_request.opened"));
        assert_eq!(opened, place(1));
        assert_eq!(events.check("pull_request", None), place(0));
        assert_eq!(events.check("invoice.paid", None), place(3));
        assert_eq!(
            events.check("invoice.paid", Some("invoice.paid.late")),
            place(3)
        );
        assert_eq!(events.check("invoice.voided", None), place(2));
        assert!(events.qualify("pull_request") && !events.qualify("pull"));
    }

    #[test]
    fn a_name_that_could_match_nothing_is_refused() {
        let (mut types, others) = (EventTypes::new(["push"]), EventTypes::new(["star"]));
        let mut add = |name: &str| super::add(&mut types, &others, name.to_owned());
        assert_eq!(add(""), Err(NameError::Empty));
        assert_eq!(add("*"), Err(NameError::All));
        for group in [
            ".*",
            "*.paid",
            "invoice*",
            "invoice.*.paid",
            "a.**",
            "a_*",
            "a-*",
        ] {
            assert_eq!(add(group), Err(NameError::Group), "{group}");
        }
        assert_eq!(add("push"), Err(NameError::Twice));
        assert_eq!(add("star"), Err(NameError::Twice));
        for group in ["invoice.*", "orders/*", "repo:*", "transfers#*"] {
            assert_eq!(add(group), Ok(()), "{group}");
        }
        assert_eq!(add("a type with spaces, é"), Ok(()));
    }
}
