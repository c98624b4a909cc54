//! Canaries: requests that an operator sends in place of the provider, to show from outside that an endpoint can be
//! reached. They have no effect.

/// The whole body of a canary. The signature covers it, so only somebody with the secret can make a canary, and no
/// header can turn a delivery into one. The body is a JSON string on its own, which no provider sends. Somebody who
/// can make a provider send a body of their choice can only make the layer skip their own delivery.
///
/// The body is always the same. A replay has as little effect as the canary itself.
pub(crate) const BODY: &[u8] = b"\"idempotent-webhook-canary\"";

/// Whether a request is a canary, provided that its signature is valid. If the signature does not cover the body, no
/// request is a canary.
pub(crate) fn is_canary(body: &[u8], signs_body: bool) -> bool {
    signs_body && body == BODY
}
