//! Secrets that depend on the tenant, looked up for each request.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;

use super::delivery::{Tenant, check_text};
use super::expiring_map::ExpiringMap;
use super::public_url::as_received;
use super::secret::{Secret, Secrets};
use super::signature::SignatureError;
use crate::tasks_and_errors::error_chain::BoxError;

type TenantOf = Arc<dyn Fn(&Parts) -> Option<String> + Send + Sync>;
type Lookup = Pin<Box<dyn Future<Output = Result<Option<ResolvedTenant>, BoxError>> + Send>>;
type LookUp = Arc<dyn Fn(String) -> Lookup + Send + Sync>;

/// The secrets of many tenants behind one route, looked up for each request.
///
/// It takes two functions. The first one reads the tenant from the head of a request: from the path, a header or
/// the host. It sees the URI that the server received, including a prefix that axum's `Router::nest` removes. The
/// second one looks up the secrets that are currently valid for a tenant. It returns `None` for an unknown tenant.
///
/// A request that names an unknown tenant, or no tenant, is answered like a request with a wrong signature: with 401.
/// If the provider's [keys are fetched](crate::provider::keys), these requests and requests with a wrong signature are
/// answered with 503, or with the status that the provider takes for a failure. A request whose key cannot be fetched
/// at the moment must be delivered again, and a different answer for an unknown tenant would reveal which tenants
/// exist. The response time may still reveal whether a tenant exists, because it depends on the lookup, on the number
/// of a tenant's secrets and on fetches. If all customers of a provider share its keys, as with Fireblocks, anyone who
/// has a request signed with those keys can send it to a tenant's URL, and see whether it is accepted.
///
/// If the lookup fails, if it takes longer than [`database_timeout`](crate::IdempotentWebhook::database_timeout), or if
/// one of the two functions panics, the sender gets a 503 with `Retry-After`. Until its signature is verified, a
/// request causes nothing but the lookup.
///
/// ```no_run
/// use http::request::Parts;
/// use idempotent_webhook::{IdempotentWebhook, Secret, TenantSecrets, presets};
///
/// # fn main_(pool: sqlx::PgPool) {
/// // /webhooks/{tenant}
/// let tenant = |head: &Parts| head.uri.path().rsplit('/').next().map(str::to_owned);
/// let secrets = TenantSecrets::new(tenant, {
///     let pool = pool.clone();
///     move |tenant| {
///         let pool = pool.clone();
///         async move {
///             let found: Option<String> =
///                 sqlx::query_scalar("select secret from tenants where name = $1")
///                     .bind(tenant)
///                     .fetch_optional(&pool)
///                     .await?;
///             Ok(found.map(Secret::new).transpose()?)
///         }
///     }
/// });
/// let github = presets::github(secrets.separate_ids());
/// let layer = IdempotentWebhook::new(pool, "deployments", github);
/// # }
/// ```
///
/// Lookups are [cached](Self::cache), so a rotated secret is used only once the cached one has expired. During a
/// rotation, let the lookup return both secrets for at least the time to live of the cache before the provider signs
/// with the new one. Unknown tenants are not cached. So a new tenant is known at once, and made-up names do not evict
/// real ones, but each request for an unknown tenant costs a lookup.
#[derive(Clone)]
pub struct TenantSecrets<S = Secret> {
    tenant: TenantOf,
    look_up: LookUp,
    /// The secrets by the tenant's own name.
    by_name: ExpiringMap<Arc<str>, Secrets>,
    /// The tenant's own name and secrets, by another name that a request used. They are cached separately, so that
    /// made-up spellings do not evict tenants that are requested by their own name.
    by_alias: ExpiringMap<Arc<str>, (Arc<str>, Secrets)>,
    separate_ids: bool,
    /// The type that the lookup returns. Its results are cached as text forms.
    values: PhantomData<fn() -> S>,
}

impl<S: Into<Secret> + 'static> TenantSecrets<S> {
    /// Secrets by tenant, from two functions: one reads the tenant of a request, the other looks up the tenant's
    /// [`Secret`] or [`Secrets`].
    ///
    /// If a tenant can have several names, the lookup returns a [`ResolvedTenant`]. For a preset that takes values
    /// of its own type in place of a [`Secret`], the lookup returns values of that type.
    pub fn new<F, T>(
        tenant: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static,
        look_up: impl Fn(String) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Option<T>, BoxError>> + Send + 'static,
        T: Into<ResolvedTenant<S>>,
    {
        Self {
            tenant: Arc::new(tenant),
            look_up: Arc::new(move |tenant| {
                let found = look_up(tenant);
                Box::pin(async {
                    let found: Option<ResolvedTenant<S>> = found.await?.map(Into::into);
                    Ok(found.map(ResolvedTenant::into_text_forms))
                })
            }),
            by_name: ExpiringMap::new(1000, Duration::from_secs(60)),
            by_alias: ExpiringMap::new(1000, Duration::from_secs(60)),
            separate_ids: false,
            values: PhantomData,
        }
    }
}

impl<S> TenantSecrets<S> {
    /// Caches the secrets of at most `capacity` tenants, each for at most `ttl`. It also caches up to `capacity`
    /// other names for them ([`ResolvedTenant`]). With a capacity of 0, each request costs a lookup.
    ///
    /// Default: 1000 tenants, 60 seconds.
    #[must_use]
    pub fn cache(mut self, capacity: usize, ttl: Duration) -> Self {
        self.by_name = ExpiringMap::new(capacity, ttl);
        self.by_alias = ExpiringMap::new(capacity, ttl);
        self
    }

    /// Makes the tenant part of a delivery's key, so that the same delivery id from two tenants means two
    /// deliveries.
    ///
    /// Switch it on unless the provider's ids are unique across accounts. Otherwise, anyone who knows one tenant's
    /// secret can use up delivery ids of other tenants.
    ///
    /// The tenant's name comes from the request, and no provider signs it. If the lookup accepts several names for one
    /// tenant, because it ignores case or knows former names, a captured request can be replayed under each of those
    /// names. Such a lookup must return a [`ResolvedTenant`] with the same name for all of them.
    ///
    /// Default: off.
    #[must_use]
    pub fn separate_ids(mut self) -> Self {
        self.separate_ids = true;
        self
    }

    /// Changes the type of the values, whose text forms stay the same.
    pub(super) fn cast<T>(self) -> TenantSecrets<T> {
        TenantSecrets {
            tenant: self.tenant,
            look_up: self.look_up,
            by_name: self.by_name,
            by_alias: self.by_alias,
            separate_ids: self.separate_ids,
            values: PhantomData,
        }
    }

    /// The tenant of a request and the text forms of the tenant's secrets, or why there are none.
    pub(super) async fn look_up(
        &self,
        head: &Parts,
    ) -> Result<Result<(Tenant, Secrets), SignatureError>, BoxError> {
        let name = (self.tenant)(&as_received(head));
        let Some(name) = name.filter(|name| check_text(name).is_ok()) else {
            return Ok(Err(SignatureError::NoTenant));
        };
        let name: Arc<str> = name.into();
        let tenant = |name| Tenant {
            name,
            separate_ids: self.separate_ids,
        };
        if let Some(secrets) = self.by_name.get(&name) {
            return Ok(Ok((tenant(name), secrets)));
        }
        if let Some((resolved, secrets)) = self.by_alias.get(&name) {
            return Ok(Ok((tenant(resolved), secrets)));
        }
        let Some(found) = (self.look_up)(name.to_string()).await? else {
            return Ok(Err(SignatureError::UnknownTenant));
        };
        let secrets = found.secrets;
        match found.name {
            Some(resolved) if *resolved != *name => {
                check_text(&resolved)
                    .map_err(|fault| format!("the name of the resolved tenant is {fault}"))?;
                let resolved: Arc<str> = resolved.into();
                self.by_alias
                    .insert(name, (resolved.clone(), secrets.clone()));
                Ok(Ok((tenant(resolved), secrets)))
            }
            Some(_) | None => {
                self.by_name.insert(name.clone(), secrets.clone());
                Ok(Ok((tenant(name), secrets)))
            }
        }
    }
}

impl<S> fmt::Debug for TenantSecrets<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantSecrets")
            .field("cache", &self.by_name)
            .field("separate_ids", &self.separate_ids)
            .finish_non_exhaustive()
    }
}

/// The result of a lookup: a tenant's secrets and its one name, regardless of which name the request used.
///
/// ```
/// use idempotent_webhook::provider::ResolvedTenant;
/// use idempotent_webhook::{Secret, Secrets, TenantSecrets};
///
/// let secrets = TenantSecrets::new(
///     |head| head.uri.query().map(str::to_owned),
///     async |name: String| match &*name.to_lowercase() {
///         "acme" => Ok(Some(ResolvedTenant::new("acme", Secrets::new(Secret::new("a secret")?)))),
///         _ => Ok(None),
///     },
/// )
/// .separate_ids();
/// ```
#[derive(Clone, Debug)]
pub struct ResolvedTenant<S = Secret> {
    name: Option<String>,
    secrets: Secrets<S>,
}

impl<S> ResolvedTenant<S> {
    /// A tenant's name and its secrets. [`Delivery::tenant`](crate::Delivery::tenant) returns the name. The name
    /// must not be blank, contain control characters or be longer than 255 bytes. Otherwise, the request is
    /// answered with 503, as if the lookup had failed.
    pub fn new(name: impl Into<String>, secrets: Secrets<S>) -> Self {
        Self {
            name: Some(name.into()),
            secrets,
        }
    }
}

impl<S: Into<Secret>> ResolvedTenant<S> {
    fn into_text_forms(self) -> ResolvedTenant {
        ResolvedTenant {
            name: self.name,
            secrets: self.secrets.into_text_forms(),
        }
    }
}

/// A tenant with the name that the request used.
impl<S: Into<Secret>> From<S> for ResolvedTenant<S> {
    fn from(secret: S) -> Self {
        Secrets::new(secret).into()
    }
}

/// A tenant with the name that the request used.
impl<S> From<Secrets<S>> for ResolvedTenant<S> {
    fn from(secrets: Secrets<S>) -> Self {
        Self {
            name: None,
            secrets,
        }
    }
}
