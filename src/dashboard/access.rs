//! Who may see and do what.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use http::request::Parts;

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
    operator: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    None,
    Read,
    Operate,
}

impl Access {
    /// Nothing: the answer is a 403.
    pub fn none() -> Self {
        Self::new(Level::None)
    }

    /// All pages, but no payloads, no headers of deliveries, and no actions.
    pub fn read() -> Self {
        Self::new(Level::Read)
    }

    /// All pages and actions, but no payloads and no headers of deliveries.
    pub fn operate() -> Self {
        Self::new(Level::Operate)
    }

    fn new(level: Level) -> Self {
        Self {
            level,
            payloads: false,
            operator: None,
        }
    }

    /// Also the bodies and the kept headers of deliveries, which may hold personal data. Of no effect
    /// with [`none`](Self::none).
    pub fn with_payloads(mut self) -> Self {
        self.payloads = true;
        self
    }

    /// Who it is, for the record of what operators did.
    pub fn named(mut self, operator: impl Into<Arc<str>>) -> Self {
        let operator: Arc<str> = operator.into();
        // Postgres cannot hold NUL.
        self.operator = Some(operator.replace('\0', "").into());
        self
    }

    pub(super) fn may_read(&self) -> bool {
        self.level >= Level::Read
    }

    pub(super) fn may_operate(&self) -> bool {
        self.level >= Level::Operate
    }

    pub(super) fn may_see_payloads(&self) -> bool {
        self.may_read() && self.payloads
    }

    pub(super) fn operator(&self) -> Option<&str> {
        self.operator.as_deref()
    }
}

type Decision = Pin<Box<dyn Future<Output = Access> + Send>>;

/// Decides for each request.
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
