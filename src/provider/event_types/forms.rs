//! The forms that the names of a provider's events can have.

use super::is_of_word;

/// The forms that the names of a provider's events can have. If there are none, a name can have any form.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameForms {
    /// One example of each form.
    examples: Vec<String>,
    /// Names that are allowed although no other name of their form is, and groups in which the sender chooses the
    /// names.
    exceptions: Vec<String>,
}

impl NameForms {
    pub(crate) fn like(examples: Vec<String>) -> Self {
        Self {
            examples,
            exceptions: Vec::new(),
        }
    }

    pub(crate) fn and(mut self, exceptions: &[&str]) -> Self {
        let names = exceptions.iter().map(|name| (*name).to_owned());
        self.exceptions.extend(names);
        self
    }

    pub(crate) fn examples(&self) -> &[String] {
        &self.examples
    }

    /// The examples, and the names that are exceptions.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &str> {
        let listed = self.examples.iter().chain(&self.exceptions);
        listed.map(String::as_str)
    }

    /// Whether an event can have this name or, if it is a group, a name in the group.
    pub(crate) fn allow(&self, name: &str) -> bool {
        let is_exception = |exception: &String| {
            let of_group = |group: Option<&str>, name: &str| {
                group.is_some_and(|group| name.starts_with(group))
            };
            exception == name
                || of_group(exception.strip_suffix('*'), name)
                || of_group(name.strip_suffix('*'), exception)
        };
        self.examples.is_empty()
            || self.exceptions.iter().any(is_exception)
            || self.examples.iter().any(|example| is_like(name, example))
    }

    /// The name rewritten in an allowed form, if its words show which form is meant.
    pub(crate) fn rewrite(&self, name: &str) -> Option<String> {
        let begins_with = |example: &&String| {
            let rest = name.strip_prefix(example.as_str());
            rest.is_some_and(|rest| rest.starts_with(|c| !is_of_word(c)))
        };
        // A name that continues an example becomes the example: Slack's own name for `message.im` is `message`.
        if let Some(example) = self.examples.iter().find(begins_with) {
            return Some(example.clone());
        }
        // For a name of several parts, examples that also have several parts are tried first.
        let has_parts = |name: &str| !name.chars().all(is_of_word);
        let (alike, others): (Vec<_>, Vec<_>) = self
            .examples
            .iter()
            .partition(|example| has_parts(example) || !has_parts(name));
        let examples = alike.into_iter().chain(others);
        let mut rewritten = examples.filter_map(|example| rewrite(name, example));
        rewritten.find(|name| self.allow(name))
    }
}

/// How the letters of a part of a name are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    /// The part has no letters.
    Any,
    Lower,
    Upper,
    /// `updateCard`
    Camel,
    /// `BlobCreated`, `Push Hook`
    Pascal,
}

impl Case {
    fn of(part: &str) -> Self {
        let first = part.chars().find(|c| c.is_alphabetic());
        let has_lower = part.chars().any(char::is_lowercase);
        match first {
            None => Self::Any,
            Some(_) if !part.chars().any(char::is_uppercase) => Self::Lower,
            Some(_) if !has_lower => Self::Upper,
            Some(first) if first.is_uppercase() => Self::Pascal,
            Some(_) => Self::Camel,
        }
    }

    fn has(self, part: &str) -> bool {
        let mut words = part.split(is_joiner).filter_map(|word| word.chars().next());
        match self {
            Self::Any => true,
            Self::Lower => !part.chars().any(char::is_uppercase),
            Self::Upper => !part.chars().any(char::is_lowercase),
            Self::Camel => words.next().is_none_or(|first| !first.is_uppercase()),
            Self::Pascal => Self::of(part) != Self::Upper && words.all(|c| !c.is_lowercase()),
        }
    }

    /// Joins words that are given in lower case.
    fn join(self, words: &[String], joiner: Option<char>) -> Option<String> {
        let capitals = words.iter().map(|word| {
            let mut chars = word.chars();
            let first = chars.next().into_iter().flat_map(char::to_uppercase);
            first.chain(chars).collect::<String>()
        });
        Some(match (self, joiner, words) {
            (Self::Pascal, None, _) => capitals.collect(),
            (Self::Camel, None, [first, ..]) => {
                let rest = capitals.skip(1);
                std::iter::once(first.clone()).chain(rest).collect()
            }
            (_, None, []) => String::new(),
            (Self::Upper, None, [word]) => word.to_uppercase(),
            (_, None, [word]) => word.clone(),
            (Self::Upper, Some(joiner), _) => words.join(&joiner.to_string()).to_uppercase(),
            (Self::Any | Self::Lower, Some(joiner), _) => words.join(&joiner.to_string()),
            // The words alone do not show the style, as in `Push Hook`.
            _ => return None,
        })
    }
}

/// Whether the character separates the words of one part.
fn is_joiner(c: char) -> bool {
    !c.is_alphanumeric() && is_of_word(c) && c != '*'
}

/// The parts of a name, and their separators.
fn parts(name: &str) -> (Vec<&str>, Vec<char>) {
    let separators = name.chars().filter(|c| !is_of_word(*c));
    (
        name.split(|c| !is_of_word(c)).collect(),
        separators.collect(),
    )
}

/// How the letters of each part are written. If one part is in camel case, a lower-case part counts as camel case as
/// well, because it may be a single word.
fn cases(parts: &[&str]) -> Vec<Case> {
    let mut cases: Vec<_> = parts.iter().map(|part| Case::of(part)).collect();
    if cases.contains(&Case::Camel) {
        let lower = cases.iter_mut().filter(|case| **case == Case::Lower);
        lower.for_each(|case| *case = Case::Camel);
    }
    cases
}

/// The style at this position. A name may have more parts than its example. The last style applies to the
/// additional parts.
fn nth<T: Copy>(of_example: &[T], place: usize) -> Option<T> {
    of_example.get(place).or(of_example.last()).copied()
}

/// Whether a name, or a group, has the form of an example: its case and its separators. The name may have more
/// dots, or none if it is a single word such as `ping`. Any other separator occurs as often as in the example.
fn is_like(name: &str, example: &str) -> bool {
    let group = name.strip_suffix('*');
    let (found, separators) = parts(group.unwrap_or(name));
    let (expected, expected_separators) = parts(example);
    let cases = cases(&expected);
    let is_one_word = name.chars().all(char::is_alphanumeric);
    let is_as_often = |separator: &char| {
        let times = |among: &[char]| among.iter().filter(|c| *c == separator).count();
        let (found, expected) = (times(&separators), times(&expected_separators));
        match group {
            Some(_) => found <= expected || *separator == '.' && expected > 0,
            None if *separator == '.' && expected > 0 => found >= expected || is_one_word,
            None => found == expected,
        }
    };
    let mut both = separators.iter().chain(&expected_separators);
    let mut joiners = name.chars().filter(|c| is_joiner(*c));
    let mut found = found.iter().enumerate();
    both.all(is_as_often)
        && (group.is_none() || !separators.is_empty())
        && joiners.all(|joiner| example.contains(joiner))
        && found.all(|(place, part)| nth(&cases, place).is_none_or(|case| case.has(part)))
}

/// The words of a part, in lower case.
fn words(part: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in part.chars() {
        if is_joiner(c) || was_lower && c.is_uppercase() {
            words.push(String::new());
        }
        was_lower = c.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| !is_joiner(c)) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The name rewritten in the form of an example.
fn rewrite(name: &str, example: &str) -> Option<String> {
    let (found, separators) = parts(name);
    let (expected, expected_separators) = parts(example);
    let cases = cases(&expected);
    let joiner = example.chars().find(|c| is_joiner(*c));
    let words: Vec<_> = found.iter().map(|part| words(part)).collect();
    if words.iter().any(Vec::is_empty) {
        return None;
    }
    let words = match (separators.is_empty(), expected_separators.is_empty()) {
        (_, true) => vec![words.concat()],
        // Each word of a name such as `ORDERS_CREATE` becomes a part.
        (true, false) if words.concat().len() == expected.len() => {
            words.concat().into_iter().map(|word| vec![word]).collect()
        }
        (true, false) => return None,
        (false, false) => words,
    };
    let mut rewritten = String::new();
    for (place, words) in words.iter().enumerate() {
        if let Some(before) = place.checked_sub(1) {
            rewritten.extend(nth(&expected_separators, before));
        }
        let case = nth(&cases, place)?;
        rewritten.push_str(&case.join(words, joiner)?);
    }
    Some(rewritten)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(examples: &[&str]) -> NameForms {
        NameForms::like(examples.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn a_name_has_the_case_and_the_separators_of_an_example() {
        for (example, alike, others) in [
            (
                "DOCUMENT_COMPLETED",
                &["DOCUMENT_SIGNED", "PING"][..],
                &[
                    "document.completed",
                    "document_completed",
                    "DOCUMENT.SIGNED",
                    "DOCUMENT-SIGNED",
                    "DOCUMENT.*",
                ][..],
            ),
            (
                "invoice.payment_failed",
                &[
                    "invoice.paid",
                    "customer.subscription.created",
                    "invoice.*",
                    "customer.subscription.*",
                    "ping",
                ],
                &[
                    "invoice_paid",
                    "PING",
                    "Invoice.paid",
                    "INVOICE.PAID",
                    "invoice/paid",
                    "invoice-item.paid",
                    "invoice/*",
                ],
            ),
            (
                "orders/create",
                &["products/update", "orders/*"],
                &[
                    "ORDERS_CREATE",
                    "orders_create",
                    "Orders/Create",
                    "orders.create",
                    "orders/create/late",
                    "orders",
                    "orders/create/*",
                    "orders.*",
                ],
            ),
            (
                "message",
                &["reaction"],
                &["message.im", "message.*", "Message", "app_mention"],
            ),
            (
                "updateCard",
                &["createBoard", "vote"],
                &["UpdateCard", "update_card", "update.card"],
            ),
            (
                "SpamComplaint",
                &["Bounce"],
                &["bounce", "spamComplaint", "BOUNCE", "Spam_Complaint"],
            ),
            (
                "Push Hook",
                &["Merge Request Hook", "Push"],
                &["push", "Push hook", "Push_Hook"],
            ),
            (
                "ContentManagement.Entry.publish",
                &[
                    "ContentManagement.Asset.save",
                    "ContentManagement.*",
                    "ContentManagement.Entry.*",
                ],
                &[
                    "contentManagement.Entry.publish",
                    "ContentManagement.Entry.Publish",
                    "ContentManagement.entry.publish",
                    "ContentManagement.Entry",
                ],
            ),
            (
                "paymentMethod.created",
                &[
                    "balancePlatform.accountHolder.created",
                    "recurring.token.alreadyExisting",
                ],
                &["PaymentMethod.created", "payment_method.created"],
            ),
            (
                "v2.core.account[requirements].updated",
                &["v2.core.account[identity].updated", "v2.*"],
                &["v2.core.account.updated"],
            ),
            (
                "store/channel/1/cart/updated",
                &["store/channel/27/cart/updated"],
                &["store/cart/updated"],
            ),
        ] {
            let forms = forms(&[example]);
            for name in alike {
                assert!(forms.allow(name), "{name} is like {example}");
            }
            for name in others {
                assert!(!forms.allow(name), "{name} is not like {example}");
            }
            assert!(forms.allow(example));
        }
    }

    #[test]
    fn where_nothing_is_known_each_name_is_possible() {
        for name in ["a.b", "A_B", "a/*", "été: x"] {
            assert!(NameForms::default().allow(name), "{name}");
        }
    }

    #[test]
    fn an_exception_is_the_only_one_of_its_form() {
        let forms = forms(&["orders/create"]).and(&["customer.tags_added", "dispatch.*"]);
        for (name, is_allowed) in [
            ("dispatch.On demand", true),
            ("dispatch.*", true),
            ("dispatch", false),
            ("customer.tags_added", true),
            ("customer.*", true),
            ("customer.tags_removed", false),
            ("orders.*", false),
        ] {
            assert_eq!(forms.allow(name), is_allowed, "{name}");
        }
    }

    #[test]
    fn a_name_is_put_into_the_form_of_the_provider() {
        for (examples, name, rewritten) in [
            (
                &["DOCUMENT_COMPLETED"][..],
                "document.completed",
                Some("DOCUMENT_COMPLETED"),
            ),
            (
                &["DOCUMENT_COMPLETED"],
                "documentSigned",
                Some("DOCUMENT_SIGNED"),
            ),
            (&["DOCUMENT_COMPLETED"], "document.*", None),
            (&["orders/create"], "ORDERS_CREATE", Some("orders/create")),
            (&["orders/create"], "orders_create", Some("orders/create")),
            (&["orders/create"], "Orders/Create", Some("orders/create")),
            (&["orders/create"], "orders.create", Some("orders/create")),
            (&["orders/create"], "orders.*", Some("orders/*")),
            (&["draft_orders/create"], "DRAFT_ORDERS_CREATE", None),
            (
                &["draft_orders/create"],
                "draftOrders.create",
                Some("draft_orders/create"),
            ),
            (&["message", "app_mention"], "message.im", Some("message")),
            (
                &["message", "app_mention"],
                "app.mention",
                Some("app_mention"),
            ),
            (
                &["invoice.payment_failed"],
                "INVOICE.PAYMENT_FAILED",
                Some("invoice.payment_failed"),
            ),
            (&["invoice.payment_failed"], "PAYMENT_INTENT_FAILED", None),
            (&["updateCard"], "update.card", Some("updateCard")),
            (&["SpamComplaint"], "spam_complaint", Some("SpamComplaint")),
            (
                &["IssueLabel", "Issue.create"],
                "issue.create",
                Some("Issue.create"),
            ),
            (&["Push Hook"], "push_hook", None),
            (&["FILE.UPLOADED"], "file.uploaded", Some("FILE.UPLOADED")),
            (&["delivered"], "email.delivered", None),
        ] {
            let found = forms(examples).rewrite(name);
            assert_eq!(found.as_deref(), rewritten, "{name} as in {examples:?}");
        }
    }
}
