use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, Secret, SecretError, SecretSource, Source};

/// [Stripe](https://docs.stripe.com/webhooks): snapshot and thin (v2) events.
///
/// - Signature: `Stripe-Signature: t=<time>,v1=<hex>`, an HMAC-SHA256 of `<time>.<body>` under the
///   whole `whsec_…` string. If there are several `v1`, one matching signature is enough; other
///   schemes are skipped.
/// - Tolerance: 300 seconds in the past, any time in the future, as in Stripe's SDKs.
/// - Delivery id: `$.id`, covered by the signature. Event type: `$.type`. An endpoint that gets
///   both the snapshot event and the thin event of a change gets two ids. The types of thin events
///   start with `v1.` or `v2.`, as in `v1.customer.subscription.updated`.
/// - Version: the endpoint's API version or, if it has none, the account's default, which changes when the account
///   is upgraded. Thin events have none.
/// - Mode: `$.livemode`, which [can be expected](Provider::expect_livemode). A live endpoint for connected
///   accounts [also gets test events](crate::documentation::providers#stripe-connect).
#[doc = include_str!("facts/stripe.md")]
///
/// Each endpoint of an account has its own secret, and live and test mode have different secrets. An API key, an
/// endpoint id or a secret in quotes is refused.
pub fn stripe(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::timestamped(HeaderName::from_static("stripe-signature"))
        .secret_check(check_signing_secret);
    Provider::custom("stripe")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("type")))
        .event_names_like([
            "invoice.payment_failed",
            "v2.core.account[requirements].updated",
        ])
        .payload_version(Source::json(JsonPath::member("api_version")))
        .livemode(JsonPath::member("livemode"))
        .tolerance(Tolerance::past_only(Duration::from_secs(300)))
        .redelivery_window(30 * DAY)
}

/// Refuses values that are often mistaken for the signing secret.
fn check_signing_secret(secret: &Secret) -> Result<(), SecretError> {
    let secret = secret.expose();
    let begins_with = |prefixes: &[&str]| {
        let mut prefixes = prefixes.iter();
        prefixes.any(|prefix| secret.starts_with(prefix.as_bytes()))
    };
    if begins_with(&["sk_", "rk_", "pk_"]) {
        return Err(SecretError::new(
            "it is a Stripe API key: use the signing secret of the webhook endpoint, `whsec_…`",
        ));
    }
    if begins_with(&["we_"]) {
        return Err(SecretError::new(
            "it is the id of a Stripe webhook endpoint: use its signing secret, `whsec_…`",
        ));
    }
    if begins_with(&["\"", "'"]) {
        return Err(SecretError::new(
            "it is in quotes: use the signing secret of the webhook endpoint without quotes, `whsec_…`",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(secret: &str) -> Result<Option<String>, SecretError> {
        let checked = stripe(Secret::new(secret)?).check_secrets();
        Ok(checked.err().map(|error| error.to_string()))
    }

    #[test]
    fn what_is_taken_for_the_signing_secret_is_refused() -> Result<(), SecretError> {
        for (wrong, reason) in [
            ("sk_live_51H", "a Stripe API key"),
            ("rk_test_51H", "a Stripe API key"),
            ("pk_live_51H", "a Stripe API key"),
            ("we_1MqqbK", "the id of a Stripe webhook endpoint"),
            ("\"whsec_51H\"", "in quotes"),
            ("'whsec_51H'", "in quotes"),
        ] {
            let error = refused(wrong)?.unwrap_or_default();
            assert!(error.contains(reason), "{wrong}: {error}");
            assert!(error.contains("signing secret"), "{wrong}: {error}");
        }
        // Secrets of the CLI, and older ones.
        for right in ["whsec_51H", "51H", "sk"] {
            assert_eq!(refused(right)?, None, "{right}");
        }
        Ok(())
    }
}
