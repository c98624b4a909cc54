//! Where the secrets of a provider come from.

use std::borrow::Cow;

use http::request::Parts;

use super::secret::{Secret, Secrets};
use super::tenant::TenantSecrets;
use crate::delivery::Tenant;
use crate::error::BoxError;

/// Where the secrets of a provider come from: a [`Secret`], several [`Secrets`], or
/// [`TenantSecrets`].
///
/// Presets take `impl Into<SecretSource>`.
#[derive(Clone, Debug)]
pub struct SecretSource(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Fixed(Secrets),
    ByTenant(TenantSecrets),
}

/// The tenant of a request and its secrets.
#[derive(Debug, Default)]
pub(crate) struct SecretLookup<'a> {
    pub(crate) tenant: Option<Tenant>,
    /// `None` if the tenant is unknown.
    pub(crate) secrets: Option<Cow<'a, Secrets>>,
}

impl SecretSource {
    /// The secrets, if they do not depend on the request.
    pub(super) fn fixed(&self) -> Option<&Secrets> {
        match &self.0 {
            Kind::Fixed(secrets) => Some(secrets),
            Kind::ByTenant(_) => None,
        }
    }

    /// Looks up the secrets for a request.
    pub(crate) async fn find(&self, head: &Parts) -> Result<SecretLookup<'_>, BoxError> {
        Ok(match &self.0 {
            Kind::Fixed(secrets) => SecretLookup {
                tenant: None,
                secrets: Some(Cow::Borrowed(secrets)),
            },
            Kind::ByTenant(tenants) => match tenants.look_up(head).await? {
                Some((tenant, secrets)) => SecretLookup {
                    tenant: Some(tenant),
                    secrets: Some(Cow::Owned(secrets)),
                },
                None => SecretLookup::default(),
            },
        })
    }
}

impl From<Secret> for SecretSource {
    fn from(secret: Secret) -> Self {
        Secrets::new(secret).into()
    }
}

impl From<Secrets> for SecretSource {
    fn from(secrets: Secrets) -> Self {
        Self(Kind::Fixed(secrets))
    }
}

impl From<TenantSecrets> for SecretSource {
    fn from(tenants: TenantSecrets) -> Self {
        Self(Kind::ByTenant(tenants))
    }
}
