//! The scheme of the Standard Webhooks specification.

use std::borrow::Cow;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderMap;
use http::header::HeaderName;
use http::request::Parts;

use super::first_value;
use super::mac::{ExpectedMac, MAC_LEN, hmac_sha256};
use super::scheme::{SignatureError, SignatureScheme, Signed, SignedRequest};
use super::sign::{SignError, UnsignedRequest};
use super::timestamp::{TimeUnit, to_unix_time, unix_time};
use crate::provider::digest::sha256_hex;
use crate::provider::{Secret, SecretError, Secrets};

/// The scheme of [Standard Webhooks](https://www.standardwebhooks.com), with the headers of the specification or of
/// Svix.
///
/// The signature header is a list separated by spaces. The signed content is `{id}.{timestamp}.{body}`, so the
/// delivery id is covered. An id that contains a dot is rejected, as the specification requires, because it would
/// make the content ambiguous.
///
/// | secret | key | signatures |
/// |---|---|---|
/// | `whsec_<base64>`, `<base64>` | the decoded bytes, for HMAC-SHA256 | `v1,<base64>` |
/// | `whpk_<base64>` | an ed25519 public key | `v1a,<base64>` |
/// | `whsk_<base64>` | the public half of an ed25519 key pair | `v1a,<base64>` |
///
/// The last two rows need the feature `ed25519`. Any other secret is refused when the layer is built
/// ([`Provider::check_secrets`](crate::Provider::check_secrets)). Providers with other schemes, such as Stripe, use
/// the whole text of a `whsec_…` secret as the key.
#[derive(Clone, Debug)]
pub struct StandardWebhooks {
    ids: Vec<HeaderName>,
    timestamps: Vec<HeaderName>,
    signatures: Vec<HeaderName>,
    variant: Variant,
}

/// Deviations of some providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Specification,
    /// Secrets start with `v1,whsec_`, and several secrets are joined by `|`. Signatures are joined by a comma and
    /// a space.
    Supabase,
    /// A secret without `whsec_` is the key itself.
    RawSecret,
    /// Like `RawSecret`, and a signature may also lack its version.
    OpenAi,
}

impl StandardWebhooks {
    /// The scheme with the headers `webhook-id`, `webhook-timestamp` and `webhook-signature`.
    pub fn new() -> Self {
        Self {
            ids: vec![HeaderName::from_static("webhook-id")],
            timestamps: vec![HeaderName::from_static("webhook-timestamp")],
            signatures: vec![HeaderName::from_static("webhook-signature")],
            variant: Variant::Specification,
        }
    }

    /// The scheme with the headers `svix-id`, `svix-timestamp` and `svix-signature`, or, if they are absent, with the
    /// headers of the specification.
    pub fn svix() -> Self {
        let mut scheme = Self::new();
        let first = |names: &mut Vec<_>, name| names.insert(0, HeaderName::from_static(name));
        first(&mut scheme.ids, "svix-id");
        first(&mut scheme.timestamps, "svix-timestamp");
        first(&mut scheme.signatures, "svix-signature");
        scheme
    }

    /// The scheme with the headers of Svix only.
    pub(crate) fn only_svix() -> Self {
        let mut scheme = Self::svix();
        for names in [
            &mut scheme.ids,
            &mut scheme.timestamps,
            &mut scheme.signatures,
        ] {
            names.truncate(1);
        }
        scheme
    }

    pub(crate) fn supabase() -> Self {
        Self {
            variant: Variant::Supabase,
            ..Self::new()
        }
    }

    pub(crate) fn with_raw_secret() -> Self {
        Self {
            variant: Variant::RawSecret,
            ..Self::new()
        }
    }

    pub(crate) fn openai() -> Self {
        Self {
            variant: Variant::OpenAi,
            ..Self::new()
        }
    }

    fn read<'a>(&'a self, headers: &'a HeaderMap) -> Result<Head<'a>, SignatureError> {
        let (name, id) = first_value(headers, &self.ids)?;
        // An id with a dot is ambiguous: `a.1` at time 2 has the same content as `a` at time 1 with a body that starts
        // with `2.`.
        if id.contains('.') {
            return Err(SignatureError::MalformedHeader(name.clone()));
        }
        let (name, timestamp) = first_value(headers, &self.timestamps)?;
        let signed_at = unix_time(timestamp, TimeUnit::Seconds)
            .ok_or_else(|| SignatureError::MalformedHeader(name.clone()))?;
        let (name, signatures) = first_value(headers, &self.signatures)?;
        let head = Head {
            id,
            timestamp,
            signed_at,
            signatures,
            variant: self.variant,
        };
        if head.macs().next().is_none() && head.ed25519_signatures().next().is_none() {
            return Err(SignatureError::MalformedHeader(name.clone()));
        }
        Ok(head)
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
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let head = self.read(request.headers())?;
        let mut error = SignatureError::NoMatch;
        for secret in secrets.iter() {
            for part in self.variant.parts(secret) {
                match Key::of(part, self.variant) {
                    Some(key) if head.is_signed_with(&key, request.body()) => {
                        return Ok(Signed::new().at(head.signed_at));
                    }
                    Some(_) => {}
                    None if cfg!(not(feature = "ed25519")) && is_ed25519(part) => {
                        error = SignatureError::FeatureOff("ed25519");
                    }
                    None => error = SignatureError::UnusableSecret,
                }
            }
        }
        Err(error)
    }

    fn signed_content(
        &self,
        request: &SignedRequest<'_>,
    ) -> Result<Option<Vec<u8>>, SignatureError> {
        let head = self.read(request.headers())?;
        let content = content(head.id, head.timestamp, request.body());
        Ok(Some(content.concat()))
    }

    fn signed_headers(&self) -> &[HeaderName] {
        // The id is signed in the first of these headers that is present. A `Source` with the same alternatives
        // reads the same header.
        &self.ids
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        let header = self.signatures.first().map_or("", HeaderName::as_str);
        format!("Standard Webhooks, `{header}`").into()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        let mut keys = self.variant.parts(secret);
        match keys.all(|part| Key::of(part, self.variant).is_some()) {
            true => Ok(()),
            false => Err(SecretError::new(
                "Standard Webhooks needs `whsec_` or nothing before base64, or, with the feature \
                 `ed25519`, `whpk_` or `whsk_` before a key in base64",
            )),
        }
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let time = to_unix_time(request.time(), TimeUnit::Seconds).to_string();
        let id = match first_value(request.headers(), &self.ids) {
            Ok((_, id)) => id.to_owned(),
            // The delivery id is found elsewhere, so this can be any id that is the same for each request of one
            // delivery.
            Err(SignatureError::MissingHeader(name)) => {
                let id = format!("msg_{}", sha256_hex(request.body()));
                request.insert_header(name, id.as_str())?;
                id
            }
            Err(_) => return Err(SignError::new("the header with the id cannot be read")),
        };
        let content = content(&id, &time, request.body());
        let secret = self.variant.parts(secret).next().unwrap_or_default();
        let signature = match SigningKey::of(secret, self.variant) {
            Some(SigningKey::Hmac(key)) => {
                format!("v1,{}", BASE64.encode(hmac_sha256(&key, content)))
            }
            #[cfg(feature = "ed25519")]
            Some(SigningKey::Ed25519(seed)) => {
                let signature = super::public_key::ed25519::sign(&seed, &content.concat());
                format!("v1a,{}", BASE64.encode(signature))
            }
            None => return Err(SignError::new("the secret is not one that signs")),
        };
        for (names, value) in [(&self.timestamps, time), (&self.signatures, signature)] {
            if let Some(name) = names.first() {
                request.insert_header(name.clone(), value)?;
            }
        }
        Ok(())
    }
}

/// The maximum number of ed25519 signatures that are verified. Each takes about ten times as long to verify as a MAC of
/// a small body, so a sender must not be able to fill the header with them.
#[cfg(feature = "ed25519")]
const MAX_ED25519_SIGNATURES: usize = 20;

/// A key that verifies.
enum Key {
    Hmac(Vec<u8>),
    #[cfg(feature = "ed25519")]
    Ed25519([u8; 32]),
}

impl Key {
    fn of(secret: &[u8], variant: Variant) -> Option<Self> {
        let text = match variant {
            Variant::RawSecret | Variant::OpenAi if !secret.starts_with(b"whsec_") => {
                return Some(Self::Hmac(secret.to_vec()));
            }
            Variant::Supabase => secret.strip_prefix(b"v1,").unwrap_or(secret),
            Variant::Specification | Variant::RawSecret | Variant::OpenAi => secret,
        };
        let text = std::str::from_utf8(text).ok()?;
        if let Some(public) = text.strip_prefix("whpk_") {
            Self::ed25519(&BASE64.decode(public).ok()?)
        } else if let Some(pair) = text.strip_prefix("whsk_") {
            // The private half comes first, then the public half.
            Self::ed25519(BASE64.decode(pair).ok()?.get(32..)?)
        } else {
            let key = BASE64.decode(text.strip_prefix("whsec_").unwrap_or(text));
            key.ok().filter(|key| !key.is_empty()).map(Self::Hmac)
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

/// Whether the secret is an ed25519 key, judged by its prefix.
fn is_ed25519(secret: &[u8]) -> bool {
    secret.starts_with(b"whpk_") || secret.starts_with(b"whsk_")
}

/// A key that signs.
enum SigningKey {
    Hmac(Vec<u8>),
    #[cfg(feature = "ed25519")]
    Ed25519([u8; 32]),
}

impl SigningKey {
    fn of(secret: &[u8], variant: Variant) -> Option<Self> {
        #[cfg(feature = "ed25519")]
        if let Some(pair) = secret.strip_prefix(b"whsk_") {
            let pair = BASE64.decode(pair).ok()?;
            return Some(Self::Ed25519(pair.get(..32)?.try_into().ok()?));
        }
        match Key::of(secret, variant)? {
            Key::Hmac(key) => Some(Self::Hmac(key)),
            #[cfg(feature = "ed25519")]
            Key::Ed25519(_) => None,
        }
    }
}

/// The signed content.
fn content<'a>(id: &'a str, timestamp: &'a str, body: &'a [u8]) -> [&'a [u8]; 5] {
    [id.as_bytes(), b".", timestamp.as_bytes(), b".", body]
}

/// The signature of a request, as read from the head.
struct Head<'a> {
    id: &'a str,
    timestamp: &'a str,
    signed_at: SystemTime,
    signatures: &'a str,
    variant: Variant,
}

impl Variant {
    /// The secrets in a text that may contain several.
    fn parts(self, secret: &Secret) -> impl Iterator<Item = &[u8]> {
        secret
            .expose()
            .split(move |byte| self == Self::Supabase && *byte == b'|')
    }
}

impl Head<'_> {
    fn is_signed_with(&self, key: &Key, body: &[u8]) -> bool {
        let content = content(self.id, self.timestamp, body);
        match key {
            Key::Hmac(key) => {
                let expected = ExpectedMac::of(key, content);
                self.macs().any(|mac| expected.matches(&mac))
            }
            #[cfg(feature = "ed25519")]
            Key::Ed25519(public) => {
                let content = content.concat();
                let mut signatures = self.ed25519_signatures().take(MAX_ED25519_SIGNATURES);
                signatures.any(|signature| {
                    super::public_key::ed25519::is_signature(public, &content, &signature)
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

    /// The well-formed signatures of one version.
    fn versioned<const N: usize>(&self, prefix: &str) -> impl Iterator<Item = [u8; N]> {
        self.signatures.split(' ').filter_map(move |item| {
            let item = match (self.variant, item.strip_prefix(prefix)) {
                (Variant::Supabase, item) => item?.trim_end_matches(','),
                (Variant::OpenAi, None) => item,
                (Variant::Specification | Variant::RawSecret | Variant::OpenAi, item) => item?,
            };
            let mut signature = [0; N];
            let length = BASE64.decode_slice(item, &mut signature).ok()?;
            (length == N).then_some(signature)
        })
    }
}
