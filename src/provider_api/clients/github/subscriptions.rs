//! `GitHubSubscriptions`: the webhooks of a GitHub repository or organization.

use std::fmt;

use serde::Deserialize;

use super::super::client::{Api, Authorization, Http, next_page};
use super::super::pages::Pages;
use super::api;
use crate::provider::Secret;
use crate::provider_api::source_error::SourceError;
use crate::provider_api::subscriptions::{Subscription, SubscriptionSource};

/// [Webhooks of a repository](https://docs.github.com/rest/repos/webhooks#list-repository-webhooks) or
/// [of an organization](https://docs.github.com/rest/orgs/webhooks#list-organization-webhooks) of GitHub, for
/// [`presets::github`](crate::presets::github).
///
/// - Rights: to read the webhooks of the repository or of the organization.
/// - GitHub's events have no versions. Actions such as `opened` cannot be subscribed separately: a subscription to
///   `pull_request` includes `pull_request.opened`.
/// - If the last answer that GitHub got was not a 2xx, its status is reported as a hint, not as an error. GitHub
///   forgets the status after 30 days.
/// - The list of a repository does not include the webhooks of the organization. Neither list includes webhooks of
///   apps, of Marketplace and of Sponsors.
/// - Limits: 5,000 requests an hour. A comparison takes one request per 100 webhooks.
#[derive(Clone)]
pub struct GitHubSubscriptions {
    api: Api,
    path: String,
    leaves_out: &'static str,
}

#[derive(Deserialize)]
struct Hook {
    id: u64,
    active: bool,
    events: Vec<String>,
    config: Config,
    #[serde(default)]
    last_response: Option<LastResponse>,
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    url: String,
}

#[derive(Deserialize)]
struct LastResponse {
    /// `null` before the first answer.
    code: Option<u16>,
}

impl GitHubSubscriptions {
    /// The webhooks of a repository, such as `octocat/hello-world`.
    pub fn repository(token: Secret, repository: &str) -> Self {
        let not_listed = "webhooks of the organization and of apps";
        Self::new(token, format!("/repos/{repository}/hooks"), not_listed)
    }

    /// The webhooks of an organization.
    pub fn organization(token: Secret, organization: &str) -> Self {
        let not_listed = "webhooks of single repositories and of apps";
        Self::new(token, format!("/orgs/{organization}/hooks"), not_listed)
    }

    fn new(token: Secret, path: String, leaves_out: &'static str) -> Self {
        Self {
            api: api(Authorization::Bearer(token)),
            path,
            leaves_out,
        }
    }

    /// Sets how the API is called. For GitHub Enterprise Server, the base is `https://<host>/api/v3`.
    #[must_use]
    pub fn http(mut self, http: Http) -> Self {
        self.api.http(http);
        self
    }
}

impl SubscriptionSource for GitHubSubscriptions {
    fn name(&self) -> String {
        format!("github {}", self.path)
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, SourceError> {
        let (mut found, mut pages, mut page) = (Vec::new(), Pages::default(), None);
        loop {
            let mut parameters = vec![("per_page", "100".to_owned())];
            parameters.extend(page.map(|page| ("page", page)));
            let answer = self.api.get(&self.path, &parameters).await?;
            let hooks: Vec<Hook> = answer.json()?;
            found.extend(hooks.into_iter().map(read));
            page = pages.next(next_page(&answer.headers, "page"))?;
            if page.is_none() {
                return Ok(found);
            }
        }
    }

    fn leaves_out(&self) -> Option<&'static str> {
        Some(self.leaves_out)
    }
}

fn read(hook: Hook) -> Subscription {
    let id = hook.id.to_string();
    let subscription = Subscription::new(id, hook.config.url).event_types(hook.events);
    let subscription = match hook.last_response.and_then(|last| last.code) {
        Some(status) => subscription.last_status(status),
        None => subscription,
    };
    match hook.active {
        true => subscription,
        false => subscription.switched_off(),
    }
}

impl fmt::Debug for GitHubSubscriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GitHubSubscriptions")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
