use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;

use self::scheme::Ebay;
use crate::provider::signature::digests::sha256;
use crate::provider::{DAY, Handshake, HandshakeRequest, JsonPath, Provider, SecretSource, Source};

mod endpoint;
mod scheme;

pub use endpoint::EbayEndpoint;

/// [eBay](https://developer.ebay.com/marketplace-account-deletion): the Notification API and
/// marketplace account deletions. Requires the features `p256` and `sha1`.
///
/// - Signature: `X-EBAY-SIGNATURE`, base64 of JSON that contains an ECDSA signature of the body with P-256 and
///   SHA-1, in DER. The verification token of the [endpoint](EbayEndpoint) signs nothing: it is only for the
///   handshake.
/// - Keys: at `https://api.ebay.com/commerce/notification/v1/public_key/<id>`, by the id in the header, which must
///   be a UUID. [`Provider::keys`](Provider::keys) fetches them. **eBay requires an application token, which the
///   client must add**, as shown below.
/// - Needs [`public_url`](Provider::public_url) for the handshake.
/// - Tolerance: any age, because the only signed time is in the body.
/// - Delivery id: `$.notification.notificationId`, covered by the signature. Event type: `$.metadata.topic`.
#[doc = include_str!("../facts/ebay.md")]
///
/// This [`KeySource`](crate::provider::keys::KeySource) adds the application token to every request that it makes,
/// so do not use it for any other preset:
///
/// ```
/// use bytes::Bytes;
/// use http::header::AUTHORIZATION;
/// use http::{Request, Response};
/// use idempotent_webhook::Secret;
/// use idempotent_webhook::presets::{self, EbayEndpoint};
/// use idempotent_webhook::provider::keys::KeySource;
///
/// # async fn application_token() -> std::io::Result<String> {
/// #     Ok(String::new())
/// # }
/// # async fn send(_: Request<Bytes>) -> std::io::Result<Response<Bytes>> {
/// #     Ok(Response::new(Bytes::new()))
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let keys = KeySource::fetched(|mut request: Request<Bytes>| async move {
///     // By the client credentials grant, and kept for the two hours that it is valid.
///     let token = application_token().await?;
///     let headers = request.headers_mut();
///     headers.insert(AUTHORIZATION, format!("bearer {token}").parse()?);
///     let response: Response<Bytes> = send(request).await?;
///     Ok(response)
/// });
/// let token = Secret::new("71745723-d031-455c-bfa5-f90d11b4f20a")?;
/// let endpoint = EbayEndpoint::new(token)?;
/// let ebay = presets::ebay(endpoint)
///     .keys(keys)
///     .public_url("https://hooks.example.com".parse()?);
/// # Ok(())
/// # }
/// ```
pub fn ebay(endpoints: impl Into<SecretSource<EbayEndpoint>>) -> Provider {
    let member = |object, name| Source::json(JsonPath::member(object).then(name));
    Provider::custom("ebay")
        .signature(Ebay, endpoints.into().cast())
        .delivery_id(member("notification", "notificationId"))
        .event_type(member("metadata", "topic"))
        .event_names_like(["MARKETPLACE_ACCOUNT_DELETION"])
        .payload_version(member("metadata", "schemaVersion"))
        .unsigned_handshake(challenge)
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(3))
        .redelivery_window(30 * DAY)
}

/// Answers the challenge with a hash of eBay's code, the verification token and the endpoint.
fn challenge(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let code = request.query_value("challenge_code")?;
    if request.method() != Method::GET {
        return None;
    }
    let endpoint: EbayEndpoint = request.secrets()?.iter().next()?.parse().ok()?;
    let url = request.url()?;
    let url = url.split_once('?').map_or(&*url, |(url, _)| url);
    let token = endpoint.verification_token.expose();
    let hash = sha256([code.as_bytes(), token, url.as_bytes()]);
    let answer = json!({"challengeResponse": hex::encode(hash)});
    Some(Handshake::json("challenge_code", &answer))
}
