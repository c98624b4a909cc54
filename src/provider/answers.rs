//! The answers that a provider accepts: their statuses and their text.

use http::StatusCode;

use super::Provider;

/// The answers that a provider wants. `None` means the usual HTTP answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answers {
    /// The status of every success.
    pub(crate) success: Option<StatusCode>,
    /// The status of a success that the layer answers by itself, without a response of the handler.
    pub(crate) acknowledgement: Option<StatusCode>,
    /// The status of every answer after which the provider should deliver again.
    pub(crate) failure: Option<StatusCode>,
    /// The status for a signature that does not match, if it differs from `failure`.
    pub(crate) rejection: Option<StatusCode>,
    pub(crate) success_text: Option<&'static str>,
    pub(crate) are_empty: bool,
}

impl Provider {
    /// The status of every success, for providers that accept no other 2xx.
    ///
    /// The layer uses this status for a duplicate, for an ignored event, and for a delivery that is kept or accepted
    /// (stored, to be processed later). It also replaces any other 2xx of a committed handler response. With 204, the
    /// body is dropped. Default: the handler's status, or 200 if the layer answers by itself.
    #[must_use]
    pub fn success_status(mut self, status: StatusCode) -> Self {
        self.answers.success = Some(status);
        self
    }

    /// The status of a success that the layer answers by itself: for a duplicate, an ignored event, or a delivery that
    /// is kept or accepted. Default: the [status of every success](Self::success_status), or 200 if none is set.
    #[must_use]
    pub fn acknowledgement_status(mut self, status: StatusCode) -> Self {
        self.answers.acknowledgement = Some(status);
        self
    }

    /// The status of every answer after which the provider should deliver again, for providers that retry only
    /// after certain statuses.
    ///
    /// It is used for failures of the layer, for a delivery that is still in flight, for answers of the handler that
    /// are not a success, and for rejections. Even a rejected delivery can still be processed later, once the
    /// application has the provider's new secret or a higher body limit. By default, an answer of the handler keeps its
    /// status, except that 500 replaces a 410. A failure of the layer is answered with 500 or 503, and a rejection with
    /// 400, 401, 408 or 413.
    ///
    /// With 503 and 429, the answer carries `Retry-After`: the handler's value, or else
    /// [`retry_after`](crate::IdempotentWebhook::retry_after). With any other status, the answer carries it only if
    /// the handler sets it.
    ///
    /// A request whose method no delivery uses is still answered with 405. A committed response keeps its status: a
    /// handler that does not want a retry answers with a success. Do not set a 2xx: the provider would not deliver
    /// failures again, and they would be lost.
    #[must_use]
    pub fn failure_status(mut self, status: StatusCode) -> Self {
        self.answers.failure = Some(status);
        self
    }

    /// The status for a request whose signature is missing or not valid. Default: the [status of
    /// failures](Self::failure_status), or 401 if none is set.
    ///
    /// A provider that probes the endpoint with a wrong signature expects 401.
    #[must_use]
    pub fn rejection_status(mut self, status: StatusCode) -> Self {
        self.answers.rejection = Some(status);
        self
    }

    /// Removes the body and the content type from every answer except the answer to a handshake, for providers that
    /// want empty answers. A body from the handler is dropped.
    #[must_use]
    pub fn empty_answers(mut self) -> Self {
        self.answers.are_empty = true;
        self
    }

    /// The text of every success, for providers that accept no other text. A body from the handler is dropped.
    #[must_use]
    pub(crate) fn success_text(mut self, text: &'static str) -> Self {
        self.answers.success_text = Some(text);
        self
    }
}
