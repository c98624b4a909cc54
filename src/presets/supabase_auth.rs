use std::time::Duration;

use http::StatusCode;

use super::standard_webhooks::{ID, standard};
use crate::provider::signature::StandardWebhooks;
use crate::provider::{HOUR, Provider, SecretSource, Source};

/// [Supabase](https://supabase.com/docs/guides/auth/auth-hooks): auth hooks over HTTP, which follow Standard
/// Webhooks.
///
/// **A hook is a question, and Supabase uses the handler's answer.** `webhook-id` is new on every
/// retry, so no request is a duplicate of another, and each one reaches the handler. Do not use
/// this endpoint for events as well, let the handler answer within the deadline, and never accept
/// the request before the handler has run: a 200 without JSON makes the user's action fail.
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`]. Several signatures are separated by a
///   comma and a space. The secret is `v1,whsec_<base64>`, or several of them joined by `|`.
/// - Tolerance: 300 seconds on both sides of `webhook-timestamp`.
/// - Delivery id: `webhook-id`, covered by the signature, and **new on every retry**. Event type:
///   none; the path distinguishes the hooks.
#[doc = include_str!("facts/supabase-auth.md")]
pub fn supabase_auth(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = StandardWebhooks::supabase();
    standard("supabase-auth", scheme, secrets, Source::header(ID))
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(5))
        .redelivery_window(24 * HOUR)
}
