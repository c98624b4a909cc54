//! The scheme of the Standard Webhooks specification.

use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderMap;
use http::header::HeaderName;
use http::request::Parts;

use super::timestamp::{TimeUnit, unix_time};
use super::{SignatureError, SignatureScheme, first_value};
use crate::crypto::{ExpectedMac, MAC_LEN};
use crate::secret::{Secret, Secrets};

/// The scheme of [Standard Webhooks](https://www.standardwebhooks.com), with the headers of
/// the specification or those of Svix.
///
/// The signature header is a list divided by spaces. What is signed is
/// `{id}.{timestamp}.{body}`, so the delivery id is covered. An id with a full stop in it is
/// refused, as the specification wants: it would make that ambiguous.
///
/// | secret | key | signatures that count |
/// |---|---|---|
/// | `whsec_<base64>`, `<base64>` | the decoded bytes, for HMAC-SHA256 | `v1,<base64>` |
/// | `whpk_<base64>` | an ed25519 public key | `v1a,<base64>` |
/// | `whsk_<base64>` | the public half of an ed25519 key pair | `v1a,<base64>` |
///
/// The last two need the feature `ed25519`. A secret that is none of these matches no
/// signature ([`SignatureError::UnusableSecret`]). Mind that other providers, such as
/// Stripe, take the whole text of a `whsec_…` secret for the key.
#[derive(Clone, Debug)]
pub struct StandardWebhooks {
    ids: Vec<HeaderName>,
    timestamps: Vec<HeaderName>,
    signatures: Vec<HeaderName>,
}

impl StandardWebhooks {
    /// With the headers `webhook-id`, `webhook-timestamp` and `webhook-signature`.
    pub fn new() -> Self {
        Self {
            ids: vec![HeaderName::from_static("webhook-id")],
            timestamps: vec![HeaderName::from_static("webhook-timestamp")],
            signatures: vec![HeaderName::from_static("webhook-signature")],
        }
    }

    /// With the headers `svix-id`, `svix-timestamp` and `svix-signature`, or those of the
    /// specification where they are absent.
    pub fn svix() -> Self {
        let mut scheme = Self::new();
        let first = |names: &mut Vec<_>, name| names.insert(0, HeaderName::from_static(name));
        first(&mut scheme.ids, "svix-id");
        first(&mut scheme.timestamps, "svix-timestamp");
        first(&mut scheme.signatures, "svix-signature");
        scheme
    }

    fn read<'a>(&'a self, headers: &'a HeaderMap) -> Result<Signed<'a>, SignatureError> {
        let (name, id) = first_value(headers, &self.ids)?;
        // It would move what ends the id: `a.1` at time 2 is signed as `a` at time 1 is, with a
        // body that begins with `2.`.
        if id.contains('.') {
            return Err(SignatureError::MalformedHeader(name.clone()));
        }
        let (name, timestamp) = first_value(headers, &self.timestamps)?;
        let signed_at = unix_time(timestamp, TimeUnit::Seconds)
            .ok_or_else(|| SignatureError::MalformedHeader(name.clone()))?;
        let (name, signatures) = first_value(headers, &self.signatures)?;
        let signed = Signed {
            id,
            timestamp,
            signed_at,
            signatures,
        };
        if signed.macs().next().is_none() && signed.ed25519_signatures().next().is_none() {
            return Err(SignatureError::MalformedHeader(name.clone()));
        }
        Ok(signed)
    }
}

impl Default for StandardWebhooks {
    fn default() -> Self {
        Self::new()
    }
}

impl SignatureScheme for StandardWebhooks {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.read(&head.headers).map(drop)
    }

    fn verify(
        &self,
        head: &Parts,
        body: &[u8],
        secrets: &Secrets,
    ) -> Result<Option<SystemTime>, SignatureError> {
        let signed = self.read(&head.headers)?;
        let mut fault = SignatureError::NoMatch;
        for secret in secrets.iter() {
            match Key::of(secret) {
                Some(key) if signed.is_by(&key, body) => return Ok(Some(signed.signed_at)),
                Some(_) => {}
                None => fault = SignatureError::UnusableSecret,
            }
        }
        Err(fault)
    }

    fn signed_headers(&self) -> &[HeaderName] {
        // Of several, the first that is there: the very one of which the id is taken by a
        // `Source` with the same alternatives.
        &self.ids
    }
}

/// Each takes some ten times as long as a MAC of a small body, and a sender could fill the
/// header with them.
#[cfg(feature = "ed25519")]
const MAX_ED25519_SIGNATURES: usize = 20;

enum Key {
    Hmac(Vec<u8>),
    #[cfg(feature = "ed25519")]
    Ed25519([u8; 32]),
}

impl Key {
    fn of(secret: &Secret) -> Option<Self> {
        let text = std::str::from_utf8(secret.expose()).ok()?;
        if let Some(public) = text.strip_prefix("whpk_") {
            Self::ed25519(&BASE64.decode(public).ok()?)
        } else if let Some(pair) = text.strip_prefix("whsk_") {
            // The private half first, then the public one.
            Self::ed25519(BASE64.decode(pair).ok()?.get(32..)?)
        } else {
            // Not empty, since a secret is not blank.
            let key = BASE64.decode(text.strip_prefix("whsec_").unwrap_or(text));
            key.ok().map(Self::Hmac)
        }
    }

    #[cfg(feature = "ed25519")]
    fn ed25519(public: &[u8]) -> Option<Self> {
        public.try_into().ok().map(Self::Ed25519)
    }

    #[cfg(not(feature = "ed25519"))]
    fn ed25519(_: &[u8]) -> Option<Self> {
        None
    }
}

/// What the head of a request says of its signature.
struct Signed<'a> {
    id: &'a str,
    timestamp: &'a str,
    signed_at: SystemTime,
    signatures: &'a str,
}

impl Signed<'_> {
    fn is_by(&self, key: &Key, body: &[u8]) -> bool {
        let content = [
            self.id.as_bytes(),
            b".",
            self.timestamp.as_bytes(),
            b".",
            body,
        ];
        match key {
            Key::Hmac(key) => {
                let expected = ExpectedMac::of(key, content);
                self.macs().any(|mac| expected.matches(mac))
            }
            #[cfg(feature = "ed25519")]
            Key::Ed25519(public) => {
                let content = content.concat();
                let mut signatures = self.ed25519_signatures().take(MAX_ED25519_SIGNATURES);
                signatures.any(|signature| {
                    crate::crypto::is_ed25519_signature(public, &content, &signature)
                })
            }
        }
    }

    fn macs(&self) -> impl Iterator<Item = [u8; MAC_LEN]> {
        self.versioned("v1,")
    }

    fn ed25519_signatures(&self) -> impl Iterator<Item = [u8; 64]> {
        self.versioned("v1a,")
    }

    /// The well-formed signatures of a version.
    fn versioned<const N: usize>(&self, prefix: &str) -> impl Iterator<Item = [u8; N]> {
        self.signatures.split(' ').filter_map(move |item| {
            let mut signature = [0; N];
            let length = BASE64
                .decode_slice(item.strip_prefix(prefix)?, &mut signature)
                .ok()?;
            (length == N).then_some(signature)
        })
    }
}
