//! Private keys for tests, which sign with them for presets whose keys are fetched.

use idempotent_webhook::Provider;
use idempotent_webhook::provider::keys::KeySource;

/// The provider with keys that a test can sign with, if it needs any.
pub fn with_test_keys(provider: Provider) -> Provider {
    let keys = match provider.name() {
        "apple-app-store" => include_str!("../../keys/apple.pem"),
        "aws-sns" => include_str!("../../keys/sns.pem"),
        "google-pubsub" => include_str!("../../keys/rsa.pem"),
        "ebay" | "github-secret-scanning" => include_str!("../../keys/p256.pem"),
        "fal" => include_str!("../../keys/ed25519.json"),
        _ => return provider,
    };
    provider.keys(KeySource::given(keys).unwrap())
}
