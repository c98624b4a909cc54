use http::StatusCode;

use self::scheme::Mandrill;
use crate::provider::signature::form::{fields, only_field};
use crate::provider::{
    DAY, Handshake, HandshakeRequest, MIB, Provider, Secret, SecretSource, Source,
};

mod scheme;

/// [Mandrill](https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/),
/// now Mailchimp Transactional. Feature `sha1`.
///
/// - Signature: `X-Mandrill-Signature: <base64>`, an HMAC-SHA1 under the webhook's key of the URL
///   and the fields of the form, sorted by name, each name followed by its value. Where a name ends
///   and its value begins is not covered.
/// - Needs [`public_url`](Provider::public_url), with the user and the password if the URL in
///   Mandrill has them.
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: the SHA-256 of the body. The signature covers the fields of the form, not how they are written, so
///   whoever has captured a request can replay it under another id. A body is a batch, whose events have an `_id` of
///   their message. Event type: none, as the events of a batch have types
///   of their own.
#[doc = include_str!("../facts/mandrill.md")]
pub fn mandrill(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("mandrill")
        .signature(Mandrill, secrets)
        .delivery_id(Source::body_digest())
        .answer_head_requests()
        .unsigned_handshake(empty_batch)
        .body_limit(25 * MIB)
        .redelivery_window(7 * DAY)
        .success_status(StatusCode::OK)
}

/// The check of a new webhook, which has no key of its own yet.
fn empty_batch(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let fields = fields(request.body())?;
    let is_empty = only_field(&fields, "mandrill_events") == Some(b"[]");
    let key = Secret::new("test-webhook").ok()?;
    let is_signed = || request.is_signed_with(key) || request.signing_secret().is_some();
    (is_empty && is_signed()).then(|| Handshake::empty("empty batch"))
}
