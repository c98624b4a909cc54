use http::{HeaderName, Method};

use crate::provider::signature::{Encoding, Hmac};
use crate::provider::{
    Handshake, HandshakeRequest, JsonPath, Provider, Secret, SecretSource, Source,
};

/// [Notion](https://developers.notion.com/reference/webhooks).
///
/// - Signature: `X-Notion-Signature: sha256=<hex>`, an HMAC-SHA256 of the body under the
///   verification token. The hex digits may be upper-case, as in Notion's SDK.
/// - Delivery id: `$.id`, covered by the signature. The digest of the body would be wrong, because
///   the body contains `$.attempt_number`. Event type: `$.type`.
#[doc = include_str!("facts/notion.md")]
pub fn notion(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-notion-signature"))
        .encoding(Encoding::HexOfAnyCase)
        .prefix("sha256=");
    Provider::custom("notion")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("type")))
        .event_names_like(["page.content_updated"])
        .payload_version(Source::json(JsonPath::member("api_version")))
        .unsigned_handshake(exchange)
}

/// The token is signed with itself: this only proves that the sender knows the token that it sent.
fn exchange(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    if request.method() != Method::POST || request.body().len() > 1024 {
        return None;
    }
    let token = request.json(&JsonPath::member("verification_token"))?;
    let token = Secret::new(token).ok()?;
    let handshake = Handshake::empty("verification_token").with_secret(token.clone());
    request.is_signed_with(token).then_some(handshake)
}
