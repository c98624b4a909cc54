//! Secrets by tenant: which one a request is for, and what its secrets are now.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;

use crate::memory::Memory;
use crate::secret::{Secret, Secrets};
use crate::source::is_usable;

type BoxError = Box<dyn Error + Send + Sync>;
type TenantOf = Arc<dyn Fn(&Parts) -> Option<String> + Send + Sync>;
type LookedUp = Pin<Box<dyn Future<Output = Result<Option<ResolvedTenant>, BoxError>> + Send>>;
type LookUp = Arc<dyn Fn(String) -> LookedUp + Send + Sync>;

/// The secrets of many tenants behind one route, looked up as requests come in.
///
/// It takes two functions. The first tells from the head of a request which tenant it is
/// for: by a part of the path, a header, the host. The second looks up the secrets that
/// are valid now for a tenant, and says `None` for one it does not know.
///
/// A request for an unknown tenant, or for none, is answered like one with a wrong
/// signature, 401. If the lookup fails, or takes longer than
/// [`database_time`](crate::IdempotentWebhook::database_time), the sender gets a 503 with
/// `Retry-After`. The lookup is the one thing that happens before the signature has been
/// verified.
///
/// ```no_run
/// use idempotent_webhook::{IdempotentWebhook, Provider, Secret, Secrets, TenantSecrets};
/// use http::request::Parts;
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
///             let secret = found.map(Secret::new).transpose()?;
///             Ok(secret.map(Secrets::new))
///         }
///     }
/// });
/// let github = Provider::github(secrets.separate_ids());
/// let layer = IdempotentWebhook::new(pool, "deployments", github);
/// # }
/// ```
///
/// What has been looked up is kept for a time ([`cache`](Self::cache)), so a rotated
/// secret is picked up when that is over. Let the lookup return the new one beside the old
/// one for that long before the provider signs with it. Unknown tenants are
/// not kept: a new one is known at once, and made-up names do not push real ones out, but
/// each costs a lookup.
#[derive(Clone)]
pub struct TenantSecrets {
    tenant: TenantOf,
    look_up: LookUp,
    /// By the name of the tenant, which is the one that the request gives.
    known: Memory<Arc<str>, Secrets>,
    /// By another name that the request gives. Apart, so that made-up spellings do not push
    /// tenants out that are called by their own name.
    aliases: Memory<Arc<str>, (Arc<str>, Secrets)>,
    separate_ids: bool,
}

impl TenantSecrets {
    /// Secrets by tenant, from a function that names the tenant of a request and another
    /// that looks up the tenant's [`Secrets`], or a [`ResolvedTenant`] where several names may
    /// stand for one tenant.
    pub fn new<F, T>(
        tenant: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static,
        look_up: impl Fn(String) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Option<T>, Box<dyn Error + Send + Sync>>> + Send + 'static,
        T: Into<ResolvedTenant>,
    {
        Self {
            tenant: Arc::new(tenant),
            look_up: Arc::new(move |tenant| {
                let found = look_up(tenant);
                Box::pin(async { Ok(found.await?.map(Into::into)) })
            }),
            known: Memory::new(1000, Duration::from_secs(60)),
            aliases: Memory::new(1000, Duration::from_secs(60)),
            separate_ids: false,
        }
    }

    /// Keeps the secrets of at most `capacity` tenants, each for at most `time`, and as many
    /// other names for them ([`ResolvedTenant`]). A capacity of 0 looks them up for every
    /// request.
    ///
    /// Default: 1000 tenants, 60 seconds.
    #[must_use]
    pub fn cache(mut self, capacity: usize, time: Duration) -> Self {
        self.known = Memory::new(capacity, time);
        self.aliases = Memory::new(capacity, time);
        self
    }

    /// Makes the tenant part of the key by which a delivery is known: the same delivery id
    /// from two tenants is then two deliveries.
    ///
    /// Switch it on unless the provider's ids are unique beyond one account. Whoever knows
    /// a tenant's secret can otherwise take ids away from the others.
    ///
    /// The name comes from the request, and no provider signs it. If the lookup takes several
    /// names for one tenant, because it ignores case or knows former names, then a captured
    /// request can be sent again under each of them. Such a lookup has to return a
    /// [`ResolvedTenant`], whose name is the same for all.
    ///
    /// Default: off.
    #[must_use]
    pub fn separate_ids(mut self) -> Self {
        self.separate_ids = true;
        self
    }

    /// The tenant of a request and its secrets. `None`: nobody that is known.
    async fn look_up(&self, head: &Parts) -> Result<Option<(Tenant, Secrets)>, BoxError> {
        let Some(name) = (self.tenant)(head).filter(|name| is_usable(name)) else {
            return Ok(None);
        };
        let name: Arc<str> = name.into();
        let tenant = |name| Tenant {
            name,
            separate_ids: self.separate_ids,
        };
        if let Some(secrets) = self.known.get(&name) {
            return Ok(Some((tenant(name), secrets)));
        }
        if let Some((resolved, secrets)) = self.aliases.get(&name) {
            return Ok(Some((tenant(resolved), secrets)));
        }
        let Some(found) = (self.look_up)(name.to_string()).await? else {
            return Ok(None);
        };
        let secrets = found.secrets;
        match found.name {
            Some(resolved) if *resolved != *name => {
                if !is_usable(&resolved) {
                    return Err("the lookup gave the tenant a name that no key can hold".into());
                }
                let resolved: Arc<str> = resolved.into();
                self.aliases
                    .insert(name, (resolved.clone(), secrets.clone()));
                Ok(Some((tenant(resolved), secrets)))
            }
            Some(_) | None => {
                self.known.insert(name.clone(), secrets.clone());
                Ok(Some((tenant(name), secrets)))
            }
        }
    }
}

impl fmt::Debug for TenantSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantSecrets")
            .field("known", &self.known)
            .field("separate_ids", &self.separate_ids)
            .finish_non_exhaustive()
    }
}

/// What a lookup has found: a tenant's secrets, and the one name by which it is known, whatever
/// name the request gave.
///
/// ```
/// use idempotent_webhook::{ResolvedTenant, Secret, Secrets, TenantSecrets};
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
pub struct ResolvedTenant {
    name: Option<String>,
    secrets: Secrets,
}

impl ResolvedTenant {
    /// A tenant's name and its secrets. [`Delivery::tenant`](crate::Delivery::tenant) tells the
    /// name. It is not blank, has no control characters and at most 255 bytes; another is
    /// answered with 503, as a lookup that failed.
    pub fn new(name: impl Into<String>, secrets: Secrets) -> Self {
        Self {
            name: Some(name.into()),
            secrets,
        }
    }
}

/// A tenant whose name is the one that the request gave.
impl From<Secrets> for ResolvedTenant {
    fn from(secrets: Secrets) -> Self {
        Self {
            name: None,
            secrets,
        }
    }
}

/// Whom a delivery is for.
#[derive(Clone, Debug)]
pub(crate) struct Tenant {
    pub(crate) name: Arc<str>,
    /// Whether it is part of the delivery's key.
    pub(crate) separate_ids: bool,
}

/// Where the secrets of a provider come from: a [`Secret`], several [`Secrets`], or
/// [`TenantSecrets`].
#[derive(Clone, Debug)]
pub struct Keys(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Fixed(Secrets),
    ByTenant(TenantSecrets),
}

/// What is known of whom a request is for.
#[derive(Debug, Default)]
pub(crate) struct Found<'a> {
    pub(crate) tenant: Option<Tenant>,
    /// None if the tenant is not known.
    pub(crate) secrets: Option<Cow<'a, Secrets>>,
}

impl Keys {
    /// The secrets that hold for every request, if there are such.
    pub(crate) fn fixed(&self) -> Option<&Secrets> {
        match &self.0 {
            Kind::Fixed(secrets) => Some(secrets),
            Kind::ByTenant(_) => None,
        }
    }

    pub(crate) async fn find(&self, head: &Parts) -> Result<Found<'_>, BoxError> {
        Ok(match &self.0 {
            Kind::Fixed(secrets) => Found {
                tenant: None,
                secrets: Some(Cow::Borrowed(secrets)),
            },
            Kind::ByTenant(tenants) => match tenants.look_up(head).await? {
                Some((tenant, secrets)) => Found {
                    tenant: Some(tenant),
                    secrets: Some(Cow::Owned(secrets)),
                },
                None => Found::default(),
            },
        })
    }
}

impl From<Secret> for Keys {
    fn from(secret: Secret) -> Self {
        Secrets::new(secret).into()
    }
}

impl From<Secrets> for Keys {
    fn from(secrets: Secrets) -> Self {
        Self(Kind::Fixed(secrets))
    }
}

impl From<TenantSecrets> for Keys {
    fn from(tenants: TenantSecrets) -> Self {
        Self(Kind::ByTenant(tenants))
    }
}
