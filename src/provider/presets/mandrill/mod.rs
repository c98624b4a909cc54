use std::time::Duration;

use http::StatusCode;

use self::scheme::Mandrill;
use crate::provider::signature::form::{fields, only_field};
use crate::provider::{
    DAY, Handshake, HandshakeRequest, MIB, Provider, Retry, Secret, SecretSource, Source,
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
/// - Delivery id: the SHA-256 of the body, covered by the signature. A body is a batch, whose
///   events have an `_id` of their message. Event type: none, as the events of a batch have types
///   of their own.
/// - Redelivery: with growing intervals, for up to 24 hours (not confirmed), unless the batch is given
///   up by hand; newer events wait behind it. The redelivery window is 7 days.
/// - Retry: the same batch (likely). Events that are batched otherwise run again.
/// - Answer: which statuses are success is not confirmed, so every success gets 200.
/// - Response deadline: Mandrill does not publish one; 10 seconds are assumed.
/// - Handshake: a HEAD, and a POST with an empty batch that is signed with the key `test-webhook`,
///   when the webhook is created. Both have to be answered with 200.
/// - Body limit: 25 MiB, as inbound messages have their attachments in the body.
pub fn mandrill(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("mandrill")
        .signature(Mandrill, secrets)
        .delivery_id(Source::body_digest())
        .answer_head_requests()
        .unsigned_handshake(empty_batch)
        .body_limit(25 * MIB)
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(7 * DAY)
        .success_status(StatusCode::OK)
        .retry(Retry::identical().likely())
}

/// The check of a new webhook, which has no key of its own yet.
fn empty_batch(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let fields = fields(request.body())?;
    let is_empty = only_field(&fields, "mandrill_events") == Some(b"[]");
    let key = Secret::new("test-webhook").ok()?;
    let is_signed = || request.is_signed_with(key) || request.signing_secret().is_some();
    (is_empty && is_signed()).then(|| Handshake::empty("empty batch"))
}
