use std::time::Duration;

use super::standard_webhooks::{ID, standard};
use crate::provider::signature::StandardWebhooks;
use crate::provider::{HOUR, Provider, Retry, SecretSource, Source};

/// [Supabase](https://supabase.com/docs/guides/auth/auth-hooks), the auth hooks over HTTP, which follow
/// Standard Webhooks.
///
/// **A hook is a question, and the handler's answer counts.** `webhook-id` is new on every retry, so
/// no request is a duplicate of another, and each one reaches the handler. Do not make it the
/// endpoint of events, have the handler answer within the deadline, and never accept the request
/// before the handler has run: a 200 without JSON fails what the user does.
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`]. Several signatures are separated by a
///   comma and a space. The secret is `v1,whsec_<base64>`, or several of them joined by `|`.
/// - Tolerance: 300 seconds, on both sides, of `webhook-timestamp`.
/// - Delivery id: `webhook-id`, covered by the signature, and **another one on every retry**. Event
///   type: none; the path tells the hooks apart.
/// - Redelivery: up to 3 attempts within the deadline, when the connection fails or the answer is 429
///   or 503 with `Retry-After`; the redelivery window is 24 hours.
/// - Retry: signed at a new time with **a new id**, as in the source of Supabase Auth, so that the
///   handler runs again.
/// - Response deadline: 5 seconds, for all attempts together.
/// - Answer: 200 or 202 with `Content-Type: application/json` and up to 200 KiB, or 204. Anything
///   else fails what the user does.
/// - Body limit: 2 MiB; Supabase publishes none.
pub fn supabase_auth(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = StandardWebhooks::supabase();
    standard("supabase-auth", scheme, secrets, Source::header(ID))
        .response_deadline(Duration::from_secs(5))
        .redelivery_window(24 * HOUR)
        .retry(Retry::signed_anew().new_id())
}
