//! Requests that are rejected before the layer uses Postgres or calls the handler. If the sender is at fault, the
//! answer is a 4xx. If the provider's key could not be fetched (`provider/keys/mod.rs`), it is a 503.

use std::sync::Arc;

use http::{Method, StatusCode};

use super::body::BodyError;
use super::body_shape::BodyShape;
use super::response::LATER;
use crate::provider::signature::SignatureError;
use crate::provider::{IdentityError, Provider};
use crate::tasks_and_errors::error_chain::ErrorChain;

/// Why a request is rejected.
#[derive(Debug)]
pub(crate) enum Rejection {
    /// Contains the methods that the provider uses.
    Method(Vec<Method>),
    Signature(SignatureError),
    Identity(IdentityError),
    Body(BodyError),
}

/// A rejected request, with what was known about it at that point.
#[derive(Debug)]
pub(crate) struct Rejected {
    pub(crate) rejection: Rejection,
    /// The name of the tenant that the application's lookup has found.
    pub(crate) tenant: Option<Arc<str>>,
    /// Set if the body was read.
    pub(crate) body: Option<BodyShape>,
}

impl Rejected {
    /// The reason, for the operator.
    pub(crate) fn reason(&self, provider: &Provider) -> String {
        self.with_flaw(self.rejection.reason(provider))
    }

    /// The reason that is stored in Postgres. It contains nothing that the sender of a forged request can choose
    /// (guarantee G1). It may contain the tenant, but only one that the application knows.
    pub(crate) fn stored_reason(&self, provider: &Provider) -> String {
        let reason = self.with_flaw(self.rejection.stored_reason(provider));
        match &self.tenant {
            Some(tenant) => format!("tenant {tenant}: {reason}"),
            None => reason,
        }
    }

    /// Puts an obvious flaw of the body before the reason, because a provider signs no such body, so the flaw is the
    /// likely cause.
    fn with_flaw(&self, reason: String) -> String {
        let flaw = self.body.as_ref().and_then(|body| body.flaw);
        match (flaw, &self.rejection) {
            (
                Some(flaw),
                Rejection::Signature(SignatureError::NoMatch | SignatureError::MalformedBody),
            ) => format!("{flaw}; {reason}"),
            _ => reason,
        }
    }
}

impl From<SignatureError> for Rejection {
    fn from(error: SignatureError) -> Self {
        Self::Signature(error)
    }
}

impl From<IdentityError> for Rejection {
    fn from(error: IdentityError) -> Self {
        Self::Identity(error)
    }
}

impl From<BodyError> for Rejection {
    fn from(error: BodyError) -> Self {
        Self::Body(error)
    }
}

impl Rejection {
    /// The text for the sender. It says neither what is wrong with a signature, nor which settings there are.
    pub(crate) fn text(&self, provider: &Provider) -> String {
        match self {
            Self::Method(_) => "method not allowed".into(),
            Self::Signature(_) if self.is_for_later(provider) => LATER.into(),
            Self::Signature(_) => "signature missing or not valid".into(),
            Self::Identity(error) => error.to_string(),
            Self::Body(error) => error.text().into(),
        }
    }

    /// Whether the answer asks the sender to deliver again, because the provider's key may be available later. If the
    /// keys of tenants are fetched, every signature error gets this answer: a key that could not be fetched must not
    /// cost a delivery, and different answers would reveal which tenants exist.
    pub(crate) fn is_for_later(&self, provider: &Provider) -> bool {
        match self {
            Self::Signature(SignatureError::KeyNotFetched(_)) => true,
            Self::Signature(_) => provider.fetches_keys_of_tenants(),
            Self::Method(_) | Self::Identity(_) | Self::Body(_) => false,
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Signature(_) => StatusCode::UNAUTHORIZED,
            Self::Identity(_) | Self::Body(BodyError::Broken(_)) => StatusCode::BAD_REQUEST,
            Self::Body(BodyError::TooLarge { .. } | BodyError::LimitOfAnotherLayer) => {
                StatusCode::PAYLOAD_TOO_LARGE
            }
            Self::Body(BodyError::TooSlow(_)) => StatusCode::REQUEST_TIMEOUT,
        }
    }

    /// The status of the answer, including the exceptions that the provider requires.
    pub(crate) fn status_for(&self, provider: &Provider) -> StatusCode {
        let answers = &provider.answers;
        if self.is_for_later(provider) {
            return answers.failure.unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        }
        let wanted = match self {
            Self::Method(_) => None,
            Self::Signature(_) => answers.rejection.or(answers.failure),
            // The layer may accept the same delivery next time, for example with another limit or over another
            // connection.
            Self::Identity(_) | Self::Body(_) => answers.failure,
        };
        wanted.unwrap_or(self.status())
    }

    /// The name of the cause in the metrics. It is one of a few fixed names.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Method(_) => "method_not_allowed",
            Self::Signature(error) => match error {
                SignatureError::MissingHeader(_) => "missing_header",
                SignatureError::MalformedHeader(_) => "malformed_header",
                SignatureError::MalformedBody => "malformed_body",
                SignatureError::NoPublicUrl => "no_public_url",
                SignatureError::NoMatch => "no_match",
                SignatureError::UnusableSecret => "unusable_secret",
                SignatureError::OtherAlgorithm => "other_algorithm",
                SignatureError::FeatureOff(_) => "feature_off",
                SignatureError::KeyNotFetched(_) => "key_not_fetched",
                SignatureError::UnknownKey => "unknown_key",
                #[cfg(feature = "x509")]
                SignatureError::Certificate(_) => "certificate",
                SignatureError::NotForUs(_) => "not_for_us",
                SignatureError::NoTenant => "no_tenant",
                SignatureError::UnknownTenant => "unknown_tenant",
                SignatureError::NoTimestamp => "no_timestamp",
                SignatureError::TooOld { .. } | SignatureError::Expired { .. } => "too_old",
                SignatureError::TooNew { .. } | SignatureError::NotYetValid { .. } => "too_new",
            },
            Self::Identity(_) => "no_usable_id",
            Self::Body(BodyError::TooLarge { .. } | BodyError::LimitOfAnotherLayer) => {
                "body_too_large"
            }
            Self::Body(BodyError::TooSlow(_)) => "body_too_slow",
            Self::Body(BodyError::Broken(_)) => "body_broken",
        }
    }

    /// The reason, for the operator.
    pub(crate) fn reason(&self, provider: &Provider) -> String {
        match self {
            Self::Method(_) if provider.has_unsigned_handshakes() => {
                "method not allowed, or a check of the endpoint with another token than `verify_token`, for \
                 example"
                    .into()
            }
            Self::Method(_) => self.text(provider),
            Self::Signature(error @ SignatureError::NoMatch) if provider.signs_url() => {
                // The path and the query are left out, because they may contain a token.
                match provider.get_public_url() {
                    Some(url) => format!("{error}, or another URL than {}/... (`public_url`)", url.redacted()),
                    None => error.to_string(),
                }
            }
            Self::Signature(error) => ErrorChain(error).to_string(),
            Self::Identity(error) => ErrorChain(error).to_string(),
            Self::Body(error) => ErrorChain(error).to_string(),
        }
    }

    /// The reason that is stored in Postgres. It contains nothing that the sender of a forged request can choose (G1).
    pub(crate) fn stored_reason(&self, provider: &Provider) -> String {
        match self {
            // With some signature schemes, the sender chooses the name of the missing header, or a part of it.
            Self::Signature(SignatureError::MissingHeader(name))
                if !provider.is_known_for(name) =>
            {
                "a header is missing".into()
            }
            Self::Signature(SignatureError::MalformedHeader(name))
                if !provider.is_known_for(name) =>
            {
                "a header is malformed".into()
            }
            // The other signature errors contain no text of a request. A body is read for the delivery id only after
            // its signature was verified.
            Self::Method(_) | Self::Signature(_) | Self::Identity(_) => self.reason(provider),
            // The causes are left out. With HTTP/2, the sender may end the connection with a text of its own, which the
            // server's error contains.
            Self::Body(error) => error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;
    use crate::presets;
    use crate::provider::{Secret, SecretError};

    const CHOSEN: HeaderName = HeaderName::from_static("x-chosen-by-the-sender");

    fn stored(rejection: impl Into<Rejection>, provider: &Provider) -> [String; 2] {
        let rejection = rejection.into();
        [
            rejection.reason(provider),
            rejection.stored_reason(provider),
        ]
    }

    #[test]
    fn g1_what_a_sender_can_choose_is_not_stored() -> Result<(), SecretError> {
        let github = presets::github(Secret::new("a secret")?);
        for (error, reason) in [
            (SignatureError::MissingHeader(CHOSEN), "a header is missing"),
            (
                SignatureError::MalformedHeader(CHOSEN),
                "a header is malformed",
            ),
        ] {
            let [logged, stored] = stored(error, &github);
            assert!(logged.contains(CHOSEN.as_str()), "{logged}");
            assert_eq!(stored, reason);
        }
        let [logged, stored] = stored(BodyError::Broken("chosen".into()), &github);
        assert_eq!(logged, "the body broke off: chosen");
        assert_eq!(stored, "the body broke off");
        Ok(())
    }

    #[test]
    fn g1_what_was_measured_is_for_the_operator_alone() -> Result<(), SecretError> {
        let github = presets::github(Secret::new("a secret")?);
        let seconds = std::time::Duration::from_secs;
        for (rejection, text, reason) in [
            (
                Rejection::from(SignatureError::TooOld {
                    age: seconds(600),
                    limit: seconds(300),
                }),
                "signature missing or not valid",
                "signed 600 s ago, 300 s are allowed (`tolerance`): is this clock right?",
            ),
            (
                Rejection::from(BodyError::TooLarge {
                    announced: Some(1001),
                    limit: 1000,
                }),
                "the body is too large",
                "the body has 1001 bytes, 1000 are allowed (`body_limit`)",
            ),
            (
                Rejection::from(BodyError::TooLarge {
                    announced: None,
                    limit: 1000,
                }),
                "the body is too large",
                "the body has more than the 1000 bytes that are allowed (`body_limit`)",
            ),
        ] {
            assert_eq!(rejection.text(&github), text);
            assert_eq!(rejection.reason(&github), reason);
            assert_eq!(rejection.stored_reason(&github), reason);
        }
        Ok(())
    }

    #[test]
    fn headers_that_the_provider_is_known_for_are_stored_as_they_are_logged()
    -> Result<(), SecretError> {
        let github = presets::github(Secret::new("a secret")?);
        let telegram = presets::telegram(Secret::new("a secret")?);
        for (provider, name) in [
            // The headers of the signature, the delivery id and the event type.
            (&github, "x-hub-signature-256"),
            (&github, "x-github-delivery"),
            (&github, "x-github-event"),
            // The provider's description does not name this header.
            (&telegram, "x-telegram-bot-api-secret-token"),
        ] {
            let name = HeaderName::from_static(name);
            for error in [
                SignatureError::MissingHeader(name.clone()),
                SignatureError::MalformedHeader(name),
            ] {
                let [logged, stored] = stored(error, provider);
                assert_eq!(logged, stored);
            }
        }
        let [logged, stored] = stored(SignatureError::NoMatch, &github);
        assert_eq!(logged, stored);
        Ok(())
    }
}
