//! Canaries: requests of an operator, and not of the provider, which show from outside that an endpoint is reached. They do
//! nothing.

/// The whole body of a canary. It is under the signature, so only who has the secret can make one; no header makes a delivery
/// one. A text of JSON: no provider sends one alone, and whoever can have a provider send a body of their own choice has a
/// delivery of their own passed over, which they need not have sent.
///
/// It is always the same: a replay does as little as the canary itself.
pub(crate) const BODY: &[u8] = b"\"idempotent-webhook-canary\"";

/// Whether a request is a canary, if its signature is valid. One that does not cover the body says nothing of it.
pub(crate) fn is_canary(body: &[u8], signs_body: bool) -> bool {
    signs_body && body == BODY
}
