//! A request with a secret, and the result of its verification.

use std::error::Error;
use std::time::SystemTime;

use bytes::Bytes;
use http::request::Parts;
use idempotent_webhook::provider::signature::SignatureError;
use idempotent_webhook::provider::{Verified, VerifyError};
use idempotent_webhook::{Provider as Preset, Secret};

use crate::preset::Provider;

#[derive(Clone)]
pub struct Case {
    pub provider: Provider,
    pub secret: Vec<u8>,
    /// The URL that the provider calls, without the path.
    pub public_url: Option<String>,
    pub head: Parts,
    pub body: Bytes,
    pub at: SystemTime,
}

/// The steps of the verification, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Method,
    Headers,
    Body,
    Secret,
    Url,
    /// A key that must be fetched.
    Key,
    /// The certificate, the algorithm, or the account to which the request belongs.
    Signer,
    Signature,
    Time,
    Id,
}

impl Step {
    /// The steps that the report shows.
    pub const ALL: [Self; 7] = [
        Self::Method,
        Self::Headers,
        Self::Body,
        Self::Secret,
        Self::Signature,
        Self::Time,
        Self::Id,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Headers => "headers",
            Self::Body => "body",
            Self::Secret => "secret",
            Self::Url | Self::Key | Self::Signer | Self::Signature => "signature",
            Self::Time => "time",
            Self::Id => "id",
        }
    }
}

/// The step at which a request fails, and the reason.
pub struct Failure {
    pub step: Step,
    pub reason: String,
    /// A time at which the request would verify, if its time is its only fault.
    pub valid_at: Option<SystemTime>,
}

impl Case {
    pub fn preset(&self) -> Result<Preset, Failure> {
        let secret =
            Secret::exact(self.secret.clone()).map_err(|error| failure(Step::Secret, &error))?;
        let preset = self.provider.with(secret);
        Ok(match &self.public_url {
            Some(url) => {
                let url = url.parse().map_err(|error| failure(Step::Url, &error))?;
                preset.public_url(url)
            }
            None => preset,
        })
    }

    pub fn judge(&self) -> Result<Verified, Failure> {
        let preset = self.preset()?;
        let verified = preset.verify(&self.head, &self.body, self.at);
        // A handshake may have any method, and needs no secret.
        if let Ok(Verified::Handshake(_)) = verified {
            return verified.map_err(|error| self.failure(error));
        }
        let description = preset.description();
        if !description.methods.contains(&self.head.method) {
            return Err(failure(
                Step::Method,
                &"the provider does not send this method",
            ));
        }
        let verified = verified.map_err(|error| self.failure(error));
        match verified {
            Err(failure) if failure.step == Step::Headers || failure.step == Step::Key => {
                return Err(failure);
            }
            _ => {}
        }
        if self.body.len() > description.body_limit {
            let limit = description.body_limit;
            let reason = format!("more than {limit} bytes are not accepted (`body_limit`)");
            return Err(failure(Step::Body, &reason));
        }
        preset
            .check_secrets()
            .map_err(|error| failure(Step::Secret, &error))?;
        verified
    }

    /// Whether the signature is valid, even if the request is too old or has no usable id.
    pub fn is_authentic(&self) -> bool {
        match self.judge() {
            Ok(_) => true,
            Err(failure) => failure.step >= Step::Time,
        }
    }

    fn failure(&self, error: VerifyError) -> Failure {
        use SignatureError as Reason;
        let error = match error {
            VerifyError::Signature(error) => error,
            other => {
                let cause = other.source().map(ToString::to_string);
                return failure(Step::Id, &cause.unwrap_or_else(|| other.to_string()));
            }
        };
        let step = match &error {
            Reason::MissingHeader(_) | Reason::MalformedHeader(_) => Step::Headers,
            Reason::MalformedBody | Reason::NoTimestamp => Step::Body,
            Reason::UnusableSecret => Step::Secret,
            Reason::NoPublicUrl => Step::Url,
            Reason::KeyNotFetched(_) => Step::Key,
            Reason::TooOld { .. }
            | Reason::TooNew { .. }
            | Reason::Expired { .. }
            | Reason::NotYetValid { .. } => Step::Time,
            Reason::NoMatch => Step::Signature,
            _ => Step::Signer,
        };
        let valid_at = match &error {
            Reason::TooOld { age, .. } => self.at.checked_sub(*age),
            Reason::TooNew { ahead, .. } => self.at.checked_add(*ahead),
            Reason::Expired { ago } => self.at.checked_sub(*ago + SECOND),
            Reason::NotYetValid { starts_in } => self.at.checked_add(*starts_in + SECOND),
            _ => None,
        };
        Failure {
            step,
            reason: match &error {
                Reason::NoMatch => "it does not match".to_owned(),
                // This text names the command's option for the public URL.
                Reason::NoPublicUrl => {
                    "it covers the URL that the provider calls: give it with --public-url"
                        .to_owned()
                }
                error => error.to_string(),
            },
            valid_at,
        }
    }
}

const SECOND: std::time::Duration = std::time::Duration::from_secs(1);

fn failure(step: Step, reason: &impl ToString) -> Failure {
    Failure {
        step,
        reason: reason.to_string(),
        valid_at: None,
    }
}
