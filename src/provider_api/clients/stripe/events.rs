//! `StripeEvents`: Stripe's list of events, for reconciliation.

use std::time::Duration;

use http::HeaderName;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::client::{Api, Http, parse};
use super::super::items::{DAY, item, last_id};
use super::{Page, api};
use crate::provider::Secret;
use crate::provider::event_types::EventTypes;
use crate::provider_api::reconcile::{EventPage, EventSource, ListedEvent, PageQuery};
use crate::provider_api::source_error::SourceError;
use crate::transaction::pg_time::{from_unix_time, unix_time};

/// [Events of Stripe](https://docs.stripe.com/api/events/list), `GET /v1/events`, for
/// [`presets::stripe`](crate::presets::stripe): snapshot events.
///
/// - Listed for: 30 days.
/// - Rights: a restricted key with the permission to read events. The key determines the mode, live or test.
/// - It lists all events of the account, regardless of which endpoint they were for. So pass the event types to which
///   the endpoint is subscribed.
/// - Bodies: the event, as in the webhook, except that `pending_webhooks` has its current value. **If the endpoint has
///   its own API version, its webhooks have `data` in that version, but the list has `data` in the version that was the
///   account's default when the event occurred.** Events of a version that the layer does not
///   [expect](crate::Provider::expect_version) are not run, but reported.
/// - Order: newest first.
/// - It does not list events whose generation failed, nor thin events, which have their own list.
/// - Limits: 25 requests a second. A 429 has no `Retry-After`, so a round waits for a minute.
#[derive(Clone, Debug)]
pub struct StripeEvents {
    api: Api,
    types: EventTypes,
    account: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Event {
    created: u64,
    #[serde(rename = "type")]
    event_type: String,
    api_version: Option<String>,
    account: Option<String>,
}

/// The maximum number of event types in a query.
const MOST_TYPES: usize = 20;

impl StripeEvents {
    /// The events of the account to which the API key belongs.
    ///
    /// `types` are the event types to which the endpoint is subscribed, such as `invoice.paid`, `invoice.*`, or `*` for
    /// all. With `*`, if the layer [ignores other types](crate::Events::ignore_others), Stripe is asked for the types
    /// that the layer handles.
    pub fn new<T: Into<String>>(api_key: Secret, types: impl IntoIterator<Item = T>) -> Self {
        Self {
            api: api(api_key),
            types: EventTypes::new(types),
            account: None,
            name: None,
        }
    }

    /// The events of a connected account. They have the member `account`, as in the webhooks of an endpoint for
    /// connected accounts.
    #[must_use]
    pub fn account(mut self, account: impl Into<String>) -> Self {
        let account = account.into();
        let name = HeaderName::from_static("stripe-account");
        self.api = self.api.header(name, account.clone());
        self.account = Some(account);
        self
    }

    /// Sets another name for the list. If an endpoint has several lists, such as for two accounts that send to one
    /// route, each list needs its own name. Default: `stripe`, or `stripe <account>`.
    ///
    /// The name must not change, because the position of the list is stored under it. Under a new name, the list has no
    /// position, and starts with a first round.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets how the API is called.
    #[must_use]
    pub fn http(mut self, http: Http) -> Self {
        self.api.http(http);
        self
    }

    fn listed(&self, query: &PageQuery, event: &Event, body: &str) -> ListedEvent {
        let body = match (&self.account, &event.account, body.strip_prefix('{')) {
            (Some(account), None, Some(members)) => {
                format!(
                    "{{\"account\":{},{members}",
                    serde_json::Value::from(&**account)
                )
            }
            _ => body.to_owned(),
        };
        let listed = ListedEvent::new(from_unix_time(event.created as f64), body);
        match event.api_version.as_deref() {
            Some(version) if !query.expects_version(version) => listed.unusable(format!(
                "its API version is {version}, which is not expected"
            )),
            _ => listed,
        }
    }
}

impl EventSource for StripeEvents {
    fn name(&self) -> String {
        match (&self.name, &self.account) {
            (Some(name), _) => name.clone(),
            (None, Some(account)) => format!("stripe {account}"),
            (None, None) => "stripe".to_owned(),
        }
    }

    fn goes_back(&self) -> Option<Duration> {
        Some(30 * DAY)
    }

    async fn page(&self, query: &PageQuery) -> Result<EventPage, SourceError> {
        let until = unix_time(query.until()).ceil();
        let mut parameters = vec![
            ("limit", "100".to_owned()),
            ("created[gte]", query.since_unix().to_string()),
            ("created[lte]", until.to_string()),
        ];
        let types = match query.event_types() {
            Some(wanted) if self.types.are_all() => wanted,
            _ => self.types.names(),
        };
        for name in exact(types) {
            parameters.push(("types[]", name.clone()));
        }
        if let Some(cursor) = query.cursor() {
            parameters.push(("starting_after", cursor.to_owned()));
        }
        let page: Page<Box<RawValue>> = self.api.get("/v1/events", &parameters).await?.json()?;
        let mut events = Vec::with_capacity(page.data.len());
        for raw in &page.data {
            let mut is_of_type = true;
            let event = item(query.since(), raw, |json| {
                let event: Event = parse(json)?;
                is_of_type = self.types.have(&event.event_type);
                Ok(self.listed(query, &event, raw.get()))
            });
            events.extend(is_of_type.then_some(event));
        }
        let next = page.has_more.then(|| last_id(&page.data)).transpose()?;
        Ok(EventPage::new(events, next))
    }
}

/// The event types to ask for. If one of the names is not a full event type, or if there are too many names for one
/// query, the result is empty, and the query asks for all types.
fn exact(names: &[String]) -> &[String] {
    let has_groups = names.iter().any(|name| name.ends_with('*'));
    if names.len() <= MOST_TYPES && !has_groups {
        names
    } else {
        &[]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_a_few_exact_names() {
        let names = |number| -> Vec<String> { (0..number).map(|name| name.to_string()).collect() };
        assert_eq!(exact(&names(20)).len(), 20);
        assert!(exact(&names(21)).is_empty());
        assert!(exact(&["a*".to_owned()]).is_empty());
    }
}
