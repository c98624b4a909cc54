//! Access: who may see and do what. `page_list.rs` lists the right that each page needs.

use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use http::request::Parts;

use crate::recovery::masked;

/// What a request to the dashboard may do.
///
/// ```
/// use idempotent_webhook::dashboard::Access;
///
/// let operator = Access::operate().with_payloads().named("ada@example.com");
/// let auditor = Access::read();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Access {
    level: Level,
    payloads: bool,
    erasure: bool,
    adoption: bool,
    operator: Option<Arc<str>>,
    /// The names of the visible endpoints. `None` if all are visible.
    endpoints: Option<Arc<[String]>>,
    tenants: Option<Arc<[String]>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    None,
    Read,
    Operate,
}

impl Access {
    /// Allows nothing: the answer is a 403, which does not ask for a password. To ask for a password, for example with
    /// basic auth, put a login middleware in front of the dashboard.
    pub fn none() -> Self {
        Self::new(Level::None)
    }

    /// Allows all pages, but no payloads, no delivery headers and no actions. In reasons, quoted texts and digits are
    /// masked, because parser errors quote payloads.
    pub fn read() -> Self {
        Self::new(Level::Read)
    }

    /// Allows all pages, and all actions except [erasure](Self::with_erasure) and [adoption](Self::with_adoption). As
    /// with [`read`](Self::read), payloads and delivery headers are not shown.
    pub fn operate() -> Self {
        Self::new(Level::Operate)
    }

    fn new(level: Level) -> Self {
        Self {
            level,
            payloads: false,
            erasure: false,
            adoption: false,
            operator: None,
            endpoints: None,
            tenants: None,
        }
    }

    /// Also shows the bodies and kept headers of deliveries, and failure reasons exactly as the handler gave them. All
    /// of these may contain personal data. Has no effect with [`none`](Self::none).
    pub fn with_payloads(mut self) -> Self {
        self.payloads = true;
        self
    }

    /// Also allows operators to [erase](crate::Endpoint::erase) the content of deliveries. Has no effect without
    /// [`operate`](Self::operate).
    pub fn with_erasure(mut self) -> Self {
        self.erasure = true;
        self
    }

    /// Also allows operators to [give the database another environment](crate::recovery::adopt). Has no effect without
    /// [`operate`](Self::operate). An access that is limited to some endpoints or tenants cannot adopt either, because
    /// an environment belongs to the whole database.
    pub fn with_adoption(mut self) -> Self {
        self.adoption = true;
        self
    }

    /// Sets the operator's name for the record of actions.
    pub fn named(mut self, operator: impl Into<Arc<str>>) -> Self {
        let operator: Arc<str> = operator.into();
        // Postgres cannot hold NUL.
        self.operator = Some(operator.replace('\0', "").into());
        self
    }

    /// Limits the access to these endpoints. No page, action or number includes any other endpoint.
    ///
    /// ```
    /// use idempotent_webhook::dashboard::Access;
    ///
    /// let shipping = Access::operate().of_endpoints(["parcels", "returns"]);
    /// ```
    pub fn of_endpoints(mut self, endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let endpoints: BTreeSet<String> = endpoints.into_iter().map(Into::into).collect();
        self.endpoints = Some(endpoints.into_iter().collect());
        self
    }

    /// Limits the access to the deliveries of these tenants, by the names that the application gave them. Numbers are
    /// not counted by tenant, so the pages with numbers and the record of actions are not available. The lists, the
    /// delivery pages and the look-up are available.
    pub fn of_tenants(mut self, tenants: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tenants = Some(tenants.into_iter().map(Into::into).collect());
        self
    }

    pub(super) fn without_actions(self) -> Self {
        Self {
            level: self.level.min(Level::Read),
            ..self
        }
    }

    /// The names of the visible endpoints, unless all are visible.
    pub(super) fn endpoints(&self) -> Option<&[String]> {
        self.endpoints.as_deref()
    }

    pub(super) fn sees_endpoint(&self, endpoint: &str) -> bool {
        self.endpoints()
            .is_none_or(|endpoints| endpoints.iter().any(|known| known == endpoint))
    }

    /// The names of the visible tenants, unless all are visible.
    pub(super) fn tenants(&self) -> Option<&[String]> {
        self.tenants.as_deref()
    }

    pub(super) fn sees_tenant(&self, tenant: &str) -> bool {
        self.tenants()
            .is_none_or(|tenants| tenants.iter().any(|known| known == tenant))
    }

    /// A reason, masked unless payloads may be seen.
    pub(super) fn reason(&self, reason: String) -> String {
        if self.may_see_payloads() {
            reason
        } else {
            masked(&reason)
        }
    }

    pub(super) fn may_read(&self) -> bool {
        self.level >= Level::Read
    }

    pub(super) fn may_operate(&self) -> bool {
        self.level >= Level::Operate
    }

    pub(super) fn may_erase(&self) -> bool {
        self.may_operate() && self.erasure
    }

    pub(super) fn may_adopt(&self) -> bool {
        let sees_all = self.endpoints.is_none() && self.tenants.is_none();
        self.may_operate() && self.adoption && sees_all
    }

    pub(super) fn may_see_payloads(&self) -> bool {
        self.may_read() && self.payloads
    }

    pub(super) fn operator(&self) -> Option<&str> {
        self.operator.as_deref()
    }
}

type Decision = Pin<Box<dyn Future<Output = Access> + Send>>;

/// The function of the application that decides what each request may do.
#[derive(Clone)]
pub(super) struct Authorizer(Arc<dyn Fn(&Parts) -> Decision + Send + Sync>);

impl Authorizer {
    pub(super) fn new<F>(authorize: impl Fn(&Parts) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Access> + Send + 'static,
    {
        Self(Arc::new(move |head| Box::pin(authorize(head))))
    }

    pub(super) async fn access(&self, head: &Parts) -> Access {
        (self.0)(head).await
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer").finish_non_exhaustive()
    }
}
