use http::HeaderName;

use crate::provider::keys::KeyRequest;
use crate::provider::signature::{PublicKeySignature, Tolerance};
use crate::provider::{MIB, Provider, SecretSource, Source};

const KEYS: &str = "https://api.github.com/meta/public_keys/secret_scanning";

/// [GitHub's secret
/// scanning](https://docs.github.com/en/code-security/secret-scanning/secret-scanning-partnership-program/secret-scanning-partner-program):
/// the alerts to partners whose tokens were found. Requires the feature `p256`.
///
/// There is no secret; GitHub's public keys verify the signature:
///
/// ```no_run
/// # #[cfg(feature = "reqwest")]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use idempotent_webhook::presets;
/// use idempotent_webhook::provider::keys::KeySource;
///
/// let alerts = presets::github_secret_scanning(KeySource::https()?);
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "reqwest"))]
/// # fn main() {}
/// ```
///
/// - Signature: `Github-Public-Key-Signature: <base64>`, an ECDSA signature with P-256, in DER, of the body.
/// - Keys: at `https://api.github.com/meta/public_keys/secret_scanning`, by the id in
///   `Github-Public-Key-Identifier`. Keys that GitHub lists as not current are accepted as well, as in GitHub's
///   examples. Without a token, GitHub answers 60 requests an hour (not confirmed). Forged requests with unknown
///   key ids can use these up, but keys that are already known stay in use.
/// - **The keys are the same for all partners, and neither a receiver nor a time is signed**: anyone who has an
///   alert to another partner can send it to you at any time. Look up each token before you revoke it.
/// - Tolerance: any age.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the signature. If the
///   same findings are sent in a later alert, that alert is a duplicate; it names the same tokens. Event type:
///   none, because each element of the body has its own `type`.
#[doc = include_str!("facts/github-secret-scanning.md")]
pub fn github_secret_scanning(secrets: impl Into<SecretSource>) -> Provider {
    let header = |name| HeaderName::from_static(name);
    let scheme = PublicKeySignature::ecdsa_p256(header("github-public-key-signature"))
        .keys_at(KeyRequest::get(KEYS))
        .key_id(header("github-public-key-identifier"));
    Provider::custom("github-secret-scanning")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .tolerance(Tolerance::unlimited())
        .body_limit(16 * MIB)
}
