//! A preset never accepts a forged request as a delivery. If the test kit has signed a request, and one place of it is
//! then changed, the preset accepts what was signed, or nothing. The layer calls its handler exactly for the requests
//! that the preset accepts.
//!
//! Input: the index of the preset in the list, whether the kit signs, five bytes for the change, and the request.

#![no_main]

use std::time::SystemTime;

use bytes::Bytes;
use fuzz::{Change, Sender, is_handled, is_usable, now, read_request, senders};
use http::Request;
use http::request::Parts;
use idempotent_webhook::provider::signature::SignatureError;
use idempotent_webhook::provider::{Verified, VerifiedDelivery, VerifyError};
use idempotent_webhook::{Provider, testing};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: { senders(); }, |data: &[u8]| {
    let Some(([preset, signed, change @ ..], text)) = data.split_first_chunk::<7>() else {
        return;
    };
    let senders = senders();
    let sender = &senders[usize::from(*preset) % senders.len()];
    let (head, body) = read_request(text);
    if signed % 2 == 0 {
        forged(sender, &head, &body);
    } else {
        changed(sender, head, body, Change::of(*change));
    }
});

fn forged(sender: &Sender, head: &Parts, body: &[u8]) {
    // A handshake need not be signed.
    if let Some(delivery) = delivery(&sender.other, head, body, now()) {
        panic!("{}: forged: {delivery:?}", sender.other.name());
    }
}

fn changed(sender: &Sender, head: Parts, body: Bytes, change: Change) {
    let provider = &sender.provider;
    let name = provider.name();
    let request = Request::from_parts(head, body);
    let Ok(signed) = testing::sign(provider, &sender.secret, request, now()) else {
        return;
    };
    let (mut head, body) = signed.into_parts();
    let before = match provider.verify(&head, &body, now()) {
        Ok(Verified::Delivery(delivery)) => delivery,
        Err(VerifyError::Signature(SignatureError::NoMatch)) if provider.signs_body() => {
            panic!("{name}: the kit signs otherwise")
        }
        // A handshake, or a request with content that no signature can make right: another SNS topic, or a wrong token
        // in the URL.
        Ok(_) | Err(_) => return,
    };
    assert!(is_usable(before.id().as_str()), "{name}: {before:?}");
    let content = signed_content(provider, &head, &body);
    let mut other = body.to_vec();
    let path = head.uri.clone();
    change.make(&mut head, &mut other);
    check_layer(sender, &head, &other);
    let Some(after) = delivery(provider, &head, &other, now()) else {
        return;
    };
    assert!(is_usable(after.id().as_str()), "{name}: {after:?}");
    if provider.signs_body() {
        assert!(body == other || is_form(name), "{name}: another body");
        // Twilio signs one of several forms of the URL.
        let is_form_of_url = name == "twilio" && path != head.uri;
        let after = signed_content(provider, &head, &other);
        assert!(
            content == after || is_form_of_url,
            "{name}: another content"
        );
    }
    // The id of an Adyen report contains a time that is not signed. The documentation says so.
    let is_report = name == "adyen" && before.id().as_str().starts_with("REPORT_AVAILABLE:");
    if provider.signs_delivery_id() && !is_report {
        assert_eq!(before.id(), after.id(), "{name}: another delivery id");
    }
    if provider.signs_time() {
        assert_eq!(
            before.signed_at(),
            after.signed_at(),
            "{name}: another time"
        );
    }
}

/// For these presets, several bodies mean the same, because a form can be written in several ways.
fn is_form(name: &str) -> bool {
    ["braintree", "mandrill", "twilio"].contains(&name)
}

/// The layer checks the head before it reads the body. It must not refuse what `verify` accepts.
fn check_layer(sender: &Sender, head: &Parts, body: &[u8]) {
    let provider = &sender.provider;
    let is_delivery = delivery(provider, head, body, SystemTime::now()).is_some();
    let is_method = provider.description().methods.contains(&head.method);
    let request = Request::from_parts(head.clone(), Bytes::copy_from_slice(body));
    let is_handled = is_handled(&sender.layer, request);
    assert_eq!(
        is_handled,
        is_delivery && is_method,
        "{}: the layer",
        provider.name()
    );
}

fn delivery(
    provider: &Provider,
    head: &Parts,
    body: &[u8],
    now: SystemTime,
) -> Option<VerifiedDelivery> {
    let verified = provider.verify(head, body, now);
    verified.ok()?.delivery().cloned()
}

fn signed_content(
    provider: &Provider,
    head: &Parts,
    body: &[u8],
) -> Result<Option<Vec<u8>>, SignatureError> {
    provider.signed_content(head, body)
}
