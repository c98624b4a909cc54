//! The answers that a provider accepts: which statuses, which text.

use http::StatusCode;

use super::Provider;

/// The answers that a provider wants. `None` if it accepts HTTP's usual one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answers {
    /// For every success.
    pub(crate) success: Option<StatusCode>,
    /// For a success without a handler.
    pub(crate) acknowledgement: Option<StatusCode>,
    /// For every answer after which it should deliver again.
    pub(crate) failure: Option<StatusCode>,
    /// For a signature that does not match, if it differs.
    pub(crate) rejection: Option<StatusCode>,
    pub(crate) success_text: Option<&'static str>,
    pub(crate) are_empty: bool,
}

impl Provider {
    /// The status of every success, for providers that accept no other 2xx: for a committed response of the handler
    /// with another 2xx, a duplicate, an ignored event, and a delivery that is kept or accepted. 204 drops the body.
    /// Default: the handler's status, and 200 if no handler answered.
    #[must_use]
    pub fn success_status(mut self, status: StatusCode) -> Self {
        self.answers.success = Some(status);
        self
    }

    /// The status of a success that is not the handler's answer: of a duplicate, of an event
    /// that is ignored, and of a delivery that is kept or accepted. Default: the [status of every success](Self::success_status), and 200
    /// without one.
    #[must_use]
    pub fn acknowledgement_status(mut self, status: StatusCode) -> Self {
        self.answers.acknowledgement = Some(status);
        self
    }

    /// The status of every answer after which the provider should deliver again, for providers that
    /// retry after some statuses only: failures of the layer, a delivery that is still in flight,
    /// answers of the handler that are not a success, and rejections. A rejected delivery could still be
    /// processed: once the secret here is the provider's new one, or the body limit is higher. Default: the
    /// handler's status, but 500 for its 410, 500 or 503 for a failure, and 400, 401, 408 or 413 for a
    /// rejection.
    ///
    /// With 503 and 429, the answer has `Retry-After`: the handler's, or else
    /// [`retry_after`](crate::IdempotentWebhook::retry_after). With another status, it only has the handler's.
    ///
    /// A method that no delivery has still gets a 405. A committed response keeps its status: a handler that wants no
    /// retry answers success. A 2xx as the status of failures would lose them.
    #[must_use]
    pub fn failure_status(mut self, status: StatusCode) -> Self {
        self.answers.failure = Some(status);
        self
    }

    /// The status for a request whose signature is missing or not valid. Default: the [status of
    /// failures](Self::failure_status), and 401 without one.
    ///
    /// A provider that probes the endpoint with a wrong signature wants its 401.
    #[must_use]
    pub fn rejection_status(mut self, status: StatusCode) -> Self {
        self.answers.rejection = Some(status);
        self
    }

    /// Only the answer to a handshake has a body or a content type, for providers that want none.
    /// A body of the handler is dropped.
    #[must_use]
    pub fn empty_answers(mut self) -> Self {
        self.answers.are_empty = true;
        self
    }

    /// The text of every success, for providers that accept no other one. A body of the handler is dropped.
    #[must_use]
    pub(crate) fn success_text(mut self, text: &'static str) -> Self {
        self.answers.success_text = Some(text);
        self
    }
}
