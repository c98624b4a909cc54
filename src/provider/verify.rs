//! Verification of a request: its signature, its age and its delivery id.

use std::fmt;
use std::time::SystemTime;

use http::HeaderName;
use http::request::Parts;

use super::Provider;
use super::canary::is_canary;
use super::delivery::VerifiedDelivery;
use super::handshake::{Handshake, HandshakeRequest};
use super::identity::{Identified, IdentityError};
use super::secret::{Secret, Secrets};
use super::signature::{SignatureError, Signed, SignedRequest, TriedFetch};

/// How many key addresses are asked for one request. If there are more secrets than this, the limit is the number of
/// secrets, because each of them may have its own address.
const MAX_FETCHES: usize = 10;

/// An authentic request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Verified {
    /// A delivery, to be processed once.
    Delivery(VerifiedDelivery),
    /// A check whether the endpoint exists. Answer it at once.
    Handshake(Handshake),
    /// A [canary](crate::documentation::operating#a-canary) from an operator, not from the provider. Answer it, but
    /// do not handle or count it.
    Canary,
}

impl Verified {
    /// The delivery, unless the request is a handshake or a canary.
    pub fn delivery(&self) -> Option<&VerifiedDelivery> {
        match self {
            Self::Delivery(delivery) => Some(delivery),
            Self::Handshake(_) | Self::Canary => None,
        }
    }

    /// The handshake, if the request is one.
    pub fn handshake(&self) -> Option<&Handshake> {
        match self {
            Self::Delivery(_) | Self::Canary => None,
            Self::Handshake(handshake) => Some(handshake),
        }
    }
}

impl Provider {
    /// Verifies a request that was received at `now`, and identifies its delivery.
    ///
    /// `body` is the exact raw body. This uses no database and reads no clock.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use http::Request;
    /// use idempotent_webhook::{Secret, presets};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let stripe = presets::stripe(Secret::new("whsec_test")?);
    /// let body = br#"{"id":"evt_1","type":"invoice.paid"}"#;
    /// let signature = "t=1700000000,\
    ///     v1=4aa90aa69730f112c87accbf54203d1076675eae3b18a5cb82b5ab9e7f5cd5bc";
    /// let (head, ()) = Request::post("/").header("stripe-signature", signature).body(())?.into_parts();
    /// let signed_at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    ///
    /// let verified = stripe.verify(&head, body, signed_at)?;
    /// let delivery = verified.delivery().expect("not a handshake");
    /// assert_eq!(delivery.id().as_str(), "evt_1");
    /// assert_eq!(delivery.event_type(), Some("invoice.paid"));
    ///
    /// assert!(stripe.verify(&head, b"another body", signed_at).is_err());
    /// assert!(stripe.verify(&head, body, signed_at + Duration::from_secs(3600)).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A provider with [`TenantSecrets`](crate::TenantSecrets) knows its secrets only after a lookup: use
    /// [`verify_with`](Self::verify_with).
    ///
    /// Nothing is fetched. If the provider's [keys](Self::keys) must be fetched, the error is
    /// [`SignatureError::KeyNotFetched`], which says which key is needed.
    /// [`verify_fetching`](Self::verify_fetching) fetches keys.
    ///
    /// # Errors
    ///
    /// [`VerifyError::Signature`] if the request is not authentic or not recent, [`VerifyError::Identity`] if it is
    /// authentic and recent, but has no usable delivery id.
    pub fn verify(
        &self,
        head: &Parts,
        body: &[u8],
        now: SystemTime,
    ) -> Result<Verified, VerifyError> {
        let secrets = self.secrets.fixed();
        self.verify_as(
            secrets.ok_or(&SignatureError::UnknownTenant),
            head,
            body,
            now,
            &[],
        )
    }

    /// Like [`verify`](Self::verify), but with these secrets instead of the provider's own. They can also be values
    /// of the preset's own type.
    ///
    /// # Errors
    ///
    /// The errors of [`verify`](Self::verify).
    pub fn verify_with<S: Clone + Into<Secret>>(
        &self,
        secrets: &Secrets<S>,
        head: &Parts,
        body: &[u8],
        now: SystemTime,
    ) -> Result<Verified, VerifyError> {
        let secrets = secrets.clone().into_text_forms();
        self.verify_as(Ok(&secrets), head, body, now, &[])
    }

    /// Like [`verify`](Self::verify), but fetches the [keys](Self::keys) that it needs, as the layer does: within
    /// half of the [response deadline](Self::response_deadline), and not for every request.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use http::request::Parts;
    /// use http::StatusCode;
    /// use idempotent_webhook::Provider;
    /// use idempotent_webhook::provider::VerifyError;
    /// use idempotent_webhook::provider::signature::SignatureError;
    ///
    /// async fn check(provider: &Provider, head: &Parts, body: &[u8]) -> StatusCode {
    ///     match provider.verify_fetching(head, body, SystemTime::now()).await {
    ///         Ok(_) => StatusCode::OK,
    ///         // The key could not be fetched: the provider should send the request again.
    ///         Err(VerifyError::Signature(SignatureError::KeyNotFetched(_))) => {
    ///             StatusCode::SERVICE_UNAVAILABLE
    ///         }
    ///         Err(VerifyError::Signature(_)) => StatusCode::UNAUTHORIZED,
    ///         Err(_) => StatusCode::BAD_REQUEST,
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`verify`](Self::verify), with [`SignatureError::KeyNotFetched`] only if the key could not be
    /// fetched, or may not be fetched now.
    ///
    /// # Panics
    ///
    /// If a key must be fetched and the call is made outside of a tokio runtime.
    pub async fn verify_fetching(
        &self,
        head: &Parts,
        body: &[u8],
        now: SystemTime,
    ) -> Result<Verified, VerifyError> {
        let secrets = self.secrets.fixed();
        let secrets = secrets.ok_or(&SignatureError::UnknownTenant);
        self.verify_and_fetch(secrets, head, body, now).await
    }

    pub(crate) async fn verify_and_fetch(
        &self,
        secrets: Result<&Secrets, &SignatureError>,
        head: &Parts,
        body: &[u8],
        now: SystemTime,
    ) -> Result<Verified, VerifyError> {
        let mut tried: Vec<TriedFetch> = Vec::new();
        let keys = self.keys.as_ref();
        let keys = keys.map(|keys| (keys, keys.wait_until(self.response_deadline)));
        loop {
            let before = tried.len();
            let verified = self.verify_or_need(secrets, head, body, now, &mut tried);
            let needed = tried.get_mut(before..).unwrap_or_default();
            let (Some((keys, until)), false) = (keys, needed.is_empty()) else {
                return verified;
            };
            let requests = needed.iter().map(|one| &one.needed);
            let were_asked = keys.fetch_until(requests, until).await;
            for (one, was_asked) in needed.iter_mut().zip(were_asked) {
                one.was_asked = was_asked;
            }
        }
    }

    /// Verifies a request, and adds all keys that the secrets need to `tried`.
    fn verify_or_need(
        &self,
        secrets: Result<&Secrets, &SignatureError>,
        head: &Parts,
        body: &[u8],
        now: SystemTime,
        tried: &mut Vec<TriedFetch>,
    ) -> Result<Verified, VerifyError> {
        let max_fetches = secrets.map_or(0, |secrets| secrets.iter().count());
        loop {
            let verified = self.verify_as(secrets, head, body, now, tried);
            match &verified {
                Err(VerifyError::Signature(SignatureError::KeyNotFetched(needed)))
                    if tried.len() < max_fetches.max(MAX_FETCHES)
                        && tried.iter().all(|one| one.needed != *needed) =>
                {
                    tried.push(TriedFetch {
                        needed: needed.clone(),
                        was_asked: false,
                    });
                }
                _ => return verified,
            }
        }
    }

    /// Verifies a request once. If there are no secrets, the request is rejected after about the same work as for a
    /// wrong signature. Keys that were `tried` for this request are not asked for again.
    fn verify_as(
        &self,
        secrets: Result<&Secrets, &SignatureError>,
        head: &Parts,
        body: &[u8],
        now: SystemTime,
        tried: &[TriedFetch],
    ) -> Result<Verified, VerifyError> {
        let request = self.signed_request(head, body, tried);
        if let Some(handshake) = self.recognize_unsigned(secrets.ok(), head, body) {
            return Ok(Verified::Handshake(handshake));
        }
        let secrets = secrets.map_err(|none| {
            let nobodys = Secrets::new(self.scheme.dummy_secret());
            match self.scheme.verify(&request, &nobodys) {
                Err(needed @ SignatureError::KeyNotFetched(_)) => needed,
                Ok(_) | Err(_) => none.clone(),
            }
        })?;
        let (signed, secret) = self.verify_signature(&request, secrets)?;
        signed.check_validity(now)?;
        let signed_at = signed.time();
        if let Some(signed_at) = signed_at {
            self.tolerance.check(signed_at, now)?;
        }
        if is_canary(body, self.scheme.signs_body()) {
            return Ok(Verified::Canary);
        }
        if self.handshakes.has_signed() {
            let request = HandshakeRequest::new(request, head, &*self.scheme, Some(secrets));
            if let Some(handshake) = self.handshakes.signed(&request) {
                return Ok(Verified::Handshake(handshake));
            }
        }
        Ok(match self.identity.read(head, body, &signed)? {
            Identified::Delivery {
                id,
                event_type,
                other_version,
            } => Verified::Delivery(VerifiedDelivery {
                id,
                event_type,
                signed_at,
                secret,
                other_version,
            }),
            Identified::Handshake(handshake) => Verified::Handshake(handshake),
        })
    }

    /// Verifies the signature. Returns what the signature says and, if there are several secrets, the position of the
    /// first secret that verifies it on its own.
    ///
    /// All secrets together decide whether the signature is valid, because a scheme may require signatures with two
    /// secrets.
    fn verify_signature(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<(Signed, Option<usize>), SignatureError> {
        let signed = self.scheme.verify(request, secrets)?;
        if secrets.iter().nth(1).is_none() {
            return Ok((signed, None));
        }
        let verifies = |secret: &Secret| {
            let alone = Secrets::new(secret.clone());
            self.scheme.verify(request, &alone).is_ok()
        };
        Ok((signed, secrets.iter().position(verifies)))
    }

    /// The exact bytes that the signature of a request covers, such as `<time>.<body>`, to find out why a signature
    /// does not match.
    ///
    /// They contain nothing of the secret. `None` if the scheme does not reveal them, as with most schemes that
    /// belong to a single preset.
    ///
    /// ```
    /// use http::Request;
    /// use idempotent_webhook::{Secret, presets};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let stripe = presets::stripe(Secret::new("whsec_test")?);
    /// let request = Request::post("/").header("stripe-signature", "t=1700000000,v1=00");
    /// let (head, ()) = request.body(())?.into_parts();
    /// let content = stripe.signed_content(&head, b"{}")?;
    /// assert_eq!(content.as_deref(), Some(&b"1700000000.{}"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if the request lacks a part of the content.
    pub fn signed_content(
        &self,
        head: &Parts,
        body: &[u8],
    ) -> Result<Option<Vec<u8>>, SignatureError> {
        let request = self.signed_request(head, body, &[]);
        self.scheme.signed_content(&request)
    }

    /// The delivery of an event that comes from the provider's API, with the headers and the body of its webhook.
    pub(crate) fn identify(
        &self,
        head: &Parts,
        body: &[u8],
    ) -> Result<VerifiedDelivery, ListedError> {
        match self.identity.read(head, body, &Signed::new()) {
            Ok(Identified::Delivery { id, event_type, .. }) => Ok(VerifiedDelivery {
                id,
                event_type,
                signed_at: None,
                secret: None,
                other_version: None,
            }),
            Ok(Identified::Handshake(_)) => Err(ListedError::Handshake),
            Err(error) => Err(ListedError::Identity(error)),
        }
    }

    /// Checks that a list of events gives all parts of the delivery id. The list gives these headers, and possibly
    /// bodies.
    pub(crate) fn check_identity(
        &self,
        headers: &[HeaderName],
        has_bodies: bool,
    ) -> Result<(), String> {
        let id = self.identity.id();
        match id.missing_from(headers, has_bodies) {
            None => Ok(()),
            Some(reason) => Err(format!("the delivery id is {id}, and {reason}")),
        }
    }

    fn signed_request<'a>(
        &'a self,
        head: &'a Parts,
        body: &'a [u8],
        tried: &'a [TriedFetch],
    ) -> SignedRequest<'a> {
        SignedRequest::new(head, body)
            .public_url(self.public_url.as_ref())
            .key_source(self.keys.as_ref(), tried)
    }

    /// The handshake, if the request is one that does not have to be signed.
    pub(crate) fn recognize_unsigned(
        &self,
        secrets: Option<&Secrets>,
        head: &Parts,
        body: &[u8],
    ) -> Option<Handshake> {
        if !self.handshakes.has_unsigned() {
            return None;
        }
        let request = self.signed_request(head, body, &[]);
        let request = HandshakeRequest::new(request, head, &*self.scheme, secrets);
        self.handshakes.unsigned(&request)
    }

    /// Rejects requests that no body could make authentic, before the body is read.
    pub(crate) fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.scheme.check_head(head)
    }
}

/// Why a listed event is not a delivery.
#[derive(Debug)]
pub(crate) enum ListedError {
    Identity(IdentityError),
    Handshake,
}

impl fmt::Display for ListedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity(error) => error.fmt(f),
            Self::Handshake => f.write_str("it is a handshake"),
        }
    }
}

/// Why [`Provider::verify`] rejected a request.
#[derive(Debug)]
#[non_exhaustive]
pub enum VerifyError {
    /// The request is not authentic, or not recent.
    Signature(SignatureError),
    /// The request is authentic, but has no usable delivery id.
    Identity(IdentityError),
}

impl From<SignatureError> for VerifyError {
    fn from(error: SignatureError) -> Self {
        Self::Signature(error)
    }
}

impl From<IdentityError> for VerifyError {
    fn from(error: IdentityError) -> Self {
        Self::Identity(error)
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signature(SignatureError::KeyNotFetched(_)) => "the request cannot be verified",
            Self::Signature(_) => "the request is not authentic",
            Self::Identity(_) => "the delivery cannot be identified",
        })
    }
}

impl std::error::Error for VerifyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Signature(error) => Some(error),
            Self::Identity(error) => Some(error),
        }
    }
}
