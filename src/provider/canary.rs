//! Canaries: requests of an operator, and not of the provider, which show from outside that an endpoint is reached. They do
//! nothing.

/// The whole body of a canary. The signature covers it, so only somebody with the secret can make one; no header makes
/// a delivery a canary. It is a JSON text, and no provider sends a text alone. Whoever can make a provider send a body
/// of their choice only makes the layer skip their own delivery.
///
/// It is always the same: a replay does as little as the canary itself.
pub(crate) const BODY: &[u8] = b"\"idempotent-webhook-canary\"";

/// Whether a request is a canary, if its signature is valid. A signature that does not cover the body does not count.
pub(crate) fn is_canary(body: &[u8], signs_body: bool) -> bool {
    signs_body && body == BODY
}
