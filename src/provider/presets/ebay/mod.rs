use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;

use self::scheme::{Ebay, verification_token};
use crate::provider::signature::keyed::sha256;
use crate::provider::{
    DAY, Handshake, HandshakeRequest, JsonPath, Provider, Retry, SecretSource, Source,
};

mod scheme;

/// [eBay](https://developer.ebay.com/marketplace-account-deletion): the Notification API and
/// marketplace account deletions. Features `p256` and `sha1`.
///
/// - Signature: `X-EBAY-SIGNATURE`, base64 of JSON with an ECDSA signature of the body with P-256 and SHA-1,
///   in DER. The secret is the verification token of the endpoint, with `sandbox:` before it for the sandbox.
///   It signs nothing: it is for the handshake.
/// - Keys: at `https://api.ebay.com/commerce/notification/v1/public_key/<id>`, by the id in the header, which
///   has to be a UUID, fetched by [`Provider::keys`](Provider::keys). **eBay asks for an application token,
///   which the client has to add**, as below.
/// - Needs [`public_url`](Provider::public_url) for the handshake.
/// - Tolerance: any age, as no time is signed but in the body.
/// - Delivery id: `$.notification.notificationId`, covered by the signature. Event type: `$.metadata.topic`.
/// - Handshake: a GET with `challenge_code`, which anyone can send, is answered with
///   `{"challengeResponse": "<hex>"}`, a SHA-256 of the code, the verification token and the URL without its
///   query. So let the token be random: whoever has an answer can try any number of guesses.
/// - Redelivery: until it is acknowledged; eBay marks an endpoint as down after 24 hours, and gives 30 days
///   to mend it (not confirmed). The redelivery window is 30 days.
/// - Retry: the same id; `$.notification.publishAttemptCount` and `$.notification.publishDate` are in the
///   body, so it is likely signed anew.
/// - Answer: 200, 201, 202 and 204 are success (not confirmed), so every success gets 200.
/// - Response deadline: 3 seconds, which is that of eBay's older notifications.
/// - Body limit: 2 MiB; eBay publishes none.
///
/// This [`KeySource`](crate::provider::keys::KeySource) adds the application token to every request that it
/// makes, so let no other preset have it:
///
/// ```
/// use bytes::Bytes;
/// use http::header::AUTHORIZATION;
/// use http::{Request, Response};
/// use idempotent_webhook::provider::keys::KeySource;
/// use idempotent_webhook::{Secret, presets};
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
/// let ebay = presets::ebay(Secret::new("71745723-d031-455c-bfa5-f90d11b4f20a")?)
///     .keys(keys)
///     .public_url("https://hooks.example.com".parse()?);
/// # Ok(())
/// # }
/// ```
pub fn ebay(secrets: impl Into<SecretSource>) -> Provider {
    let member = |object, name| Source::json(JsonPath::member(object).then(name));
    Provider::custom("ebay")
        .signature(Ebay, secrets)
        .delivery_id(member("notification", "notificationId"))
        .event_type(member("metadata", "topic"))
        .unsigned_handshake(challenge)
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(3))
        .redelivery_window(30 * DAY)
        .retry(
            Retry::signed_anew()
                .likely()
                .changes("`$.notification.publishAttemptCount`"),
        )
}

/// It wants a hash of its code, the verification token and the endpoint.
fn challenge(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let code = request.query_value("challenge_code")?;
    if request.method() != Method::GET {
        return None;
    }
    let token = verification_token(request.secrets()?.iter().next()?);
    let url = request.url()?;
    let endpoint = url.split_once('?').map_or(&*url, |(endpoint, _)| endpoint);
    let hash = sha256([code.as_bytes(), token, endpoint.as_bytes()]);
    let answer = json!({"challengeResponse": hex::encode(hash)});
    Some(Handshake::json("challenge_code", &answer))
}
