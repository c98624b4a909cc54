//! `GitHubDeliveries`: GitHub's list of the deliveries of a webhook, for reconciliation.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::super::client::{Api, Authorization, Http, next_page, parse};
use super::super::items::{DAY, are_older, item};
use super::api;
use crate::provider::Secret;
use crate::provider_api::reconcile::{EventPage, EventSource, ListedEvent, PageQuery};
use crate::provider_api::source_error::SourceError;

const DELIVERY: HeaderName = HeaderName::from_static("x-github-delivery");
const EVENT: HeaderName = HeaderName::from_static("x-github-event");

/// The longest pause between two redelivery requests. With a longer pause, a request could time out before it is sent.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// [Deliveries of a webhook of GitHub](https://docs.github.com/rest/repos/webhooks#list-deliveries-for-a-repository-webhook),
/// for [`presets::github`](crate::presets::github).
///
/// - Listed for: 3 days, or 7 days on GitHub Enterprise Server.
/// - Rights: to read and write the webhooks of the repository or of the organization (`admin:repo_hook`,
///   `admin:org_hook`); for an app, its JWT.
/// - It lists each delivery attempt for this one webhook.
/// - Bodies: none. **The round asks GitHub to deliver again.** GitHub then sends an ordinary webhook, signed and with
///   the same id, so [`Delivery::is_reconciled`](crate::Delivery::is_reconciled) is `false` for it. If this redelivery
///   fails, GitHub lists it as another attempt, which a later round finds.
/// - Order: newest first.
/// - It does not list events that occurred while the webhook was inactive or before it existed, nor webhooks of
///   Marketplace and of Sponsors.
/// - Limits: 5,000 requests an hour. A round takes one request per 100 attempts and one for each missing delivery, with
///   a second between two redelivery requests. The headers of a 403 or a 429 say how long to wait.
#[derive(Clone)]
pub struct GitHubDeliveries {
    api: Api,
    path: String,
    name: Option<String>,
    kept_for: Duration,
    pause: Duration,
    /// When GitHub was last asked to deliver again. The lock is held during such a request.
    asked_at: Arc<Mutex<Option<Instant>>>,
}

#[derive(Deserialize)]
struct Attempt {
    /// The id may be larger than the integers that a float can hold exactly.
    id: u64,
    guid: String,
    delivered_at: String,
    event: String,
    #[serde(default)]
    action: Option<String>,
}

impl GitHubDeliveries {
    /// The deliveries of a webhook of a repository, such as `octocat/hello-world`.
    pub fn repository(token: Secret, repository: &str, hook: u64) -> Self {
        let path = format!("/repos/{repository}/hooks/{hook}/deliveries");
        Self::new(Authorization::Bearer(token), path)
    }

    /// The deliveries of a webhook of an organization.
    pub fn organization(token: Secret, organization: &str, hook: u64) -> Self {
        let path = format!("/orgs/{organization}/hooks/{hook}/deliveries");
        Self::new(Authorization::Bearer(token), path)
    }

    /// The deliveries of the webhook of a GitHub App. `jwt` is called before each request, because a JWT is valid for
    /// ten minutes at most.
    pub fn app(jwt: impl Fn() -> Secret + Send + Sync + 'static) -> Self {
        let path = "/app/hook/deliveries".to_owned();
        Self::new(Authorization::BearerOf(Arc::new(jwt)), path)
    }

    fn new(authorization: Authorization, path: String) -> Self {
        Self {
            api: api(authorization),
            path,
            name: None,
            kept_for: 3 * DAY,
            pause: Duration::from_secs(1),
            asked_at: Arc::default(),
        }
    }

    /// Sets for how long GitHub lists a delivery. Default: 3 days. GitHub Enterprise Server lists it for 7 days.
    #[must_use]
    pub fn kept_for(mut self, time: Duration) -> Self {
        self.kept_for = time;
        self
    }

    /// Sets the minimum time from one redelivery request to the next, at most 15 seconds. Default: a second, as GitHub
    /// asks for. GitHub Enterprise Server may need no pause.
    #[must_use]
    pub fn redelivery_pause(mut self, pause: Duration) -> Self {
        self.pause = pause.min(LONGEST_PAUSE);
        self
    }

    /// Sets another name for the list. If an endpoint has several lists, such as for two apps that send to one route,
    /// each list needs its own name. Default: `github` and the path of the API.
    ///
    /// The name must not change, because the position of the list is stored under it. Under a new name, the list has no
    /// position, and starts with a first round.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets how the API is called. For GitHub Enterprise Server, the base is `https://<host>/api/v3`.
    #[must_use]
    pub fn http(mut self, http: Http) -> Self {
        self.api.http(http);
        self
    }
}

impl EventSource for GitHubDeliveries {
    fn name(&self) -> String {
        let name = || format!("github {}", self.path);
        self.name.clone().unwrap_or_else(name)
    }

    fn headers(&self) -> Vec<HeaderName> {
        vec![DELIVERY, EVENT]
    }

    fn has_bodies(&self) -> bool {
        false
    }

    fn goes_back(&self) -> Option<Duration> {
        Some(self.kept_for)
    }

    async fn page(&self, query: &PageQuery) -> Result<EventPage, SourceError> {
        let mut parameters = vec![("per_page", "100".to_owned())];
        parameters.extend(query.cursor().map(|cursor| ("cursor", cursor.to_owned())));
        let answer = self.api.get(&self.path, &parameters).await?;
        let attempts: Vec<Box<RawValue>> = answer.json()?;
        let mut events = Vec::with_capacity(attempts.len());
        for raw in &attempts {
            events.push(item(query.since(), raw, |json| {
                let attempt: Attempt = parse(json)?;
                let time = humantime::parse_rfc3339(&attempt.delivered_at)?;
                let event = ListedEvent::to_redeliver(time, attempt.id.to_string())
                    .header(DELIVERY, HeaderValue::from_str(&attempt.guid)?)
                    .header(EVENT, HeaderValue::from_str(&attempt.event)?);
                Ok(match attempt.action {
                    Some(action) => event.event_action(action),
                    None => event,
                })
            }));
        }
        let is_older = are_older(&events, query.since());
        let next = next_page(&answer.headers, "cursor").filter(|_| !is_older);
        Ok(EventPage::new(events, next))
    }

    async fn redeliver(&self, redelivery: &str) -> Result<(), SourceError> {
        let path = format!("{}/{redelivery}/attempts", self.path);
        let mut asked_at = self.asked_at.lock().await;
        if let Some(asked_at) = *asked_at {
            tokio::time::sleep_until(asked_at + self.pause).await;
        }
        *asked_at = Some(Instant::now());
        self.api.post(&path).await.map(drop)
    }
}

impl fmt::Debug for GitHubDeliveries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GitHubDeliveries")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
