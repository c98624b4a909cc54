use http::HeaderName;

use crate::provider::signature::Token;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Telegram](https://core.telegram.org/bots/api#setwebhook) bots.
///
/// **Nothing is signed: whoever learns the token can send any update.**
///
/// - Signature: none. `X-Telegram-Bot-Api-Secret-Token` has the `secret_token` that was given to
///   `setWebhook`, as it is.
/// - Delivery id: `$.update_id`, an integer. It is not covered, as nothing is. Event type: none;
///   it is the name of the member beside the id.
/// - **Each bot counts its own updates, so updates of two bots on one endpoint can have the same id, and one of them
///   would be lost.** Give each bot an endpoint of its own, or use
///   [`TenantSecrets`](crate::TenantSecrets) with
///   [`separate_ids`](crate::TenantSecrets::separate_ids).
#[doc = include_str!("facts/telegram.md")]
pub fn telegram(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Token::header(HeaderName::from_static("x-telegram-bot-api-secret-token"));
    Provider::custom("telegram")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("update_id")))
        .redelivery_window(2 * DAY)
}
