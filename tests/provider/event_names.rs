//! Event names: which names the events of a preset can have, and that two kinds of events do not share a name.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use idempotent_webhook::presets::{self, Preset};
use idempotent_webhook::provider::Verified;
use idempotent_webhook::subscriptions::ExpectedSubscription;
use idempotent_webhook::{Events, Provider, VerifiedWebhook};

use super::corpora;
use crate::support::{Case, a_secret_of, action_of, cases_of, with_test_keys};

/// Presets whose event names are chosen by the sender or by an administrator.
const CHOSEN_BY_SENDERS: [&str; 8] = [
    "azure-event-grid",
    "cloudevents",
    "hook0",
    "mcp-events",
    "standard-webhooks",
    "supabase-auth",
    "svix",
    "zendesk",
];

/// Presets none of whose events has a dot in its name. At first, the layer had no rule for the names of these presets,
/// and accepted names with dots.
const WITHOUT_DOTS: [&str; 40] = [
    "alchemy",
    "apple-app-store",
    "braintree",
    "brevo",
    "brex",
    "cashfree",
    "checkout",
    "circleci",
    "cloudflare-stream",
    "cloudinary",
    "discord",
    "documenso",
    "docusign",
    "dropbox-sign",
    "dwolla",
    "ebay",
    "elevenlabs",
    "fal",
    "figma",
    "front",
    "kofi",
    "launchdarkly",
    "maxio",
    "meta",
    "monday",
    "netlify",
    "postmark",
    "render",
    "replicate",
    "retell",
    "revenuecat",
    "revolut",
    "shippo",
    "slack",
    "sumsub",
    "typeform",
    "vapi",
    "veriff",
    "vonage",
    "cal",
];

fn provider(preset: &Preset) -> Provider {
    with_test_keys(preset.provider(a_secret_of(preset)))
        .public_url("https://example.com".parse().unwrap())
}

/// The layer's error message for a name that it refuses.
fn refusal(provider: &Provider, name: &str) -> Option<String> {
    let layer = || VerifiedWebhook::new("test", provider.clone()).only([name]);
    let panic = catch_unwind(AssertUnwindSafe(layer)).err()?;
    Some(*panic.downcast::<String>().unwrap())
}

impl Case {
    /// The event type with its action, if the case is authentic and has an event type.
    pub(super) fn event_name(&self, preset: &Preset) -> Option<String> {
        let (head, body) = (self.head().ok()?, self.body().ok()?);
        let provider = self.provider(preset).ok()?;
        let verified = provider.verify(&head, &body, self.now());
        let Ok(Verified::Delivery(delivery)) = verified else {
            return None;
        };
        let event_type = delivery.event_type()?;
        Some(match action_of(&provider, &head, &body) {
            Some(action) if action.starts_with(&format!("{event_type}.")) => action,
            Some(action) => format!("{event_type}.{action}"),
            None => event_type.to_owned(),
        })
    }
}

/// V2: the name includes the action, if the preset has one.
#[test]
fn an_event_has_the_name_that_its_case_expects() {
    let mut asserted = 0;
    for preset in presets::ALL {
        for case in cases_of(preset) {
            if let Some(expected) = &case.expect_event_name {
                let found = case.event_name(preset);
                assert_eq!(
                    found.as_ref(),
                    Some(expected),
                    "{} {}",
                    preset.name(),
                    case.name
                );
                asserted += 1;
            }
        }
    }
    assert!(asserted > 20, "{asserted}");
}

/// The event names in the cases and in foreign payloads.
fn names_of(preset: &Preset) -> BTreeSet<String> {
    let cases = cases_of(preset);
    let of_cases = cases.iter().filter_map(|case| case.event_name(preset));
    let mut names: BTreeSet<_> = of_cases.collect();
    names.extend(corpora::event_names(preset));
    names
}

fn presets_with_types() -> impl Iterator<Item = (&'static Preset, Provider)> {
    let all = presets::ALL.iter().map(|preset| (preset, provider(preset)));
    all.filter(|(_, provider)| provider.description().event_type.is_some())
}

#[test]
fn each_preset_says_what_its_names_are_like_unless_the_sender_chooses_them() {
    let without = presets_with_types()
        .filter(|(_, provider)| provider.description().event_names.is_empty())
        .map(|(preset, _)| preset.name());
    assert_eq!(without.collect::<Vec<_>>(), CHOSEN_BY_SENDERS);
}

#[test]
fn no_name_that_an_event_has_is_refused() {
    for (preset, provider) in presets_with_types() {
        for name in names_of(preset) {
            assert_eq!(refusal(&provider, &name), None, "{}", preset.name());
        }
        for example in provider.description().event_names {
            assert_eq!(refusal(&provider, example), None, "{}", preset.name());
        }
    }
}

/// The forms that an event name may have: the case of its letters, and the separators between its words. A name in
/// camel case may consist of one word, so it also allows names without a capital letter.
fn forms(name: &str) -> Vec<(bool, bool, BTreeSet<char>)> {
    let separators = name.chars().filter(|c| !c.is_alphanumeric());
    let separators: BTreeSet<_> = separators.collect();
    let has_capitals = name.chars().any(char::is_uppercase);
    let mut forms = vec![(
        name.chars().any(char::is_lowercase),
        has_capitals,
        separators.clone(),
    )];
    if has_capitals && name.starts_with(char::is_lowercase) {
        forms.push((true, false, separators));
    }
    forms
}

/// V1: if such a misspelled name were accepted, the events that it is meant for would be ignored from the first deploy
/// on.
#[test]
fn a_name_is_refused_if_no_event_has_its_case_and_its_separator() {
    let mut refused = 0;
    for (preset, provider) in presets_with_types() {
        if CHOSEN_BY_SENDERS.contains(&preset.name()) {
            continue;
        }
        let mut names = names_of(preset);
        names.extend(provider.description().event_names.iter().cloned());
        let mut seen: BTreeSet<_> = names.iter().flat_map(|name| forms(name)).collect();
        if preset.name() == "shopify" {
            // Four of Shopify's topics have names of this form, and no other event has.
            seen.extend(forms("customer.tags_added"));
            assert!(refusal(&provider, "order.tags_created").is_some());
        }
        for name in [
            "order.created",
            "order_created",
            "order-created",
            "order/created",
            "order:created",
            "order#created",
            "ORDER_CREATED",
            "ORDER.CREATED",
            "order created",
            "OrderCreated",
            "orderCreated",
            "Order.created",
        ] {
            let (lower, upper, separators) = forms(name).swap_remove(0);
            let is_possible = seen.iter().any(|(has_lower, has_upper, has)| {
                (*has_lower, *has_upper) == (lower, upper) && has.is_superset(&separators)
            });
            if !is_possible {
                let refusal = refusal(&provider, name);
                let said = refusal.unwrap_or_else(|| panic!("{} takes {name}", preset.name()));
                let example = &provider.description().event_names[0];
                assert!(said.contains(&format!("`{example}`")), "{said}");
                refused += 1;
            }
        }
    }
    assert!(refused > 800, "{refused}");
}

#[test]
fn a_name_with_a_dot_is_refused_where_no_event_has_one() {
    for name in WITHOUT_DOTS {
        let provider = provider(presets::by_name(name).unwrap());
        for dotted in ["a.b", "a.*", "A.B"] {
            let said = refusal(&provider, dotted);
            let said = said.unwrap_or_else(|| panic!("{name} takes {dotted}"));
            assert!(said.contains("is not the name of an event"), "{said}");
        }
    }
}

#[test]
fn the_form_that_is_right_is_named() {
    for (preset, name, expected) in [
        (
            "documenso",
            "document.completed",
            "\"document.completed\" is not the name of an event: the names of documenso are like `DOCUMENT_COMPLETED`. Is \
             `DOCUMENT_COMPLETED` meant?",
        ),
        (
            "slack",
            "message.im",
            "\"message.im\" is not the name of an event: the names of slack are like `message`, `app_mention`. Is `message` \
             meant?",
        ),
        ("shopify", "ORDERS_CREATE", "Is `orders/create` meant?"),
        ("shopify", "orders_create", "Is `orders/create` meant?"),
        ("shopify", "Orders/Create", "Is `orders/create` meant?"),
        ("shopify", "orders.create", "Is `orders/create` meant?"),
        ("shopify", "orders.*", "Is `orders/*` meant?"),
        ("shopify", "orders/create/late", "`customer.tags_added`"),
        ("cal", "booking.created", "Is `BOOKING_CREATED` meant?"),
        ("trello", "update_card", "Is `updateCard` meant?"),
        ("linear", "issue.create", "Is `Issue.create` meant?"),
        ("box", "file.uploaded", "Is `FILE.UPLOADED` meant?"),
        ("figma", "file.update", "Is `FILE_UPDATE` meant?"),
    ] {
        let provider = provider(presets::by_name(preset).unwrap());
        let said = refusal(&provider, name).unwrap_or_else(|| panic!("{preset} takes {name}"));
        assert!(said.contains(expected), "{said}");
    }
}

/// T1: each function that takes event names checks them in the same way, and so does `webhook doctor`.
#[test]
fn each_list_of_names_is_checked_alike() {
    let shopify = provider(presets::by_name("shopify").unwrap());
    let layer = || VerifiedWebhook::new("test", shopify.clone());
    async fn handler() {}
    for (name, is_right) in [
        ("orders/create", true),
        ("orders/*", true),
        ("app_subscriptions/approaching_capped_amount", true),
        ("customer.tags_added", true),
        ("customer.tags_removed", true),
        ("customer.joined_segment", true),
        ("customer.left_segment", true),
        ("customer.*", true),
        ("customer.created", false),
        ("ORDERS_CREATE", false),
        ("orders_create", false),
        ("Orders/Create", false),
        ("orders", false),
        ("orders/create/late", false),
    ] {
        let accepts = |make: &dyn Fn()| catch_unwind(AssertUnwindSafe(make)).is_ok();
        let events = Events::<()>::new;
        assert_eq!(accepts(&|| drop(layer().only([name]))), is_right, "{name}");
        let on = || drop(events().on(name, handler).ignore_others().layer(layer()));
        assert_eq!(accepts(&on), is_right, "on {name}");
        let ignore = || {
            let events = events().on("app/uninstalled", handler).ignore([name]);
            drop(events.otherwise(handler).layer(layer()));
        };
        assert_eq!(accepts(&ignore), is_right, "ignore {name}");
        let expected = ExpectedSubscription::new(&shopify, "https://example.com/shopify").unwrap();
        let expected = expected.event_types([name]);
        assert_eq!(expected.is_ok(), is_right, "subscription {name}");
    }
}

/// The last words of member and header names that may say what kind of event it is.
const KINDS: [&str; 14] = [
    "action",
    "category",
    "entity",
    "event",
    "kind",
    "metric",
    "object",
    "operation",
    "resource",
    "topic",
    "trigger",
    "type",
    "verb",
    "subtype",
];

/// Members and headers that may differ between events of the same name, although these events are of the same kind.
const NOT_KINDS: [(&str, &str); 2] = [
    // This header says whether the request is an event, or asks whether events are expected.
    ("azure-event-grid", "aeg-event-type"),
    // The event type is read from a header, which is signed separately from the body.
    ("coinbase", "$.eventType"),
];

/// The members and the headers of a case that may say what kind of event it is.
fn kinds(case: &Case) -> BTreeMap<String, String> {
    fn walk(
        value: &serde_json::Value,
        path: &str,
        depth: u8,
        kinds: &mut BTreeMap<String, String>,
    ) {
        let members = value.as_object().filter(|_| depth > 0);
        for (name, value) in members.into_iter().flatten() {
            let path = format!("{path}.{name}");
            if let Some(text) = value.as_str().filter(|_| is_kind(name)) {
                kinds.insert(path.clone(), text.to_owned());
            }
            walk(value, &path, depth - 1, kinds);
        }
    }
    fn is_kind(name: &str) -> bool {
        let name = name.to_lowercase();
        name != "content-type" && KINDS.iter().any(|kind| name.ends_with(kind))
    }
    let mut kinds = BTreeMap::new();
    if let Ok(value) = serde_json::from_slice(&case.body().unwrap()) {
        walk(&value, "$", 3, &mut kinds);
    }
    for (name, value) in &case.headers {
        if is_kind(name) {
            kinds.insert(name.to_lowercase(), value.clone());
        }
    }
    kinds
}

/// If two kinds of events had the same name, a handler would get events that it is not for, and a reported event type
/// would be ambiguous.
#[test]
fn two_kinds_of_events_of_a_preset_do_not_have_one_name() {
    let mut found = Vec::new();
    for preset in presets::ALL {
        let mut of_names = BTreeMap::<_, BTreeMap<String, BTreeSet<String>>>::new();
        for case in cases_of(preset) {
            if let Some(name) = case.event_name(preset) {
                let of_name = of_names.entry(name).or_default();
                for (place, kind) in kinds(&case) {
                    of_name.entry(place).or_default().insert(kind);
                }
            }
        }
        for (name, places) in of_names {
            for (place, kinds) in places {
                if kinds.len() > 1 && !NOT_KINDS.contains(&(preset.name(), &place)) {
                    found.push(format!("{} {name}: {place} is {kinds:?}", preset.name()));
                }
            }
        }
    }
    assert_eq!(found, Vec::<String>::new());
}
