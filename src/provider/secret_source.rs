//! Where the secrets of a provider come from.

use std::borrow::Cow;
use std::marker::PhantomData;

use http::request::Parts;

use super::delivery::Tenant;
use super::keys::KeySource;
use super::secret::{Secret, Secrets};
use super::signature::SignatureError;
use super::tenant::TenantSecrets;
use crate::tasks_and_errors::error_chain::BoxError;

/// Where the secrets of a provider come from: a [`Secret`], several [`Secrets`], or [`TenantSecrets`]; or only a
/// [`KeySource`], if the provider's public keys are all that is needed.
///
/// Presets take `impl Into<SecretSource>`. If verification needs something other than one signing secret, the preset
/// takes values of its own type: one, several, or values by tenant. For example,
/// [`presets::livekit`](crate::presets::livekit) takes `impl Into<SecretSource<LiveKitKey>>`. Each such type has a text
/// form, which converts into a [`Secret`]. Schemes and [`presets::by_name`](crate::presets::by_name) work with the text
/// form.
#[derive(Clone, Debug)]
pub struct SecretSource<S = Secret> {
    /// The secrets, as text forms.
    kind: Kind,
    keys: Option<KeySource>,
    values: PhantomData<fn() -> S>,
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
    /// The secrets, or why there are none.
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

    /// Looks up the text forms for a request.
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

impl<S> SecretSource<S> {
    /// Changes the type of the values, whose text forms stay the same: from a preset's own type to plain secrets for
    /// its scheme, or from plain secrets to the type of a preset that is chosen by name.
    pub(crate) fn cast<T>(self) -> SecretSource<T> {
        SecretSource {
            kind: self.kind,
            keys: self.keys,
            values: PhantomData,
        }
    }
}

impl<S> From<Kind> for SecretSource<S> {
    fn from(kind: Kind) -> Self {
        Self {
            kind,
            keys: None,
            values: PhantomData,
        }
    }
}

impl From<KeySource> for SecretSource {
    fn from(keys: KeySource) -> Self {
        Self {
            keys: Some(keys),
            ..Kind::Fixed(Secrets::none()).into()
        }
    }
}

impl<S: Into<Secret>> From<S> for SecretSource<S> {
    fn from(secret: S) -> Self {
        Secrets::new(secret).into()
    }
}

impl<S: Into<Secret>> From<Secrets<S>> for SecretSource<S> {
    fn from(secrets: Secrets<S>) -> Self {
        Kind::Fixed(secrets.into_text_forms()).into()
    }
}

impl<S> From<TenantSecrets<S>> for SecretSource<S> {
    fn from(tenants: TenantSecrets<S>) -> Self {
        Kind::ByTenant(tenants.cast()).into()
    }
}
