//! The settings of a provider, for display.

use std::borrow::Cow;
use std::time::Duration;

use http::{Method, StatusCode};

use super::answers::Answers;
use super::signature::Tolerance;
use super::{Provider, Source};

/// The settings of a [`Provider`]: see [`Provider::description`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Description<'a> {
    /// How the provider signs, in a few words such as ``HMAC-SHA256 in hex, `x-hub-signature-256` ``.
    pub signature: Cow<'static, str>,
    /// How old a signature may be. It has no effect unless the provider [signs a time](Provider::signs_time).
    pub tolerance: Tolerance,
    /// Where the delivery id is found.
    pub delivery_id: &'a Source,
    /// Where the event type is found.
    pub event_type: Option<&'a Source>,
    /// Where the [qualifier](Provider::event_action) of the event type is found.
    pub event_action: Option<&'a Source>,
    /// One example of each form of [event names](Provider::event_names_like). Empty if the sender chooses the
    /// names.
    pub event_names: &'a [String],
    /// Where the version of the payload is found, for [`Provider::expect_version`].
    pub payload_version: Option<&'a Source>,
    /// The methods of deliveries.
    pub methods: &'a [Method],
    /// The status of every success, if the provider insists on a certain status.
    pub success_status: Option<StatusCode>,
    /// The status of every failure, if the provider delivers again only after certain statuses.
    pub failure_status: Option<StatusCode>,
    /// The status for a signature that is missing or not valid.
    pub rejection_status: StatusCode,
    /// The largest accepted body, in bytes.
    pub body_limit: usize,
    /// How long the provider waits for the response.
    pub response_deadline: Duration,
    /// Whether the deadline was published by the provider or set by the application. Otherwise it is assumed.
    pub deadline_is_known: bool,
    /// How long after the first attempt the provider may deliver again.
    pub redelivery_window: Duration,
}

impl Provider {
    /// The settings of the provider, whether they come from its preset or were set by hand.
    ///
    /// ```
    /// use idempotent_webhook::{Secret, presets};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let github = presets::github(Secret::new("a secret")?);
    /// let description = github.description();
    /// assert_eq!(description.delivery_id.to_string(), "header x-github-delivery");
    /// assert_eq!(description.response_deadline.as_secs(), 10);
    /// # Ok(())
    /// # }
    /// ```
    pub fn description(&self) -> Description<'_> {
        let Answers {
            success,
            failure,
            rejection,
            ..
        } = self.answers;
        Description {
            signature: self.scheme.description(),
            tolerance: self.tolerance,
            delivery_id: self.identity.id(),
            event_type: self.identity.event_type(),
            event_action: self.identity.event_action(),
            event_names: self.name_forms.examples(),
            payload_version: self.identity.version(),
            methods: &self.methods,
            success_status: success,
            failure_status: failure,
            rejection_status: rejection.or(failure).unwrap_or(StatusCode::UNAUTHORIZED),
            body_limit: self.body_limit,
            response_deadline: self.response_deadline,
            deadline_is_known: self.deadline_is_known,
            redelivery_window: self.redelivery_window,
        }
    }
}
