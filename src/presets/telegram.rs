use http::HeaderName;

use crate::provider::signature::Token;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Telegram](https://core.telegram.org/bots/api#setwebhook) bots.
///
/// **Nothing is signed: anyone who learns the token can send any update.**
///
/// - Signature: none. `X-Telegram-Bot-Api-Secret-Token` carries the `secret_token` that was passed
///   to `setWebhook`, verbatim.
/// - Delivery id: `$.update_id`, an integer. It is not covered, because nothing is signed. Event
///   type: none; the name of the member next to `update_id` shows it.
/// - **Each bot counts its own updates, so updates of two bots on one endpoint can have the same id, and one of
///   them would be lost.** Give each bot its own endpoint, or use [`TenantSecrets`](crate::TenantSecrets) with
///   [`separate_ids`](crate::TenantSecrets::separate_ids).
#[doc = include_str!("facts/telegram.md")]
pub fn telegram(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Token::header(HeaderName::from_static("x-telegram-bot-api-secret-token"));
    Provider::custom("telegram")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("update_id")))
        .redelivery_window(2 * DAY)
}
