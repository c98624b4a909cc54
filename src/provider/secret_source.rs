//! Where the secrets of a provider come from.

use std::borrow::Cow;

use http::request::Parts;

use super::keys::KeySource;
use super::secret::{Secret, Secrets};
use super::signature::SignatureError;
use super::tenant::TenantSecrets;
use crate::delivery::Tenant;
use crate::error_chain::BoxError;

/// Where the secrets of a provider come from: a [`Secret`], several [`Secrets`], or
/// [`TenantSecrets`]; or a [`KeySource`] alone, where the provider's public keys are all that it takes.
///
/// Presets take `impl Into<SecretSource>`.
#[derive(Clone, Debug)]
pub struct SecretSource {
    kind: Kind,
    keys: Option<KeySource>,
}

#[derive(Clone, Debug)]
enum Kind {
    Fixed(Secrets),
    ByTenant(TenantSecrets),
}

/// The tenant of a request and its secrets.
#[derive(Debug)]
pub(crate) struct SecretLookup<'a> {
    pub(crate) tenant: Option<Tenant>,
    /// Or why there are none.
    pub(crate) secrets: Result<Cow<'a, Secrets>, SignatureError>,
}

impl SecretSource {
    /// The secrets, if they do not depend on the request.
    pub(super) fn fixed(&self) -> Option<&Secrets> {
        match &self.kind {
            Kind::Fixed(secrets) => Some(secrets),
            Kind::ByTenant(_) => None,
        }
    }

    pub(super) fn keys(&self) -> Option<&KeySource> {
        self.keys.as_ref()
    }

    /// Looks up the secrets for a request.
    pub(crate) async fn find(&self, head: &Parts) -> Result<SecretLookup<'_>, BoxError> {
        Ok(match &self.kind {
            Kind::Fixed(secrets) => SecretLookup {
                tenant: None,
                secrets: Ok(Cow::Borrowed(secrets)),
            },
            Kind::ByTenant(tenants) => match tenants.look_up(head).await? {
                Ok((tenant, secrets)) => SecretLookup {
                    tenant: Some(tenant),
                    secrets: Ok(Cow::Owned(secrets)),
                },
                Err(error) => SecretLookup {
                    tenant: None,
                    secrets: Err(error),
                },
            },
        })
    }
}

impl From<Kind> for SecretSource {
    fn from(kind: Kind) -> Self {
        Self { kind, keys: None }
    }
}

impl From<KeySource> for SecretSource {
    fn from(keys: KeySource) -> Self {
        Self {
            kind: Kind::Fixed(Secrets::none()),
            keys: Some(keys),
        }
    }
}

impl From<Secret> for SecretSource {
    fn from(secret: Secret) -> Self {
        Secrets::new(secret).into()
    }
}

impl From<Secrets> for SecretSource {
    fn from(secrets: Secrets) -> Self {
        Kind::Fixed(secrets).into()
    }
}

impl From<TenantSecrets> for SecretSource {
    fn from(tenants: TenantSecrets) -> Self {
        Kind::ByTenant(tenants).into()
    }
}
