use std::time::Duration;

use http::Method;

use self::scheme::Graph;
use crate::provider::{DAY, Handshake, HandshakeRequest, Provider, SecretSource, Source};

mod scheme;

/// Change notifications of [Microsoft
/// Graph](https://learn.microsoft.com/graph/change-notifications-delivery-webhooks).
///
/// **Nothing is signed: anyone who learns the client state can send any notification.** Read from a notification
/// only which resource has changed, and ask Graph for the resource.
///
/// - Signature: none. Each element of `$.value` carries the subscription's `clientState` verbatim. If one element
///   has another `clientState` or none, the whole request is refused. The `validationTokens` of notifications with
///   resource data are ignored, because they cover nothing in the body.
/// - Delivery id: none, and **nothing is deduplicated** ([`Source::receipt`]). Notifications of different changes
///   can be identical to the byte: OneDrive notifications, which only name the drive, and the life-cycle event
///   `missed`. Each request is its own delivery, so let the handler ask Graph for the changes since its last delta
///   query. Event type: none, because each element has its own `changeType` or `lifecycleEvent`.
#[doc = include_str!("../facts/microsoft-graph.md")]
pub fn microsoft_graph(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("microsoft-graph")
        .signature(Graph, secrets)
        .delivery_id(Source::receipt())
        .unsigned_handshake(validation)
        .response_deadline(Duration::from_secs(3))
        .redelivery_window(DAY)
}

/// Answers the validation, in which Graph expects its token back.
fn validation(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let token = request.query_value("validationToken")?;
    let is_asked = request.method() == Method::POST && request.body().trim_ascii().is_empty();
    is_asked.then(|| Handshake::text("validationToken", token))
}
