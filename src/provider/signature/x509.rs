//! X.509 certificates and their chains (RFC 5280): the only user of `rustls-webpki` and `x509-cert`.

use std::fmt;
use std::time::SystemTime;

use rustls_pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, ExtendedKeyUsageValidator, KeyPurposeIdIter};
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::{Decode, DecodePem, Encode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::PublicKey;

/// A certificate that has not been verified.
#[derive(Clone)]
pub(crate) struct Certificate {
    der: Vec<u8>,
    parsed: x509_cert::Certificate,
}

impl Certificate {
    pub(crate) fn from_der(der: &[u8]) -> Option<Self> {
        Some(Self {
            der: der.to_owned(),
            parsed: x509_cert::Certificate::from_der(der).ok()?,
        })
    }

    pub(crate) fn from_pem(pem: &str) -> Option<Self> {
        let parsed = x509_cert::Certificate::from_pem(pem).ok()?;
        let der = parsed.to_der().ok()?;
        Some(Self { der, parsed })
    }

    pub(crate) fn to_der(&self) -> &[u8] {
        &self.der
    }

    pub(crate) fn key(&self) -> Option<PublicKey> {
        let key = self.parsed.tbs_certificate().subject_public_key_info();
        PublicKey::from_der(&key.to_der().ok()?)
    }

    /// Checks that the certificate was valid at a time, and is for a name that `is_meant` accepts. Use it only for a
    /// certificate that comes without the certificates of its issuers and was fetched from the provider's own address.
    /// The TLS connection to that address vouches for the certificate.
    pub(crate) fn check(
        &self,
        at: SystemTime,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<(), CertificateError> {
        let certificate = self.parsed.tbs_certificate();
        let validity = certificate.validity();
        let at = at
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        if at < validity.not_before.to_unix_duration() {
            return Err(CertificateError::NotYetValid);
        }
        if at > validity.not_after.to_unix_duration() {
            return Err(CertificateError::Expired);
        }
        let is_meant = match self.dns_names()? {
            names if names.is_empty() => {
                let name = certificate.subject().common_name().ok().flatten();
                name.is_some_and(|name| is_meant(&name.value()))
            }
            names => names.iter().any(|name| is_meant(name)),
        };
        is_meant.then_some(()).ok_or(CertificateError::Name)
    }

    /// The DNS names among the certificate's alternative names. The common name counts only if there are none
    /// (RFC 6125, section 6.4.4).
    fn dns_names(&self) -> Result<Vec<String>, CertificateError> {
        let extension = self
            .parsed
            .tbs_certificate()
            .get_extension::<SubjectAltName>()
            .map_err(|_| CertificateError::Malformed)?;
        let names = extension.map(|(_, names)| names.0).unwrap_or_default();
        let names = names.into_iter().filter_map(|name| match name {
            GeneralName::DnsName(name) => Some(name.to_string()),
            _ => None,
        });
        Ok(names.collect())
    }

    fn has_extension(&self, oid: ObjectIdentifier) -> bool {
        let extensions = self.parsed.tbs_certificate().extensions();
        extensions.is_some_and(|all| all.iter().any(|extension| extension.extn_id == oid))
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = self.parsed.tbs_certificate().subject();
        write!(f, "Certificate({subject})")
    }
}

/// Why certificates do not prove who owns a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateError {
    /// A certificate cannot be read.
    Malformed,
    /// There are more certificates, or fewer, than the provider sends.
    Length,
    /// The chain does not end at the root, or a certificate in it may not issue others.
    UnknownIssuer,
    /// A certificate was not valid yet.
    NotYetValid,
    /// A certificate had expired.
    Expired,
    /// A certificate lacks an extension that the provider's own certificates have.
    MissingExtension,
    /// The certificate is for another name.
    Name,
    /// Another fault of a certificate.
    Invalid,
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "a certificate cannot be read",
            Self::Length => "the chain of certificates is longer or shorter than the provider's",
            Self::UnknownIssuer => "the chain of certificates does not end at the provider's root",
            Self::NotYetValid => "a certificate was not valid yet",
            Self::Expired => "a certificate had expired",
            Self::MissingExtension => "a certificate lacks an extension of the provider's own",
            Self::Name => "the certificate is for another name",
            Self::Invalid => "a certificate is not valid",
        })
    }
}

impl std::error::Error for CertificateError {}

/// A chain of three certificates that a request carries, and that must end at a known root.
///
/// The chain consists of the certificate that signs, the certificate of its issuer, and the root. Use the chain in a
/// [`SignatureScheme`](super::SignatureScheme) of your own. Feature `x509`.
///
/// `rustls-webpki` checks the signatures (ECDSA with P-256, P-384 or P-521, RSA from 2048 bits, Ed25519), the
/// validity of the first two certificates, and that the issuer is a CA. The root is trusted as it is. Whether a
/// certificate has been revoked is not checked.
///
/// ```
/// use std::time::SystemTime;
/// use idempotent_webhook::provider::signature::{CertificateError, PublicKey, X509Chain};
///
/// # fn key(root: &str, sent: &[Vec<u8>], at: SystemTime) -> Result<PublicKey, CertificateError> {
/// let chain = X509Chain::new(root)?.leaf_extension("1.2.840.113635.100.6.11.1");
/// let key = chain.verify(sent, at)?;
/// # Ok(key)
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct X509Chain {
    root: Certificate,
    leaf_extension: Option<ObjectIdentifier>,
    issuer_extension: Option<ObjectIdentifier>,
}

impl X509Chain {
    /// A chain that ends at this root, in PEM.
    ///
    /// # Errors
    ///
    /// [`CertificateError::Malformed`] if the root cannot be read.
    pub fn new(root: &str) -> Result<Self, CertificateError> {
        let root = Certificate::from_pem(root).ok_or(CertificateError::Malformed)?;
        Ok(Self::of(root))
    }

    pub(crate) fn of(root: Certificate) -> Self {
        Self {
            root,
            leaf_extension: None,
            issuer_extension: None,
        }
    }

    /// Requires the certificate that signs to have an extension with this OID, such as `1.2.840.113635.100.6.11.1`.
    ///
    /// # Panics
    ///
    /// If `oid` is not an OID.
    #[must_use]
    pub fn leaf_extension(mut self, oid: &str) -> Self {
        self.leaf_extension = Some(ObjectIdentifier::new_unwrap(oid));
        self
    }

    /// Requires the issuer's certificate to have an extension with this OID.
    ///
    /// # Panics
    ///
    /// If `oid` is not an OID.
    #[must_use]
    pub fn issuer_extension(mut self, oid: &str) -> Self {
        self.issuer_extension = Some(ObjectIdentifier::new_unwrap(oid));
        self
    }

    /// The key of the first certificate of a chain, if the chain was valid at a time. The certificates are in DER. The
    /// third certificate is not read: the known root takes its place.
    ///
    /// # Errors
    ///
    /// A [`CertificateError`] that says what is wrong with the chain.
    pub fn verify(&self, chain: &[Vec<u8>], at: SystemTime) -> Result<PublicKey, CertificateError> {
        let [leaf, issuer, _] = chain else {
            return Err(CertificateError::Length);
        };
        let read = |der: &[u8]| Certificate::from_der(der).ok_or(CertificateError::Malformed);
        let (leaf, issuer) = (read(leaf)?, read(issuer)?);
        let lacks = |certificate: &Certificate, oid: Option<ObjectIdentifier>| {
            oid.is_some_and(|oid| !certificate.has_extension(oid))
        };
        if lacks(&leaf, self.leaf_extension) || lacks(&issuer, self.issuer_extension) {
            return Err(CertificateError::MissingExtension);
        }
        self.check_path(&leaf.der, &issuer.der, at)?;
        leaf.key().ok_or(CertificateError::Malformed)
    }

    fn check_path(
        &self,
        leaf: &[u8],
        issuer: &[u8],
        at: SystemTime,
    ) -> Result<(), CertificateError> {
        let root = self.root.der.as_slice().into();
        let anchor = webpki::anchor_from_trusted_cert(&root);
        let anchors = [anchor.map_err(|_| CertificateError::Malformed)?];
        let (leaf, issuers): (CertificateDer<'_>, [CertificateDer<'_>; 1]) =
            (leaf.into(), [issuer.into()]);
        let since_epoch = at
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let path = EndEntityCert::try_from(&leaf).map_err(|error| fault(&error))?;
        let path = path
            .verify_for_usage(
                webpki::ALL_VERIFICATION_ALGS,
                &anchors,
                &issuers,
                UnixTime::since_unix_epoch(since_epoch),
                AnyUsage,
                None,
                None,
            )
            .map_err(|error| fault(&error))?;
        // If the path did not have exactly one intermediate certificate, the certificate whose extension was checked
        // might not be the issuer of the leaf.
        match path.intermediate_certificates().count() {
            1 => Ok(()),
            _ => Err(CertificateError::UnknownIssuer),
        }
    }
}

/// Accepts any key usage, because the provider's own extensions say what a certificate is for.
struct AnyUsage;

impl ExtendedKeyUsageValidator for AnyUsage {
    fn validate(&self, _: KeyPurposeIdIter<'_, '_>) -> Result<(), webpki::Error> {
        Ok(())
    }
}

fn fault(error: &webpki::Error) -> CertificateError {
    match error {
        webpki::Error::BadDer => CertificateError::Malformed,
        webpki::Error::CertExpired { .. } => CertificateError::Expired,
        webpki::Error::CertNotValidYet { .. } => CertificateError::NotYetValid,
        webpki::Error::UnknownIssuer
        | webpki::Error::EndEntityUsedAsCa
        | webpki::Error::InvalidSignatureForPublicKey => CertificateError::UnknownIssuer,
        _ => CertificateError::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `CN` is `sns.amazonaws.com`, and the only alternative name is `evil.test`.
    const OTHER_NAME: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBpDCCAUugAwIBAgIUHHOFJpmjISykAdA6wh54WdEEEmowCgYIKoZIzj0EAwIw\n\
HDEaMBgGA1UEAwwRc25zLmFtYXpvbmF3cy5jb20wIBcNMjYxMTI0MTMzODA0WhgP\n\
MjEyNjEwMzExMzM4MDRaMBwxGjAYBgNVBAMMEXNucy5hbWF6b25hd3MuY29tMFkw\n\
EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE2RWAJg7UtzEkdWwAau3XVRdtApbRJ3Up\n\
x/u1m2Noz3YJhTXvCHjkDeluQAPgcA4d0RJEp5A9nExvfVPWEiYYbaNpMGcwHQYD\n\
VR0OBBYEFFeRrfritPraFdePhv9KuvnklShnMB8GA1UdIwQYMBaAFFeRrfritPra\n\
FdePhv9KuvnklShnMA8GA1UdEwEB/wQFMAMBAf8wFAYDVR0RBA0wC4IJZXZpbC50\n\
ZXN0MAoGCCqGSM49BAMCA0cAMEQCIEluN5OggKj21Sq3/mUVtipVxyYA+8qNBoDZ\n\
ocg2vifnAiAMkDER8toLyfuGrfTynbcM6pPjxt39Z7Dnsa3btSOrbg==\n\
-----END CERTIFICATE-----\n";

    #[test]
    fn the_common_name_does_not_count_beside_alternative_names() {
        let certificate = Certificate::from_pem(OTHER_NAME);
        let check = |expected: &str| {
            let now = SystemTime::now();
            certificate
                .as_ref()
                .map(|one| one.check(now, |name| name == expected))
        };
        assert_eq!(check("evil.test"), Some(Ok(())));
        assert_eq!(
            check("sns.amazonaws.com"),
            Some(Err(CertificateError::Name))
        );
    }
}
