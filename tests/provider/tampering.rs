//! Changes the signed bytes of an authentic request, one at a time. None of the resulting requests may be authentic.

use std::time::SystemTime;

use http::HeaderValue;
use http::request::Parts;
use idempotent_webhook::Provider;
use idempotent_webhook::presets::{self, Preset};
use idempotent_webhook::provider::signature::Tolerance;
use idempotent_webhook::provider::{Verified, VerifyError};

use crate::support::{Case, cases_of};

/// An authentic delivery of a preset.
struct Delivery {
    provider: Provider,
    head: Parts,
    body: Vec<u8>,
    now: SystemTime,
}

impl Delivery {
    /// The first case of the preset that is an authentic delivery.
    fn of(preset: &Preset) -> Self {
        let cases = cases_of(preset);
        let accepted = cases.iter().filter(|case| case.is_to_be_accepted());
        accepted
            .map(|case| Self::of_case(preset, case))
            .find(|delivery| delivery.is_accepted(&delivery.head, &delivery.body))
            .unwrap_or_else(|| panic!("{}", preset.name()))
    }

    fn of_case(preset: &Preset, case: &Case) -> Self {
        // A changed time should be refused for its signature, not for its age.
        let provider = case
            .provider(preset)
            .unwrap()
            .tolerance(Tolerance::unlimited());
        Self {
            provider,
            head: case.head().unwrap(),
            body: case.body().unwrap(),
            now: case.now(),
        }
    }

    /// Whether the request is authentic, with or without a delivery id.
    fn is_authentic(&self, head: &Parts, body: &[u8]) -> bool {
        let verified = self.provider.verify(head, body, self.now);
        !matches!(verified, Err(VerifyError::Signature(_)))
    }

    fn is_accepted(&self, head: &Parts, body: &[u8]) -> bool {
        let verified = self.provider.verify(head, body, self.now);
        matches!(verified, Ok(Verified::Delivery(_)))
    }
}

/// Presets whose bodies are forms. A form can be written in several ways, so several bodies mean the same.
const FORMS: [&str; 3] = ["mandrill", "twilio", "braintree"];

#[test]
fn no_byte_of_a_signed_body_can_be_changed() {
    for preset in presets::ALL {
        let delivery = Delivery::of(preset);
        if !delivery.provider.signs_body() || FORMS.contains(&preset.name()) {
            continue;
        }
        for at in positions(delivery.body.len()) {
            let body = changed(&delivery.body, at);
            assert!(
                !delivery.is_authentic(&delivery.head, &body),
                "{}: byte {at} of the body",
                preset.name()
            );
        }
        for longer in [b" ".as_slice(), b"\n", b"\0", b"{}"] {
            let body = [&delivery.body, longer].concat();
            assert!(
                !delivery.is_authentic(&delivery.head, &body),
                "{}",
                preset.name()
            );
        }
        let shorter = delivery.body.get(1..).unwrap_or_default();
        assert!(
            !delivery.is_authentic(&delivery.head, shorter),
            "{}",
            preset.name()
        );
    }
}

/// Headers that must be present but are not signed. They name the key, and the test gives the key itself.
const UNSIGNED: [&str; 2] = ["paypal-cert-url", "x-ebay-signature"];

/// A header matters if the request is not authentic without the header. A request in which a byte of such a header was
/// changed is not authentic.
#[test]
fn no_byte_of_a_header_that_matters_can_be_changed() {
    for preset in presets::ALL {
        let delivery = Delivery::of(preset);
        let names = delivery.head.headers.keys().cloned();
        for name in names.collect::<Vec<_>>() {
            let value = delivery.head.headers.get(&name).unwrap().clone();
            let mut head = delivery.head.clone();
            head.headers.remove(&name);
            if UNSIGNED.contains(&name.as_str()) || delivery.is_authentic(&head, &delivery.body) {
                continue;
            }
            for at in positions(value.len()) {
                let bytes = changed(value.as_bytes(), at);
                // Some providers accept hexadecimal digits in either case.
                let is_same = bytes.eq_ignore_ascii_case(value.as_bytes());
                let Ok(changed) = HeaderValue::from_bytes(&bytes) else {
                    continue;
                };
                head.headers.insert(name.clone(), changed);
                assert!(
                    is_same || !delivery.is_authentic(&head, &delivery.body),
                    "{}: byte {at} of {name}: {}",
                    preset.name(),
                    String::from_utf8_lossy(&bytes)
                );
            }
        }
    }
}

/// All positions of a short text, and every seventh position of a long text, because public keys are slow.
fn positions(len: usize) -> impl Iterator<Item = usize> {
    (0..len).step_by(if len > 150 { 7 } else { 1 })
}

/// The bytes with one bit of one byte changed.
fn changed(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    if let Some(byte) = changed.get_mut(at) {
        *byte ^= 1 << (at % 7);
    }
    changed
}

/// A form can be written in several ways that have the same signature. These bodies have different digests, so the
/// signature does not cover a delivery id that is the digest of the body.
#[test]
fn p2_an_id_is_not_covered_if_the_form_can_be_written_in_another_way() {
    let mandrill = presets::by_name("mandrill").unwrap();
    let delivery = Delivery::of(mandrill);
    let id_of = |body: &[u8]| {
        let verified = delivery.provider.verify(&delivery.head, body, delivery.now);
        verified.unwrap().delivery().unwrap().id().clone()
    };
    let mut other = delivery.body.clone();
    other.extend_from_slice(b"&");
    assert_ne!(id_of(&delivery.body), id_of(&other));
    assert!(delivery.provider.signs_body());
    assert!(!delivery.provider.signs_delivery_id());
}
