use http::StatusCode;

use self::scheme::Mandrill;
use crate::provider::signature::form::{fields, only_field};
use crate::provider::{
    DAY, Handshake, HandshakeRequest, MIB, Provider, Secret, SecretSource, Source,
};

mod scheme;

/// [Mandrill](https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/), now
/// Mailchimp Transactional. Requires the feature `sha1`.
///
/// - Signature: `X-Mandrill-Signature: <base64>`, an HMAC-SHA1, under the webhook's key, of the URL
///   and the form fields. The fields are sorted by name, and each name is followed by its value.
///   The signature does not cover where a name ends and its value starts.
/// - Needs [`public_url`](Provider::public_url), including the user and the password if the URL in
///   Mandrill contains them.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: the SHA-256 of the body. The signature covers the fields of the form, but not their encoding, so
///   anyone who has captured a request can replay it under another id. A body is a batch; the `_id` of each event
///   is the id of its message. Event type: none, because each event of a batch has its own type.
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

/// Answers the check of a new webhook, which does not have its own key yet.
fn empty_batch(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let fields = fields(request.body())?;
    let is_empty = only_field(&fields, "mandrill_events") == Some(b"[]");
    let key = Secret::new("test-webhook").ok()?;
    let is_signed = || request.is_signed_with(key) || request.signing_secret().is_some();
    (is_empty && is_signed()).then(|| Handshake::empty("empty batch"))
}
